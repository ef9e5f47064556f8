internal import APNSMockRules
internal import NIOConcurrencyHelpers

/// Analyzes an inbox for findings that depend on several records.
///
/// Without a store, nothing is analyzed while pushes arrive. With one, new records are analyzed in the background before they
/// leave memory, because reading them again takes longer. On demand, the analysis continues after the last analyzed record,
/// some thousand records at a time, with a lock of its own that no push waits for. A pending record is analyzed after it
/// has ended: a retry follows the end of the previous attempt, so the order is then correct.
final class FindingsAnalyzer: Sendable {
  struct State: Sendable {
    /// Of the inbox, unless it is a view of what servers write.
    var own = Analysis()
    /// Of the servers of a view, by their names; that of a view of one server is empty. Pushes of different servers have nothing in
    /// common.
    var ofServers: [String: Analysis] = [:]
    /// Whether a server of a view could not be read, so that its newest records are not analyzed.
    var isBehind = false
    /// Records up to this `seq` are not analyzed: they were removed, or are from before the start of the server.
    var start = 0
    /// The number of connections that ended with an exhausted window and were analyzed.
    var analyzedExhausted = 0

    /// The analyses of all servers.
    var all: [Analysis] { ofServers.isEmpty ? [own] : Array(ofServers.values) }
  }

  /// The analysis of the records of one server, by the `seq` by which that server knows them.
  struct Analysis: Sendable {
    /// The generation of a server of a view; see `ViewedServer`.
    var generation = 0
    var findingsState = FindingsState()
    /// All records up to this `seq` were analyzed or are in `pending`.
    var through = 0
    var pending: [(seq: Int, identity: PushIdentities.Identity)] = []
    /// Whether records were left out because their rows in the store are damaged.
    var hasLeftOut = false
  }

  /// The maximum number of connections in `closed`; beyond it half of them are dropped.
  private static let closedLimit = 1 << 17
  /// The maximum number of connections in `exhausted`.
  private static let exhaustedLimit = 256
  /// The maximum number of pushes in `deliveries`.
  private static let deliveryLimit = 16_384

  /// The number of records analyzed in one step.
  private static let span = 16_384

  let state = NIOLockedValueBox(State())

  /// How connections have ended, by their `identity`.
  fileprivate struct Ends: Sendable {
    /// How connections were closed.
    var closed: [UInt64: ConnectionEnd.Closing] = [:]
    /// Whether some of `closed` were dropped.
    var isTruncated = false
    /// The connections that ended with an exhausted window, in this order.
    var exhausted: [(connection: UInt64, responses: Int)] = []
  }

  /// A lock of its own, so that no event loop waits for an analysis.
  private let ends = NIOLockedValueBox(Ends())
  /// What happened to pushes on their way to the device, by the `seq` of their records; for the same reason with a lock of
  /// its own.
  let deliveries = NIOLockedValueBox([Int: [FindingEvidence]]())

  /// Analyzes all new records.
  ///
  /// - Throws: `StoreUnavailable` if the store could not be read, so that some are analyzed later.
  func catchUp(with inbox: Inbox, by rulebook: Rulebook) throws(StoreUnavailable) {
    let interval = rulebook.settings.tokenUpdateInterval.milliseconds
    while true {
      let result = state.withLockedValue { state -> Result<Bool, StoreUnavailable> in
        do throws(StoreUnavailable) {
          if let store = inbox.writer?.store, store.isReadOnly {
            return .success(try state.analyzeSome(of: store.servers, inbox, at: Self.span, interval: interval))
          }
          return .success(
            try state.analyzeSome(
              of: inbox.snapshot().leavingOutDamage, at: Self.span, interval: interval, ends))
        } catch {
          return .failure(error)
        }
      }
      if try result.get() || inbox.writer?.isEnding == true { return }
    }
  }

  /// Analyzes all new records, unless this record was analyzed already.
  func catchUp(to record: borrowing Record, with inbox: Inbox, by rulebook: Rulebook) throws(StoreUnavailable) {
    let (seq, server) = (record.serverSeq, record.origin?.server)
    let through = state.withLockedValue { $0.ofServers.isEmpty ? $0.own.through : $0[server].through }
    if through < seq { try catchUp(with: inbox, by: rulebook) }
  }

  /// Returns the evidence for findings on a record, as far as it was analyzed.
  ///
  /// - Parameters:
  ///   - abandonedAfter: The milliseconds without a further attempt after which a push counts as abandoned.
  ///   - now: The server's clock in milliseconds since 1970; nil without a clock, so that no push counts as
  ///     abandoned.
  func evidence(by record: borrowing Record, abandonedAfter: Int64, now: Int64?) -> [FindingEvidence] {
    let (seq, server) = (record.serverSeq, record.origin?.server)
    let deliveryEvidence = server == nil ? deliveries.withLockedValue { $0[seq] ?? [] } : []
    return state.withLockedValue { state in
      let findings = state[server].findingsState
      let evidence = (findings.evidence[seq] ?? []) + deliveryEvidence
      guard let now, let last = findings.resolutions.attempts[seq], let finishedAt = last.finishedAt,
        !last.isByOwnClient, now &- finishedAt >= abandonedAfter
      else { return evidence }
      return evidence + [FindingEvidence(.abandoned, with: [], .abandoned(after: abandonedAfter))]
    }
  }

  /// Returns the last attempt of each push that is not resolved.
  var unresolved: [PushName] { names { $0.resolutions.attempts.keys } }

  /// Returns the attempts of which a record of an older format does not say how they ended.
  var unknown: [PushName] { names { $0.resolutions.unknown } }

  private func names(_ seqs: (FindingsState) -> some Sequence<Int>) -> [PushName] {
    state.withLockedValue { state in
      guard !state.ofServers.isEmpty else { return seqs(state.own.findingsState).map(PushName.seq) }
      return state.ofServers.flatMap { server, analysis in
        seqs(analysis.findingsState).map {
          server.isEmpty ? .seq($0) : .ofServer(RecordOrigin(server: server, seq: $0))
        }
      }
    }
  }

  /// Returns the push of an attempt that was analyzed; nil if it follows from its record alone.
  func identity(of record: borrowing Record) -> PushIdentities.Identity? {
    let (seq, server) = (record.serverSeq, record.origin?.server)
    return state.withLockedValue { $0[server].findingsState.identities.special[seq] }
  }

  /// Whether nothing was dropped that findings depend on.
  var isComplete: Bool {
    !state.withLockedValue { state in
      state.isBehind || state.all.contains { $0.findingsState.isTruncated || $0.hasLeftOut }
    } && !ends.withLockedValue(\.isTruncated)
  }

  /// Records up to this `seq` are not analyzed: they were removed, or are from before the start of the server.
  var start: Int { state.withLockedValue(\.start) }

  /// Reports the end of a connection, or more of it.
  func add(_ end: ConnectionEnd) {
    ends.withLockedValue { ends in
      switch end.event {
      case .closed(let closing):
        if let known = ends.closed[end.connection] {
          ends.closed[end.connection] = known.merging(closing)
          return
        }
        if ends.closed.count >= Self.closedLimit {
          let median = ends.closed.values.map(\.at).sorted()[Self.closedLimit / 2]
          ends.closed = ends.closed.filter { $0.value.at >= median }
          ends.isTruncated = true
        }
        ends.closed[end.connection] = closing
      case .windowExhausted(let responses):
        if ends.exhausted.count < Self.exhaustedLimit { ends.exhausted.append((end.connection, responses)) }
      }
    }
  }

  /// Reports what happened to a push on its way to the device. Beyond the limit, those of the oldest half are dropped.
  func addDelivery(_ evidence: FindingEvidence, to seq: Int) {
    deliveries.withLockedValue { deliveries in
      if deliveries.count >= Self.deliveryLimit, deliveries[seq] == nil {
        let median = deliveries.keys.sorted()[Self.deliveryLimit / 2]
        deliveries = deliveries.filter { $0.key >= median }
      }
      guard deliveries[seq]?.contains(where: { $0.kind == evidence.kind }) != true else { return }
      deliveries[seq, default: []].append(evidence)
    }
  }

  /// Starts the analysis again, for the records that are still in the inbox.
  ///
  /// - Parameter contains: Returns whether the record with this `seq` is in the inbox.
  func restart(contains: (Int) -> Bool) {
    deliveries.withLockedValue { $0 = $0.filter { contains($0.key) } }
    state.withLockedValue { state in
      let start = state.start
      state = State()
      (state.start, state.own.through) = (start, start)
    }
  }

  /// Resets the analysis, and begins after `seq`: the inbox was emptied, or has older records from its store.
  func reset(through seq: Int) {
    state.withLockedValue { state in
      state = State()
      (state.start, state.own.through) = (seq, seq)
      ends.withLockedValue { $0.exhausted = [] }
      deliveries.withLockedValue { $0 = [:] }
    }
  }
}

extension FindingsAnalyzer.State {
  /// The analysis of a server of a view of several, or that of the only server for nil.
  fileprivate subscript(server: String?) -> FindingsAnalyzer.Analysis {
    ofServers[server ?? ""] ?? (server == nil ? own : FindingsAnalyzer.Analysis())
  }

  /// Analyzes the next records.
  ///
  /// - Parameter ends: How connections have ended.
  /// - Returns: Whether all records were analyzed.
  /// - Throws: `StoreUnavailable` if a record could not be read. It is analyzed later, and none after it before.
  fileprivate mutating func analyzeSome(
    of snapshot: InboxSnapshot, at span: Int, interval: Int64, _ ends: NIOLockedValueBox<FindingsAnalyzer.Ends>
  ) throws(StoreUnavailable) -> Bool {
    func end(of connection: UInt64) -> ConnectionEnd.Closing? { ends.withLockedValue { $0.closed[connection] } }
    defer { if snapshot.hasLeftOut { own.hasLeftOut = true } }
    func record(_ seq: Int) throws(StoreUnavailable) -> Record? { try snapshot.records.record(seq) }
    try own.analyzePending(interval: interval, end, record)
    // Records evicted before they were analyzed are skipped.
    own.through = max(own.through, snapshot.lastEvicted)
    var selection = Selection.allKinds
    selection.after = own.through
    var count = 0
    try snapshot.records.forEach(in: selection) { record in
      own.analyze(record, interval: interval, end)
      count += 1
      return count < span
    }
    guard count < span else { return false }
    own.through = max(own.through, snapshot.lastSeq)
    own.findingsState.analyzeEndedConnections(end)
    let exhausted = ends.withLockedValue(\.exhausted)
    for (connection, responses) in exhausted[analyzedExhausted...] {
      own.findingsState.addExhaustedWindow(of: connection, responses: responses)
    }
    analyzedExhausted = exhausted.count
    try own.prune(record)
    return true
  }

  /// Analyzes the next records of the servers of a view. One that cannot be read is left out until it can.
  ///
  /// - Returns: Whether all records of the others were analyzed.
  /// - Throws: `StoreUnavailable` if none can be read.
  fileprivate mutating func analyzeSome(
    of servers: [ViewedServer], _ inbox: Inbox, at span: Int, interval: Int64
  ) throws(StoreUnavailable) -> Bool {
    ofServers = ofServers.filter { known in servers.contains { $0.name == known.key } }
    var failures: [StoreUnavailable] = []
    var isDone = true
    isBehind = false
    for server in servers {
      // Removed until it has changed, so that its tables are not copied when they change.
      let isKnown = ofServers[server.name]?.generation == server.generation
      var analysis = ofServers.removeValue(forKey: server.name) ?? FindingsAnalyzer.Analysis()
      if !isKnown {
        // Its inbox was emptied, or the schema is another one: nothing follows from earlier pushes.
        analysis = FindingsAnalyzer.Analysis()
        (analysis.generation, analysis.through) = (server.generation, server.analyzedAfter)
      }
      do throws(StoreUnavailable) {
        isDone = try analysis.analyzeSome(of: server, inbox, at: span, interval: interval) && isDone
      } catch {
        failures.append(error)
        isBehind = true
      }
      ofServers[server.name] = analysis
    }
    if let failure = failures.first, failures.count == servers.count { throw failure }
    return isDone
  }
}

extension FindingsAnalyzer.Analysis {
  fileprivate mutating func analyze(
    _ record: borrowing Record, interval: Int64, _ end: (UInt64) -> ConnectionEnd.Closing?
  ) {
    if record.outcome == .pending {
      pending.append((record.seq, findingsState.addPending(record)))
    } else {
      findingsState.analyze(record, interval: interval, end)
    }
    through = record.seq
  }

  /// Analyzes the next records of a server of a view, which has no ends of connections.
  ///
  /// - Returns: Whether all records were analyzed.
  fileprivate mutating func analyzeSome(
    of server: ViewedServer, _ inbox: Inbox, at span: Int, interval: Int64
  ) throws(StoreUnavailable) -> Bool {
    guard let store = server.store, let writer = inbox.writer else {
      throw StoreUnavailable(problem: "the schema \(server.name) cannot be read now")
    }
    let skipped = StoredRecords.Skipped()
    defer { if skipped.last > 0 { hasLeftOut = true } }
    func query(after: Int, before: Int) -> StoreQuery {
      var query = StoreQuery(.allKinds, after: max(after, server.emptiedThrough), before: before)
      query.skip = { seq, error in
        skipped.add(seq)
        writer.health.didLeaveOut(error)
      }
      return query
    }
    func reading(_ body: () throws -> Void) throws(StoreUnavailable) {
      do { try body() } catch { throw StoreUnavailable(error) }
    }
    func record(_ seq: Int) throws(StoreUnavailable) -> Record? {
      var found: Record?
      try reading {
        try store.forEach(query(after: seq - 1, before: seq + 1)) { record in
          found = copy record
          return false
        }
      }
      return found
    }
    try analyzePending(interval: interval, { _ in nil }, record)
    var count = 0
    try reading {
      try store.forEach(query(after: through, before: server.lastSeq + 1)) { record in
        analyze(record, interval: interval) { _ in nil }
        count += 1
        return count < span
      }
    }
    guard count < span else { return false }
    through = max(through, server.lastSeq)
    try prune(record)
    return true
  }

  fileprivate mutating func analyzePending(
    interval: Int64, _ end: (UInt64) -> ConnectionEnd.Closing?, _ find: (Int) throws(StoreUnavailable) -> Record?
  ) throws(StoreUnavailable) {
    guard !pending.isEmpty else { return }
    var former = pending[...]
    pending = []
    // What remains is analyzed later.
    defer { pending += former }
    while let (seq, identity) = former.first {
      let found = try find(seq)
      former.removeFirst()
      guard let record = found else {
        findingsState.removePending(seq, identity.push)
        continue
      }
      if record.outcome == .pending {
        pending.append((seq, identity))
      } else {
        findingsState.endPending(identity.push)
        findingsState.analyze(record, of: identity, interval: interval, end)
      }
    }
  }

  fileprivate mutating func prune(_ find: (Int) throws(StoreUnavailable) -> Record?) throws(StoreUnavailable) {
    do { try findingsState.prune { try find($0) != nil } } catch { throw StoreUnavailable(error) }
  }
}
