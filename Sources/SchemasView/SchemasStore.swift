internal import Dispatch
package import APNSMockInbox
internal import NIOConcurrencyHelpers
package import APNSMockPostgreSQLStore

/// The inboxes of several servers, each in a schema of its own, as one that can only be read: `MergedOrder` numbers their records,
/// inside this process.
///
/// Conditions go to each schema as SQL. Schemas that appear or disappear are noticed by `currentContents()`.
package final class SchemasStore: RecordStore {
  /// A change of what is read, for the log.
  package enum Event: Sendable {
    case appeared(schema: String)
    case disappeared(schema: String)
    /// A schema is left out.
    case unreadable(String)
  }

  /// A server.
  fileprivate struct Server: Sendable {
    let name: String
    let id: Int64
    let store: PostgreSQLStore
    /// Records up to this `seq` were removed when its inbox was emptied.
    var emptiedThrough = 0
    /// Another number after the inbox was emptied. The id of a schema is never used again.
    var generation: Int
    /// Records up to this `seq` are not analyzed for findings.
    var analyzedAfter = 0
    /// Another text after a change of its runs.
    var runsVersion = ""
    /// Whether its schema was removed. Its place in cuts stays.
    var isGone = false
    /// Whether its schema can be read now.
    var isReadable = true
  }

  fileprivate struct State {
    var servers: [Server] = []
    var order = MergedOrder()
  }

  /// What was known when the schemas were last read, with a lock of its own that nothing holds while it reads: event loops need it.
  private struct Known: Sendable {
    var names: [String] = []
    var problems: [String] = []
    var failure: String?
    var runs = ViewedRuns()
    /// The runs of each server, with the text that changes with them.
    var runsOfServers: [Int: (version: String, runs: [TestRun])] = [:]
  }

  /// A reading of the schemas.
  private struct Reading {
    let begun: ContinuousClock.Instant
    let ended: ContinuousClock.Instant
    let result: Result<StoredContents, any Error>

    /// Whether it answers a request: it began later, or failed just now, so that requests that wait for a database that does not
    /// answer do not wait one after the other.
    func answers(askedAt asked: ContinuousClock.Instant) -> Bool {
      if case .failure = result, .now - ended < .milliseconds(250) { return true }
      return begun > asked
    }
  }

  package let initialContents: StoredContents
  package var place: String { address.place }
  package let isReadOnly = true
  package let concurrentReads = 4
  private let address: PostgreSQLAddress
  private let list: SchemaList
  private let report: @Sendable (Event) -> Void
  private let state: NIOLockedValueBox<State>
  private let known = NIOLockedValueBox(Known())
  /// The last reading of the schemas. The lock is held while they are read, so that what was read before is noted before.
  private let reading = NIOLockedValueBox<Reading?>(nil)

  /// Opens the schemas of a pattern, or the one that the address names.
  ///
  /// - Parameter report: Is called when the schemas have changed since.
  /// - Throws: A sentence with the repair if there is no schema, or one that cannot be read.
  package init(_ address: PostgreSQLAddress, report: @escaping @Sendable (Event) -> Void) throws {
    self.address = address
    self.report = report
    list = SchemaList(address)
    state = NIOLockedValueBox(State())
    let schemas = try list.read()
    if let problem = schemas.obstacle { throw SchemasProblem(description: problem) }
    guard !schemas.readable.isEmpty else {
      throw SchemasProblem(
        description:
          "no schema of an inbox matches \(address.pattern ?? address.schema): check the name, and start the servers "
          + "with --store and this URL with a name such as schema=\((address.pattern ?? "load_*").replacing("*", with: "1"))"
      )
    }
    initialContents = try state.withLockedValue { state in
      for schema in schemas.readable { state.add(schema, address) }
      let contents = try state.contents(of: schemas.readable)
      let analyzed = try state.order.cut(after: contents.lastSeq - Inbox.analyzedAtStart, state.source)
      for index in state.servers.indices {
        state.servers[index].analyzedAfter = max(analyzed[index], state.servers[index].emptiedThrough)
      }
      return contents
    }
    known.withLockedValue { $0.names = schemas.readable.map(\.name) }
  }

  /// The names of the servers.
  package var names: [String] { known.withLockedValue(\.names) }

  /// What is wrong with schemas that are left out.
  package var problems: [String] { known.withLockedValue(\.problems) }

  /// Why the schemas could not be read the last time; nil if they could.
  package var failure: String? { known.withLockedValue(\.failure) }

  package func currentContents() throws -> StoredContents? {
    let asked = ContinuousClock.now
    return try reading.withLockedValue { last in
      if let last, last.answers(askedAt: asked) { return try last.result.get() }
      let begun = ContinuousClock.now
      let result = Result { try readSchemas() }
      last = Reading(begun: begun, ended: .now, result: result)
      if case .failure(let error) = result { known.withLockedValue { $0.failure = "\(error)" } }
      return try result.get()
    }
  }

  private func readSchemas() throws -> StoredContents {
    let schemas = try list.read()
    let (contents, events) = try state.withLockedValue { state in
      let events = state.update(schemas, address)
      return (try state.contents(of: schemas.readable), events)
    }
    let runs = readRuns()
    let former = known.withLockedValue { known in
      if let runs {
        known.runs = ViewedRuns(runs.sorted { $0.key < $1.key }.flatMap(\.value.runs), version: known.runs.version + 1)
        known.runsOfServers = runs
      }
      defer {
        (known.names, known.problems, known.failure) = (schemas.readable.map(\.name), schemas.problems.sorted(), nil)
      }
      return known.problems
    }
    for event in events + schemas.problems.filter({ !former.contains($0) }).map(Event.unreadable) { report(event) }
    return contents
  }

  /// Reads the runs that have changed.
  ///
  /// - Returns: The runs of all servers; nil if none have changed.
  private func readRuns() -> [Int: (version: String, runs: [TestRun])]? {
    var runs = known.withLockedValue(\.runsOfServers)
    var hasChanged = false
    for (index, server) in state.withLockedValue(\.servers).enumerated() {
      if server.isGone, runs.removeValue(forKey: index) != nil { hasChanged = true }
      guard !server.isGone, server.isReadable, runs[index]?.version != server.runsVersion,
        // A failure is found by what reads pushes, and the next call reads them again.
        let rows = try? server.store.serverState(prefix: RunList.rowPrefix)
      else { continue }
      let found = RunList.runs(of: rows.sorted { $0.key < $1.key }.map(\.value), on: shownName(of: server, at: index))
      runs[index] = (server.runsVersion, found)
      hasChanged = true
    }
    return hasChanged ? runs : nil
  }

  /// The name of a server; nil for the only one, unless its schema was removed and created again.
  private func shownName(of server: Server, at index: Int) -> String? {
    isOfSeveralServers || index > 0 ? server.name : nil
  }

  package var runs: ViewedRuns { known.withLockedValue(\.runs) }

  package func close() throws {
    list.close()
    for server in state.withLockedValue(\.servers) { try server.store.close() }
  }

  package func write(_ batch: borrowing StoreBatch, progress: () -> Void) throws -> StoreBatch.Result {
    throw SchemasProblem(description: "a view cannot be written")
  }

  package var isOfSeveralServers: Bool { address.pattern != nil }

  package var servers: [ViewedServer] {
    state.withLockedValue { state in
      state.servers.enumerated().filter { !$1.isGone }.map { index, server in
        ViewedServer(
          name: shownName(of: server, at: index) ?? "", generation: server.generation,
          store: server.isReadable ? server.store : nil, emptiedThrough: server.emptiedThrough,
          analyzedAfter: server.analyzedAfter, lastSeq: state.order.end[index])
      }
    }
  }

  package func seq(of origin: RecordOrigin) throws -> Int? {
    try state.withLockedValue { state in
      // A cursor may name a push of a schema that was removed.
      guard let server = state.servers.lastIndex(where: { $0.name == origin.server }) else { return nil }
      return try state.order.position(of: origin.seq, on: server, state.source)
    }
  }

  package func origin(of seq: Int) throws -> RecordOrigin? {
    try state.withLockedValue { state in
      try state.order.slot(at: seq, state.source).map {
        RecordOrigin(server: state.servers[$0.server].name, seq: $0.seq)
      }
    }
  }

  package func contains(name: String) throws -> Bool {
    for server in state.withLockedValue(\.servers) where server.isReadable {
      if try server.store.contains(name: name) { return true }
    }
    return false
  }

  // MARK: - Queries

  /// The part of a query that concerns one server.
  private struct Part: Sendable {
    let index: Int
    let server: Server
    var query: StoreQuery
  }

  /// Returns the queries of the servers that may have records of a query. Calls the query's `skip` if one of them cannot be read.
  private func parts(_ query: StoreQuery) throws -> [Part] {
    let (servers, after, through, last) = try state.withLockedValue { state in
      let after = try state.order.cut(after: query.after, state.source)
      return (state.servers, after, try state.order.cut(after: query.before - 1, state.source), state.order.last)
    }
    return servers.indices.compactMap { index in
      var part = query
      (part.after, part.before) = (max(after[index], servers[index].emptiedThrough), through[index] + 1)
      guard !servers[index].isGone, part.after < part.before - 1 else { return nil }
      guard servers[index].isReadable else {
        query.skip?(
          min(query.before - 1, last),
          SchemasProblem(description: "the schema \(servers[index].name) cannot be read now"))
        return nil
      }
      if let skip = query.skip {
        part.skip = { [self] seq, error in skip((try? position(of: seq, on: index)) ?? query.after + 1, error) }
      }
      return Part(index: index, server: servers[index], query: part)
    }
  }

  private func position(of seq: Int, on server: Int) throws -> Int {
    try state.withLockedValue { try $0.order.position(of: seq, on: server, $0.source) ?? 0 }
  }

  /// Returns the result of `body` for each part; several at the same time.
  private static func each<Result: Sendable>(
    _ parts: [Part], _ body: @Sendable (Part) throws -> Result
  ) throws -> [Result] {
    // Each element is written once, by one thread.
    let results = NIOLockedValueBox([Swift.Result<Result, any Error>?](repeating: nil, count: parts.count))
    DispatchQueue.concurrentPerform(iterations: parts.count) { index in
      let result = Swift.Result { try body(parts[index]) }
      results.withLockedValue { $0[index] = result }
    }
    return try results.withLockedValue { $0 }.compactMap { try $0?.get() }
  }

  /// The limit below which the servers count one after the other.
  private static let quickCount = 65_536

  package func count(_ query: StoreQuery, limit: Int) throws -> Int {
    let parts = try parts(query)
    guard limit < Self.quickCount else {
      let counts = try Self.each(parts) { try $0.server.store.count($0.query, limit: limit) }
      return min(limit, counts.reduce(0, +))
    }
    // Often few servers have so many.
    var count = 0
    for part in parts where count < limit { count += try part.server.store.count(part.query, limit: limit - count) }
    return count
  }

  package func forEach(_ query: StoreQuery, _ visit: (borrowing Record) -> Bool) throws {
    let parts = try parts(query)
    var streams = try Self.each(parts) { part in
      var stream = RecordStream(part.query, of: part.server.store)
      try stream.read()
      return stream
    }
    for index in streams.indices { try number(&streams[index], parts[index]) }
    while true {
      var next: Int?
      for index in streams.indices {
        guard let seq = streams[index].first?.seq else { continue }
        guard let best = next.flatMap({ streams[$0].first?.seq }) else {
          next = index
          continue
        }
        if query.newestFirst ? seq > best : seq < best { next = index }
      }
      guard let next, let record = streams[next].first else { return }
      guard visit(record) else { return }
      if try streams[next].advance() { try number(&streams[next], parts[next]) }
    }
  }

  /// Numbers the records that a stream has read.
  private func number(_ stream: inout RecordStream, _ part: Part) throws {
    // A single server has the numbers already, unless its schema was removed and created again.
    guard isOfSeveralServers || part.index > 0 else { return }
    try state.withLockedValue { state in
      for index in stream.records.indices {
        let seq = try state.order.position(of: stream.records[index].seq, on: part.index, state.source) ?? 0
        stream.records[index].renumber(seq, of: part.server.name)
      }
    }
  }

  package func parts(of query: StoreQuery, span: Int) throws -> [RecordSlice] {
    let last = state.withLockedValue { $0.order.last }
    guard query.after < last else { return [] }
    var whole = query.after + 1...max(query.after + 1, min(query.before - 1, last))
    let isIndexed = RecordColumn.Hashed.allCases.contains { query.hashes(of: $0) != nil }
    if isIndexed || query.conditions.contains(where: { $0.column == .receivedAt && !$0.isNegated }) {
      let found = try Self.each(try parts(query)) { part in
        (part.index, try part.server.store.parts(of: part.query, span: 1 << 40))
      }
      var bounds: (first: Int, last: Int)?
      var count = 0
      for (index, slices) in found {
        count += slices.count
        guard let first = slices.first, let last = slices.last else { continue }
        let range = (
          first: try position(of: first.after + 1, on: index), last: try position(of: last.before - 1, on: index)
        )
        bounds = (min(bounds?.first ?? range.first, range.first), max(bounds?.last ?? range.last, range.last))
      }
      guard let bounds, bounds.first <= bounds.last else { return [] }
      // Few of each server.
      if isIndexed, count <= found.count { return [RecordSlice(after: bounds.first - 1, before: bounds.last + 1)] }
      whole = bounds.first...bounds.last
    }
    // A part reads from all servers.
    return RecordSlice.parts(of: whole, span: span * max(1, min(names.count, 16)))
  }
}

/// Why a view cannot be opened: a sentence for people.
package struct SchemasProblem: Error, CustomStringConvertible {
  package let description: String
}

extension SchemasStore.State {
  /// What the order reads.
  fileprivate var source: MergedOrder.Source {
    let servers = servers
    func store(_ index: Int) -> PostgreSQLStore? { servers[index].isReadable ? servers[index].store : nil }
    func times(_ server: Int, _ range: ClosedRange<Int>) throws -> [(seq: Int, receivedAt: Int64)]? {
      // Nothing is read of a schema that was removed, so it does not matter where its records are.
      servers[server].isGone ? [] : try store(server)?.times(of: range)
    }
    return MergedOrder.Source(
      samples: { server, seqs in try store(server)?.times(ofSamples: seqs) ?? [] },
      seqs: { times in
        let found = try servers.indices.map { try store($0)?.seqs(atTimes: times) ?? times.map { _ in 0 } }
        return times.indices.map { time in found.map { $0[time] } }
      },
      times: times)
  }

  fileprivate mutating func add(_ schema: SchemaList.Schema, _ address: PostgreSQLAddress) {
    servers.append(
      SchemasStore.Server(
        name: schema.name, id: schema.id,
        store: PostgreSQLStore(reading: address.with(schema: schema.name), schema.contents),
        generation: Int(schema.id) << 20))
  }

  /// Notes which schemas there are.
  fileprivate mutating func update(
    _ schemas: SchemaList.Schemas, _ address: PostgreSQLAddress
  ) -> [SchemasStore.Event] {
    var events: [SchemasStore.Event] = []
    for index in servers.indices where !servers[index].isGone {
      servers[index].isReadable = schemas.readable.contains { $0.id == servers[index].id }
      guard !servers[index].isReadable, !schemas.others.contains(servers[index].id) else { continue }
      servers[index].isGone = true
      try? servers[index].store.close()
      events.append(.disappeared(schema: servers[index].name))
    }
    for schema in schemas.readable where !servers.contains(where: { $0.id == schema.id && !$0.isGone }) {
      add(schema, address)
      events.append(.appeared(schema: schema.name))
    }
    return events
  }

  /// Adds the new records to the order, and returns what all schemas contain.
  fileprivate mutating func contents(of schemas: [SchemaList.Schema]) throws -> StoredContents {
    var contents = StoredContents()
    var cut = order.end + repeatElement(0, count: servers.count - order.end.count)
    var evicted: [(server: Int, seq: Int)] = []
    for (index, server) in servers.enumerated() where server.isReadable {
      guard let schema = schemas.first(where: { $0.id == server.id }) else { continue }
      if schema.contents.emptiedThrough > server.emptiedThrough, order.end.count > index {
        servers[index].generation += 1
        servers[index].analyzedAfter = schema.contents.emptiedThrough
      }
      servers[index].emptiedThrough = schema.contents.emptiedThrough
      servers[index].runsVersion = schema.runsVersion
      cut[index] = schema.contents.lastSeq
      contents.count += schema.contents.count
      contents.bytes += schema.contents.bytes
      contents.evicted += schema.contents.evicted
      if schema.contents.evicted > 0 { evicted.append((index, schema.contents.lastEvicted)) }
    }
    order.extend(to: cut)
    contents.lastSeq = order.last
    for (server, seq) in evicted {
      contents.lastEvicted = max(contents.lastEvicted, try order.position(of: seq, on: server, source) ?? 0)
    }
    return contents
  }
}
