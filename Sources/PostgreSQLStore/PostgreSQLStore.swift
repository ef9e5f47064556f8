internal import APNSRules
package import Inbox
internal import NIOConcurrencyHelpers
internal import PlatformLibc

/// An inbox in a schema of a PostgreSQL database, which several servers share.
///
/// The row of the table `contents` is locked while a server writes a batch. So batches are numbered in the order in which
/// they are committed, and a server that has read up to a `seq` never misses a smaller one.
package final class PostgreSQLStore: RecordStore {
  package let initialContents: StoredContents
  package let isShared = true
  package var place: String { address.place }

  /// The number of this server, which no other server ever has.
  let server: Int
  private let durability: RecordWriter.Durability
  let address: PostgreSQLAddress
  let readers: ConnectionPool
  let sharing: Sharing
  /// The nanoseconds to add to a monotonic time of this machine for one that all servers understand.
  private let clockOffset: Int64
  private let recentRecords: Int
  private let references = NIOLockedValueBox(ReferenceCache())
  private let writing: NIOLockedValueBox<WritingState>

  /// What the writer remembers between two batches.
  private struct WritingState {
    /// The connection; nil after it was lost.
    var connection: Connection?
    var ids = WrittenIDs()
    var references = ReferenceCache()
    /// The records, resets and messages up to these are known.
    var lastSeq: Int
    var emptiedThrough: Int
    var lastMessage: Int
    /// Commands that were sent before this server started, to pass on.
    var messages: [StoreMessage]
    /// Whether the last batch may have been written although its connection was lost.
    var isUnsure = false
    /// The positions of the last batch's new records that arrived before the inbox was emptied.
    var outdated: [Int] = []
    /// When the inbox was last emptied, in monotonic nanoseconds of this machine.
    var emptiedAt = Int64.min
    /// Whether the last attempt to write failed because a connection that had been used before was lost.
    var hasLostConnection = false
    /// Whether changes of other servers may have been missed.
    var hasGap = false
    /// Whether records of other servers are being read.
    var isReadingRecords = false
    var maintainedAt: ContinuousClock.Instant?
    /// Counts that were sent too long ago were removed up to this message.
    var forgottenCounts = 0
    /// Records up to this `seq`, which are hidden because the inbox was emptied, have no rows any more.
    var rowsRemovedThrough = 0
    /// When the removal of rows to which no record refers was last complete.
    var tidiedAt: ContinuousClock.Instant?
    /// Whether other servers use the schema.
    var hasOthers = true
  }

  /// Opens a schema, or creates it.
  ///
  /// - Parameters:
  ///   - recentRecords: The number of the newest records that this server has in memory.
  ///   - durability: The name of what the server promises, for the other servers.
  ///   - seed: The seed for servers that are started without one, if no server has proposed one before.
  ///   - report: Is called with a sentence before work that may take long.
  /// - Throws: `PostgreSQLError` with a sentence that names the repair. Nothing has changed then.
  package init(
    _ address: PostgreSQLAddress, recentRecords: Int, durability: RecordWriter.Durability, seed: UInt64,
    _ report: (String) -> Void
  ) throws {
    self.address = address
    (self.recentRecords, self.durability) = (recentRecords, durability)
    clockOffset = MachineTime.nanosecondsSince1970 - MachineTime.nanoseconds
    let connection = try Connection(address, patience: Self.patience)
    try Schema.prepare(connection, address, report)
    if durability == .answer { try Self.reportUnsafeSettings(connection, report) }
    let server = Int(
      try connection.query("INSERT INTO server (durable) VALUES ($1) RETURNING id", [durability.rawValue]).number(0, 0)
        ?? 0)
    self.server = server
    sharing = try Sharing(server: server, address, connection)
    readers = ConnectionPool(address, patience: .seconds(20))
    var contents = StoredContents()
    try connection.transaction {
      contents = try Self.contents(connection, locked: true).contents
      let newest = try connection.query("SELECT max(seq) FROM push").number(0, 0) ?? 0
      do throws(DamagedRow) {
        try contents.check(newest: Int(newest))
      } catch {
        throw PostgreSQLError.damaged(error)
      }
      contents.lastConnection += StoredContents.connectionNumbers
      contents.seed = contents.seed ?? seed
      try connection.query(
        "UPDATE contents SET last_connection = $1, seed = $2",
        [String(contents.lastConnection), contents.seed.map { String(Int64(bitPattern: $0)) }])
    }
    contents.lastConnection -= StoredContents.connectionNumbers
    initialContents = contents
    let commands = try connection.query(
      """
      SELECT number, body, \(Self.age) FROM message WHERE kind IN ('state', 'lasting') AND number <= $1 ORDER BY number
      """, [String(contents.lastMessage)])
    let former = (0..<commands.count).map { row in
      StoreMessage.command(
        StoreCommand(
          number: Int(commands.number(row, 0) ?? 0), text: commands.text(row, 1) ?? "", isOwn: false,
          age: commands.number(row, 2) ?? 0))
    }
    writing = NIOLockedValueBox(
      WritingState(
        connection: connection, lastSeq: contents.lastSeq, emptiedThrough: contents.emptiedThrough,
        lastMessage: contents.lastMessage, messages: former))
  }

  /// Reports settings of the database with which a commit may not be on the disk.
  private static func reportUnsafeSettings(_ connection: Connection, _ report: (String) -> Void) throws {
    let rows = try connection.query(
      """
      SELECT name FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') \
      AND setting = 'off' ORDER BY name
      """)
    let names = (0..<rows.count).map { rows.text($0, 0) ?? "" }
    guard !names.isEmpty else { return }
    report(
      "PostgreSQL has \(names.joined(separator: ", ")) = off: in spite of --durable answer, its crash or a power "
        + "failure may lose answered pushes; set each to on")
  }

  /// The time in which the database has to execute a command of the writer.
  private static let patience = Duration.seconds(5)

  package func close() throws {
    writing.withLockedValue { state in
      // First, so that other servers do not wait for this one.
      _ = try? state.connection?.query("DELETE FROM server WHERE id = $1", [String(server)])
      state.connection = nil
    }
    sharing.stop()
    readers.close()
  }

  /// The row of the table `contents`.
  private struct ContentsRow {
    var contents = StoredContents()
    /// Records up to this `seq` were removed because of a limit.
    var removedThrough = 0
    /// The newest ids of all servers.
    var newestIDs: (connection: Int64, token: Int64) = (0, 0)
  }

  private static func contents(_ connection: Connection, locked: Bool) throws(PostgreSQLError) -> ContentsRow {
    let table = StoredTable.contents(and: "last_message", "removed_through", "seed")
    let rows = try connection.query(
      """
      SELECT \(table.columnList), (SELECT max(id) FROM connection), (SELECT max(id) FROM provider_token) \
      FROM \(table.name)\(locked ? " FOR UPDATE" : "")
      """)
    guard rows.count == 1 else { throw .other("the table contents has \(rows.count) rows instead of one") }
    var row = ContentsRow()
    do throws(DamagedRow) {
      let checked = rows.checked(0, of: table)
      row.contents = try StoredContents(checked)
      row.contents.lastMessage = try checked.required(7, in: StoredContents.numbers)
      row.removedThrough = try checked.required(8, in: StoredContents.numbers)
      let seed: Int64? = try checked.number(9)
      row.contents.seed = seed.map { UInt64(bitPattern: $0) }
    } catch {
      throw .damaged(error)
    }
    row.newestIDs = (rows.number(0, 10) ?? 0, rows.number(0, 11) ?? 0)
    return row
  }

  // MARK: - Writing

  package func write(
    _ batch: borrowing StoreBatch, waitingForOthers: (Bool) -> Void
  ) throws -> StoreBatch.Result {
    let batch = copy batch
    do {
      return try writeOnce(batch, waitingForOthers)
    } catch {
      // The connection may have been lost while nothing was written, because the database was started again.
      guard writing.withLockedValue(\.hasLostConnection) else { throw error }
      waitingForOthers(false)
      return try writeOnce(batch, waitingForOthers)
    }
  }

  private func writeOnce(_ batch: StoreBatch, _ waitingForOthers: (Bool) -> Void) throws -> StoreBatch.Result {
    try writing.withLockedValue { former in
      // A transaction that fails must not leave ids behind that it rolled back.
      var state = former
      let connection: Connection
      former.hasLostConnection = false
      let isUsed = former.connection?.isBroken == false
      if let open = former.connection, !open.isBroken {
        connection = open
      } else {
        former.connection = nil
        connection = try Connection(address, patience: Self.patience)
        former.connection = connection
        // Messages may have been removed, and a database may have been restored.
        former.hasGap = true
        (former.forgottenCounts, former.rowsRemovedThrough) = (0, 0)
        former.ids = WrittenIDs()
        state = former
      }
      do {
        // Before the transaction, for which other servers wait. These rows remain if it fails.
        let ids = try former.ids.ids(of: batch.appended, connection, clockOffset) { waitingForOthers(false) }
        state.ids = former.ids
        let result = try write(batch, ids, connection, &state, waitingForOthers)
        state.isUnsure = false
        state.hasGap = false
        former = state
        return result
      } catch {
        if connection.isBroken {
          former.hasLostConnection = isUsed && !connection.isSilent
          former.connection = nil
        } else if case PostgreSQLError.readOnly = error {
          // Another server may be the primary now.
          former.connection = nil
        }
        if case PostgreSQLError.commitUnknown = error { (former.isUnsure, former.outdated) = (true, state.outdated) }
        // If that takes too long, it would take too long again: queries read them.
        if state.isReadingRecords { former.hasGap = true }
        throw error
      }
    }
  }

  private func write(
    _ complete: StoreBatch, _ ids: [WrittenIDs.IDs], _ connection: Connection, _ state: inout WritingState,
    _ waitingForOthers: (Bool) -> Void
  ) throws -> StoreBatch.Result {
    var (batch, ids) = (complete, ids)
    try maintain(connection, &state, waitingForOthers)
    guard !batch.isEmpty else {
      let row = try Self.contents(connection, locked: false)
      var result = StoreBatch.Result()
      // The next batch begins to remove the rows.
      result.isIncomplete = row.contents.emptiedThrough > state.emptiedThrough
      result.shared = try changes(through: row, connection, &state)
      return result
    }
    return try connection.transaction {
      waitingForOthers(state.hasOthers)
      let row = try Self.contents(connection, locked: true)
      waitingForOthers(false)
      if state.isUnsure, let first = try firstSeq(ofWritten: batch, connection) {
        var result = StoreBatch.Result()
        state.hasGap = true
        result.shared = try changes(through: row, connection, &state)
        result.shared?.firstSeq = first
        result.shared?.outdated = state.outdated
        return result
      }
      var result = StoreBatch.Result()
      var shared = try changes(through: row, connection, &state)
      // After the database could not be reached, records may wait that were answered before a reset.
      state.outdated = batch.appended.indices.filter { index in
        batch.appended[index].arrivedAt < state.emptiedAt && !batch.appended[index].isImported
      }
      shared.outdated = state.outdated
      for index in state.outdated.reversed() {
        batch.appended.remove(at: index)
        ids.remove(at: index)
      }
      let areOld = ids.contains { ids in
        row.newestIDs.connection &- ids.connection > WrittenIDs.lifetime
          || ids.token.map { row.newestIDs.token &- $0 > WrittenIDs.lifetime } ?? false
      }
      if areOld {
        // Their rows may be removed. So long a server remembers only what it hardly uses.
        state.ids = WrittenIDs()
        ids = try state.ids.ids(of: batch.appended, connection, clockOffset)
      }
      try append(batch.appended, ids, from: shared.firstSeq, connection) { waitingForOthers(false) }
      shared.contents.lastSeq += batch.appended.count
      shared.contents.count += batch.appended.count
      for index in batch.appended.indices { shared.contents.bytes += batch.appended[index].storedSize }
      if batch.unkept > 0 {
        shared.contents.lastSeq += batch.unkept
        shared.contents.evicted += batch.unkept
        shared.contents.lastEvicted = shared.contents.lastSeq
      }
      var messages = Messages(last: row.contents.lastMessage, server: server)
      try update(batch.changed, connection)
      try messages.add("changed", seqs: batch.changed.map(\.seq), connection)
      if !batch.ended.isEmpty { try messages.add("ended", batch.ended.map(\.text).joined(separator: ","), connection) }
      try state.ids.insertNames(of: batch.appended, connection)
      try state.ids.insertNames(of: batch.changed, connection)
      for command in batch.commands {
        try messages.add(StoreCommand.Kind.state.rawValue, command, connection)
        shared.messages.append(.command(StoreCommand(number: messages.last, text: command, isOwn: false, age: 0)))
      }
      if let counts = batch.counts { try messages.add("counts", counts, connection) }
      try remove(batch, connection, &state, &shared, &messages, &result)
      state.lastSeq = shared.contents.lastSeq
      state.lastMessage = messages.last
      try store(shared, messages.last, of: batch, connection)
      result.shared = shared
      return result
    }
  }

  /// Returns the first `seq` of a batch if it was written, although the connection was lost before this was known.
  private func firstSeq(ofWritten batch: StoreBatch, _ connection: Connection) throws -> Int? {
    let row = try connection.query("SELECT last_batch, last_batch_seq FROM server WHERE id = $1", [String(server)])
    guard row.count == 1, row.number(0, 0) == Int64(batch.number) else { return nil }
    return row.number(0, 1).flatMap { StoredContents.numbers.contains(Int($0)) ? Int($0) : nil }
  }

  /// Reads what other servers have changed.
  private func changes(
    through row: ContentsRow, _ connection: Connection, _ state: inout WritingState
  ) throws -> SharedChanges {
    let contents = row.contents
    var changes = SharedChanges()
    changes.contents = contents
    changes.removedThrough = row.removedThrough
    changes.firstSeq = contents.lastSeq + 1
    changes.messages = state.messages
    state.messages = []
    // A database that was restored from a backup has fewer records than before.
    changes.hasGap =
      state.hasGap || contents.lastSeq < state.lastSeq || contents.lastSeq - state.lastSeq > recentRecords
    if !changes.hasGap, contents.lastSeq > state.lastSeq {
      state.isReadingRecords = true
      let rows = try connection.query(
        "SELECT \(Self.columns) FROM push WHERE seq > $1 AND seq <= $2 AND server <> $3 ORDER BY seq",
        [String(state.lastSeq), String(contents.lastSeq), String(server)])
      changes.appended = try undamagedRecords(of: rows, connection, &state.references, &changes.hasGap)
      state.isReadingRecords = false
    }
    if contents.lastMessage > state.lastMessage {
      try readMessages(through: contents.lastMessage, connection, &changes, &state)
    }
    state.lastSeq = contents.lastSeq
    state.emptiedThrough = contents.emptiedThrough
    state.lastMessage = contents.lastMessage
    return changes
  }

  /// How long ago a message was sent, in nanoseconds.
  private static let age = "(extract(epoch FROM clock_timestamp() - sent_at) * 1e9)::bigint"

  private func readMessages(
    through last: Int, _ connection: Connection, _ changes: inout SharedChanges, _ state: inout WritingState
  ) throws {
    let askedAt = MachineTime.nanoseconds
    let rows = try connection.query(
      """
      SELECT number, server, kind, body, \(Self.age) FROM message WHERE number > $1 AND number <= $2 \
      \(changes.hasGap ? "AND kind NOT IN ('changed', 'deleted')" : "") ORDER BY number
      """, [String(state.lastMessage), String(last)])
    var changed: Set<String> = []
    for row in 0..<rows.count {
      let isOwn = rows.number(row, 1) == Int64(server)
      let body = rows.text(row, 3) ?? ""
      switch rows.text(row, 2) {
      case "changed" where !isOwn: changed.formUnion(body.split(separator: ",").map(String.init))
      case "deleted" where !isOwn: changes.deleted += body.split(separator: ",").compactMap { Int($0) }
      case "ended" where !isOwn: changes.ended += body.split(separator: ",").compactMap { ConnectionEnd(text: $0) }
      case "reset":
        // The time since then is that of the database's clock, so the clocks of machines need not agree. Rather too early,
        // so that no later push counts as an earlier one.
        state.emptiedAt = max(state.emptiedAt, askedAt - max(0, rows.number(row, 4) ?? 0))
      case "once", "state", "lasting":
        let command = StoreCommand(
          number: Int(rows.number(row, 0) ?? 0), text: body, isOwn: isOwn, age: rows.number(row, 4) ?? 0)
        changes.messages.append(.command(command))
      case "counts" where !isOwn: changes.messages.append(.counts(body))
      default: break
      }
    }
    changes.deleted = Set(changes.deleted).sorted()
    // After a gap, nothing is in memory that could be changed.
    if changed.count > recentRecords { changes.hasGap = true }
    guard !changed.isEmpty, !changes.hasGap else { return }
    let found = try connection.query(
      "SELECT \(Self.columns) FROM push WHERE seq = ANY ($1::bigint[]) ORDER BY seq",
      ["{\(changed.joined(separator: ","))}"])
    changes.changed = try undamagedRecords(of: found, connection, &state.references, &changes.hasGap)
  }

  /// Returns the records of rows of other servers. If one is damaged, none: writing must not fail because of it, so queries
  /// read them from the database and report it.
  ///
  /// - Parameter hasGap: Is set if there is none.
  private func undamagedRecords(
    of rows: Rows, _ connection: Connection, _ references: inout ReferenceCache, _ hasGap: inout Bool
  ) throws -> [Record] {
    do {
      return try records(of: rows, connection, &references)
    } catch PostgreSQLError.damaged {
      hasGap = true
      return []
    }
  }

  /// Writes new records.
  ///
  /// - Parameter progress: Is called when the database has received a part of them.
  private func append(
    _ records: [Record], _ ids: [WrittenIDs.IDs], from first: Int, _ connection: Connection, _ progress: () -> Void
  ) throws {
    guard !records.isEmpty else { return }
    try connection.copy("COPY push (\(CopyRows.columns)) FROM STDIN (FORMAT binary)") { send in
      var rows = CopyRows(server: Int32(clamping: server), clockOffset: clockOffset)
      // By index, because each copy of a record counts its references.
      for index in records.indices {
        rows.beginRow(seq: first + index)
        let ids = ids[index]
        if records[index].faultedBy != nil {
          // What is written refers to an earlier record by its distance.
          records[index].numbered(first + index)
            .write(to: &rows, connection: ids.connection, token: ids.token, checks: ids.checks)
        } else {
          records[index].write(to: &rows, connection: ids.connection, token: ids.token, checks: ids.checks)
        }
        guard rows.bytes.count >= 1 << 18 else { continue }
        try send(rows.bytes)
        progress()
        rows.removeSent()
      }
      rows.end()
      try send(rows.bytes)
    }
  }

  private func update(_ records: [Record], _ connection: Connection) throws {
    let columns = [RecordColumn.seq] + RecordColumn.changing
    let names = columns.map(\.name).joined(separator: ", ")
    let assignments = RecordColumn.changing.map { "\($0.name) = new.\($0.name)" }.joined(separator: ", ")
    // Many at a time, because each command waits for the database.
    for start in stride(from: 0, to: records.count, by: Self.updateLimit) {
      var rows: [String] = []
      var values: [String?] = []
      for index in start..<min(start + Self.updateLimit, records.count) {
        var row = UpdatedRow()
        records[index].writeResult(to: &row)
        let first = values.count + 1
        let parameters = columns.enumerated().map { "$\(first + $0)::\($1.isNumber ? "bigint" : "text")" }
        rows.append("(\(parameters.joined(separator: ", ")))")
        values += [String(records[index].seq)] + row.values
      }
      try connection.query(
        """
        UPDATE push SET \(assignments) FROM (VALUES \(rows.joined(separator: ", "))) AS new (\(names)) \
        WHERE push.seq = new.seq
        """, values)
    }
  }

  /// The maximum number of records that one command updates.
  private static let updateLimit = 128

  private static let size =
    "coalesce(length(headers), 0)::bigint + coalesce(length(payload), 0) + \(Record.storedColumnsSize)"

  /// Removes records: those that were requested, those that exceed a limit, and hidden ones.
  private func remove(
    _ batch: StoreBatch, _ connection: Connection, _ state: inout WritingState, _ changes: inout SharedChanges,
    _ messages: inout Messages, _ result: inout StoreBatch.Result
  ) throws {
    var contents = changes.contents
    defer { changes.contents = contents }
    if !batch.deleted.isEmpty {
      let rows = try connection.query(
        "DELETE FROM push WHERE seq = ANY ($1::bigint[]) AND seq > $2 RETURNING \(Self.size)",
        ["{\(batch.deleted.map { String($0) }.joined(separator: ","))}", String(contents.emptiedThrough)])
      // The totals of a database that another program has changed may be smaller.
      contents.count = max(0, contents.count - rows.count)
      for row in 0..<rows.count { contents.bytes = max(0, contents.bytes - Int(rows.number(row, 0) ?? 0)) }
      try messages.add("deleted", seqs: batch.deleted, connection)
    }
    changes.removedThrough = max(
      changes.removedThrough, try removeOldest(batch, connection, after: changes.removedThrough, &contents, &result))
    guard contents.emptiedThrough > state.rowsRemovedThrough else { return }
    let hidden = try connection.query(
      """
      WITH removed AS (DELETE FROM push WHERE seq IN (SELECT seq FROM push WHERE seq > $1 AND seq <= $2 ORDER BY seq \
      LIMIT \(StoreBatch.removalLimit)) RETURNING seq) SELECT count(*), max(seq) FROM removed
      """, [String(state.rowsRemovedThrough), String(contents.emptiedThrough)])
    // Rows that are removed stay in the index for a time, so the next search begins after them.
    if hidden.number(0, 0) ?? 0 >= Int64(StoreBatch.removalLimit) {
      state.rowsRemovedThrough = Int(hidden.number(0, 1) ?? 0)
      result.isIncomplete = true
    } else {
      state.rowsRemovedThrough = contents.emptiedThrough
    }
  }

  /// Removes the oldest records that exceed a limit.
  ///
  /// - Returns: The `seq` of the newest removed record; 0 if there is none.
  private func removeOldest(
    _ batch: StoreBatch, _ connection: Connection, after former: Int, _ contents: inout StoredContents,
    _ result: inout StoreBatch.Result
  ) throws -> Int {
    var excess = ExcessRecords(batch, of: contents)
    guard excess.arePossible else { return 0 }
    let rows = try connection.query(
      """
      SELECT seq, received_at, \(Self.size) FROM push WHERE seq > $1 ORDER BY seq LIMIT \(StoreBatch.removalLimit)
      """, [String(max(contents.emptiedThrough, former))])
    func number(_ row: Int, _ column: Int) -> Int64 { rows.number(row, column) ?? 0 }
    var row = 0
    while row < rows.count,
      excess.examine(seq: Int(number(row, 0)), receivedAt: number(row, 1), size: Int(number(row, 2)))
    {
      row += 1
    }
    if let (lastSeq, latestTime) = excess.unresolved {
      let next = try connection.query(
        // By their index: those that are not ahead may be at the end.
        "SELECT received_at FROM push WHERE seq > $1 AND received_at <= $2 ORDER BY received_at LIMIT 1",
        [String(lastSeq), String(latestTime)])
      if next.count > 0 { excess.resolve(nextReceivedAt: next.number(0, 0) ?? 0) }
    }
    let removed = excess.removed
    guard removed.count > 0 else { return 0 }
    try connection.query(
      "DELETE FROM push WHERE seq > $1 AND seq <= $2",
      [String(max(contents.emptiedThrough, former)), String(removed.lastSeq)])
    contents.count = max(0, contents.count - removed.count)
    contents.bytes = max(0, contents.bytes - removed.bytes)
    contents.evicted += removed.count
    contents.lastEvicted = max(contents.lastEvicted, removed.lastSeq)
    result.evicted = removed
    if removed.count >= StoreBatch.removalLimit { result.isIncomplete = true }
    return removed.lastSeq
  }

  private func store(
    _ changes: SharedChanges, _ lastMessage: Int, of batch: StoreBatch, _ connection: Connection
  ) throws {
    let contents = changes.contents
    try connection.query(
      """
      UPDATE contents SET last_seq = $1, emptied_through = $2, count = $3, bytes = $4, evicted = $5, last_evicted = $6, \
      last_message = $7, removed_through = $8
      """,
      [
        contents.lastSeq, contents.emptiedThrough, contents.count, contents.bytes, contents.evicted,
        contents.lastEvicted, lastMessage, changes.removedThrough,
      ].map { String($0) })
    try connection.query(
      "UPDATE server SET last_batch = $1, last_batch_seq = $2 WHERE id = $3",
      [String(batch.number), String(changes.firstSeq), String(server)])
    try sharing.notify(.written, connection)
  }

  /// Does what only needs to be done now and then: ends pushes of servers that have died, and forgets old messages.
  private func maintain(
    _ connection: Connection, _ state: inout WritingState, _ waitingForOthers: (Bool) -> Void
  ) throws {
    if let last = state.maintainedAt, .now - last < .seconds(1) { return }
    state.maintainedAt = .now
    // Its row may be missing after the machine has slept for days.
    try connection.query(
      """
      INSERT INTO server (id, durable, applied_message) VALUES ($1, $2, 0) ON CONFLICT (id) DO UPDATE SET seen_at = now()
      """,
      [String(server), durability.rawValue])
    state.hasOthers =
      try connection.query(
        "SELECT 1 FROM server WHERE id <> $1 AND (\(sharing.mayLive)) LIMIT 1", [String(server)]
      ).count > 0
    if state.hasOthers { try endStoppedServers(connection) }
    try removeMessages(connection, &state)
    try removeUnreferenced(connection, &state)
    // The row of a server is removed when it ends.
    let isOfDead = "server NOT IN (SELECT id FROM server WHERE \(sharing.mayLive))"
    let dead = try connection.query(
      """
      SELECT 1 FROM push WHERE outcome = 'pending' AND server <> $1 AND \(isOfDead) LIMIT 1
      """, [String(server)])
    guard dead.count > 0 else { return }
    try connection.transaction {
      waitingForOthers(true)
      let lastMessage = try Self.contents(connection, locked: true).contents.lastMessage
      waitingForOthers(false)
      let ended = try connection.query(
        """
        UPDATE push SET \(FormerResult.disconnection) WHERE seq IN (SELECT seq FROM push \
        WHERE outcome = 'pending' AND server <> $1 AND \(isOfDead) LIMIT \(StoreBatch.removalLimit)) RETURNING seq
        """, [String(server)])
      // The next batch continues.
      if ended.count == StoreBatch.removalLimit { state.maintainedAt = nil }
      var messages = Messages(last: lastMessage, server: 0)
      try messages.add("changed", seqs: (0..<ended.count).map { Int(ended.number($0, 0) ?? 0) }, connection)
      try connection.query("UPDATE contents SET last_message = $1", [String(messages.last)])
    }
  }

  /// Ends the connections of servers that stopped, or whose machines did, while they were writing: the others wait for the
  /// lock of `contents`, and PostgreSQL has no time limit for a client from which it reads rows.
  private func endStoppedServers(_ connection: Connection) throws {
    try connection.query(
      """
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
      AND usename = current_user AND pid <> pg_backend_pid() AND state = 'active' \
      AND wait_event IN ('ClientRead', 'ClientWrite') AND query_start < now() - interval '7 s' \
      AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'relation' AND relation = 'contents'::regclass \
      AND mode = 'RowShareLock' AND granted)
      """)
  }

  /// Removes messages that no server needs any more. Their numbers ascend with their times, so only those at one end are
  /// read.
  private func removeMessages(_ connection: Connection, _ state: inout WritingState) throws {
    try connection.run(
      """
      DELETE FROM message WHERE number < coalesce((SELECT number FROM message WHERE sent_at >= now() - interval '1 hour' \
      ORDER BY number LIMIT 1), 9223372036854775807) AND (kind NOT IN ('state', 'lasting', 'reset') \
      OR kind = 'reset' AND sent_at < now() - interval '1 day')
      """)
    let last = try connection.query(
      "SELECT number FROM message WHERE sent_at < now() - interval '1 minute' ORDER BY number DESC LIMIT 1")
    guard last.count > 0, let number = last.number(0, 0).map({ Int($0) }), number > state.forgottenCounts else {
      return
    }
    try connection.query(
      "DELETE FROM message WHERE kind = 'counts' AND number > $1 AND number <= $2",
      [String(state.forgottenCounts), String(number)])
    state.forgottenCounts = number
  }

  /// Removes some connections and provider tokens to which no record refers any more, and servers that were killed, once a
  /// minute.
  ///
  /// No server refers to one after `WrittenIDs.lifetime` newer ones, so the records after the oldest one refer to none that is
  /// older by more. Twice as many are kept, because newer ones may be inserted while a server waits to write a batch.
  private func removeUnreferenced(_ connection: Connection, _ state: inout WritingState) throws {
    if let last = state.tidiedAt, .now - last < .seconds(60) { return }
    var isComplete = true
    do {
      try connection.transaction {
        // Not longer: pushes wait for it. Removed records may be in the way until PostgreSQL has cleaned up.
        try connection.run("SET LOCAL statement_timeout TO '500ms'")
        try connection.run(
          "DELETE FROM server WHERE seen_at < now() - interval '1 day' AND id NOT IN (\(sharing.liveServers))")
        for (table, column) in [("connection", "connection"), ("provider_token", "token")] {
          let oldest = """
            SELECT \(column) FROM push WHERE seq > (SELECT greatest(emptied_through, removed_through) FROM contents) \
            ORDER BY seq LIMIT 1
            """
          let removed = try connection.query(
            """
            DELETE FROM \(table) WHERE id IN (SELECT id FROM \(table) WHERE id < (CASE WHEN EXISTS (\(oldest)) \
            THEN (\(oldest)) ELSE (SELECT max(id) FROM \(table)) END) - \(2 * WrittenIDs.lifetime) \
            ORDER BY id LIMIT \(StoreBatch.removalLimit) FOR UPDATE SKIP LOCKED) RETURNING 1
            """)
          if removed.count == StoreBatch.removalLimit { isComplete = false }
        }
      }
    } catch {
      // Nothing depends on it, so the batch is written nevertheless.
      guard !connection.isBroken else { throw error }
      isComplete = true
    }
    if isComplete { state.tidiedAt = .now }
  }

  // MARK: - Reading

  private static let columns = RecordColumn.allCases.map(\.name).joined(separator: ", ")

  private func records(
    of rows: Rows, _ connection: Connection, _ references: inout ReferenceCache
  ) throws -> [Record] {
    var reader = StoredRecordReader()
    var records: [Record] = []
    let rows = (0..<rows.count).map { rows.checked($0, of: .push) }
    do {
      try references.read(for: rows, connection, clockOffset)
      for row in rows {
        let (facts, token, checks) = try references.references(of: row, connection)
        records.append(
          try reader.record(of: row, connection: facts, token: token, checks: checks, clockOffset: clockOffset))
      }
    } catch let row as DamagedRow {
      throw PostgreSQLError.damaged(row)
    }
    return records
  }

  package func forEach(_ query: StoreQuery, _ visit: (borrowing Record) -> Bool) throws {
    if query.readsContents.headers || query.readsContents.payload {
      return try forEachCandidate(query) { seqs in
        try records("seq = ANY ($1::bigint[])", [seqs], newestFirst: query.newestFirst, limit: Self.pageSize)
          .allSatisfy { visit($0) }
      }
    }
    var rest = query
    // Few at first: often the first one is enough.
    var limit = 8
    while true {
      let condition = SQLCondition(rest)
      let records = try records(condition.sql, condition.parameters, newestFirst: query.newestFirst, limit: limit)
      for index in records.indices { guard visit(records[index]) else { return } }
      guard records.count == limit, let last = records.last?.seq else { return }
      if query.newestFirst { rest.before = last } else { rest.after = last }
      limit = Self.pageSize
    }
  }

  /// The number of records that are read at once, and of contents that are compared at once: some megabytes.
  private static let (pageSize, comparedSize) = (256, 2048)

  private func records(
    _ condition: String, _ parameters: [String?], newestFirst: Bool, limit: Int
  ) throws -> [Record] {
    try readers.use { connection in
      let rows = try connection.query(
        """
        SELECT \(Self.columns) FROM push WHERE \(condition) ORDER BY seq \(newestFirst ? "DESC" : "ASC") LIMIT \(limit)
        """, parameters)
      // A copy, so that no other query waits for the lock while this one reads from the database.
      var cache = references.withLockedValue { $0 }
      defer { references.withLockedValue { $0 = cache } }
      return try records(of: rows, connection, &cache)
    }
  }

  /// Calls `visit` with the `seq` values of records that may match, as the elements of an array in SQL, until it returns
  /// false. Reads only the contents that have to be compared. Measured: a million payloads of 1 KB take 2.3 instead of 4.1 s.
  private func forEachCandidate(_ query: StoreQuery, _ visit: (String) throws -> Bool) throws {
    let contents = query.readsContents
    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
    var rest = query
    while true {
      let condition = SQLCondition(rest)
      let (seqs, last) = try readers.use { connection in
        let rows = try connection.query(
          """
          SELECT seq, \(contents.headers ? "headers" : "NULL"), \(contents.payload ? "payload" : "NULL") FROM push \
          WHERE \(condition.sql) ORDER BY seq \(query.newestFirst ? "DESC" : "ASC") LIMIT \(Self.comparedSize)
          """, condition.parameters)
        let candidates = (0..<rows.count).filter { row in
          rows.withBytes(row, 1) { headers in
            rows.withBytes(row, 2) { query.mayMatch(headers: headers ?? nothing, payload: $0 ?? nothing) }
          }
        }
        return (
          candidates.compactMap { rows.number($0, 0) },
          rows.count == Self.comparedSize ? rows.number(rows.count - 1, 0).map { Int($0) } : nil
        )
      }
      for start in stride(from: 0, to: seqs.count, by: Self.pageSize) {
        let part = seqs[start..<min(start + Self.pageSize, seqs.count)]
        guard try visit("{\(part.map { String($0) }.joined(separator: ","))}") else { return }
      }
      guard let last else { return }
      if query.newestFirst { rest.before = last } else { rest.after = last }
    }
  }

  package func count(_ query: StoreQuery, limit: Int) throws -> Int {
    let condition = SQLCondition(query)
    return try readers.use { connection in
      let rows = try connection.query(
        "SELECT count(*) FROM (SELECT 1 FROM push WHERE \(condition.sql) LIMIT \(limit)) AS found",
        condition.parameters)
      return Int(rows.number(0, 0) ?? 0)
    }
  }

  /// The maximum number of matches of an index that are listed; more of them are searched like any other condition.
  private static let indexLimit = 50_000

  package func parts(of query: StoreQuery, span: Int) throws -> [RecordSlice] {
    try readers.use { connection in
      let condition = SQLCondition(query)
      if RecordColumn.Hashed.allCases.contains(where: { query.hashes(of: $0) != nil }) {
        let found = try connection.query(
          "SELECT seq FROM push WHERE \(condition.sql) ORDER BY seq LIMIT \(Self.indexLimit + 1)", condition.parameters)
        if found.count <= Self.indexLimit {
          return stride(from: 0, to: found.count, by: 256).map { start in
            let end = min(start + 256, found.count) - 1
            return RecordSlice(
              after: Int(found.number(start, 0) ?? 0) - 1, before: Int(found.number(end, 0) ?? 0) + 1)
          }
        }
      }
      var range: Rows?
      if query.conditions.contains(where: { $0.column == .receivedAt && !$0.isNegated }) {
        // With a limit, because PostgreSQL looks for a minimum in the order of `seq`, where all matches are at the end.
        let found = try connection.query(
          """
          SELECT min(seq), max(seq), count(*) FROM (SELECT seq FROM push WHERE \(condition.sql) \
          LIMIT \(Self.indexLimit + 1)) AS found
          """, condition.parameters)
        if found.number(0, 2) ?? 0 <= Int64(Self.indexLimit) { range = found }
      }
      let bounds =
        try range
        ?? connection.query(
          "SELECT min(seq), max(seq) FROM push WHERE seq > $1 AND seq < $2",
          [String(query.after), String(query.before)])
      guard let first = bounds.number(0, 0), let last = bounds.number(0, 1) else { return [] }
      return RecordSlice.parts(of: Int(first)...Int(last), span: span)
    }
  }

  package func emptiedThrough() throws -> Int {
    try readers.use { Int(try $0.query("SELECT emptied_through FROM contents").number(0, 0) ?? 0) }
  }

  package func contains(name: String) throws -> Bool {
    try readers.use { try $0.query("SELECT 1 FROM name WHERE name = $1", [name]).count > 0 }
  }
}

/// Appends messages to the other servers, within a transaction that has locked `contents`.
private struct Messages {
  /// The number of the newest message.
  private(set) var last: Int
  let server: Int

  init(last: Int, server: Int) { (self.last, self.server) = (last, server) }

  mutating func add(_ kind: String, seqs: [Int], _ connection: Connection) throws(PostgreSQLError) {
    guard !seqs.isEmpty else { return }
    try add(kind, seqs.map { String($0) }.joined(separator: ","), connection)
  }

  mutating func add(_ kind: String, _ body: String, _ connection: Connection) throws(PostgreSQLError) {
    last += 1
    try connection.insertMessage(last, from: server, kind, body)
  }
}
