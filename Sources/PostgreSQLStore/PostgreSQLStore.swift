internal import APNSRules
package import Inbox
internal import NIOConcurrencyHelpers

/// An inbox in a schema of a PostgreSQL database, which the active server uses: the one whose session holds the `ActiveLock`.
package final class PostgreSQLStore: RecordStore {
  package let initialContents: StoredContents
  package let isRemote = true
  package var concurrentReads: Int { ConnectionPool.size }
  package var place: String { address.place }
  package var isExclusive: Bool { lock.isExclusive }

  private let address: PostgreSQLAddress
  private let lock: ActiveLock
  let readers: ConnectionPool
  /// The nanoseconds to add to a monotonic time of this machine for one that all servers understand.
  let clockOffset: Int64
  let references = NIOLockedValueBox(ReferenceCache())
  private let writing: NIOLockedValueBox<WritingState>

  /// What the writer remembers between two batches.
  private struct WritingState {
    /// The connection; nil after it was lost.
    var connection: Connection?
    var ids = WrittenIDs()
    /// Whether the last batch may have been written although its connection was lost.
    var isUnsure = false
    /// Whether the last attempt to write failed because a connection that had been used before was lost.
    var hasLostConnection = false
    /// The rows of records up to this `seq` were removed because of a limit. Rows that are removed stay in the index for a time,
    /// so the next search begins after them.
    var removedThrough = 0
    /// The rows of records up to this `seq`, which are hidden because the inbox was emptied, were removed.
    var hiddenThrough = 0
    /// When the removal of rows to which no record refers was last complete.
    var tidiedAt: ContinuousClock.Instant?
  }

  /// Takes over a schema, or creates it.
  ///
  /// - Parameters:
  ///   - lock: The lock of the schema, which this server has.
  ///   - isDurable: Whether a commit has to be on the disk, so that unsafe settings of the database are reported.
  ///   - seed: The seed for servers that are started without one, if none is stored.
  ///   - report: Is called with a sentence before work that may take long, or that the user should know.
  /// - Throws: `PostgreSQLError` with a sentence that names the repair. Nothing has changed then.
  package init(_ lock: ActiveLock, isDurable: Bool, seed: UInt64, _ report: (String) -> Void) throws {
    self.lock = lock
    address = lock.address
    clockOffset = MachineTime.nanosecondsSince1970 - MachineTime.nanoseconds
    let connection = try Connection(address, patience: Self.patience)
    try Schema.prepare(connection, lock, report)
    if isDurable { try Self.reportUnsafeSettings(connection, report) }
    readers = ConnectionPool(address, patience: .seconds(20))
    var contents = StoredContents()
    var epoch: Int64 = 0
    try connection.transaction {
      epoch = try lock.takeOver(connection)
      // These pushes were waiting for their response when the former server ended.
      try connection.withPatience(.seconds(60)) {
        try connection.run("UPDATE push SET \(FormerResult.disconnection) WHERE outcome = 'pending'")
      }
      contents = try Self.contents(connection, report)
      contents.seed = contents.seed ?? seed
      try connection.query(
        "UPDATE contents SET last_batch = 0, seed = $1", [contents.seed.map { String(Int64(bitPattern: $0)) }])
    }
    lock.didTakeOver(epoch)
    initialContents = contents
    writing = NIOLockedValueBox(WritingState(connection: connection))
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
      if let connection = state.connection {
        try? transaction(connection) { try connection.run("UPDATE contents SET reserved_seq = last_seq") }
      }
      state.connection = nil
    }
    readers.close()
    // Last, so that the next server finds everything.
    lock.release()
  }

  /// Stores the URL of this server, which standby servers name to their clients.
  package func advertise(_ url: String?) throws { try readers.use { try lock.advertise(url, $0) } }

  /// Reads and checks the totals.
  private static func contents(_ connection: Connection, _ report: (String) -> Void) throws -> StoredContents {
    let table = StoredTable.contents(and: "reserved_seq", "seed")
    let newest = try connection.query("SELECT max(seq) FROM push").number(0, 0) ?? 0
    let rows = try connection.query("SELECT \(table.columnList) FROM \(table.name)")
    guard rows.count == 1 else {
      throw PostgreSQLError.other("the table contents has \(rows.count) rows instead of one")
    }
    do throws(DamagedRow) {
      let row = rows.checked(0, of: table)
      var contents = try StoredContents(row)
      try contents.check(newest: Int(newest))
      let seed: Int64? = try row.number(8)
      contents.seed = seed.map { UInt64(bitPattern: $0) }
      // If the former server was killed, clients may know seqs that were not stored. These are not used again.
      let reserved = try row.required(7, in: contents.lastSeq...contents.lastSeq + reservedSeqs)
      if reserved > contents.lastSeq {
        report(
          "the former server did not end in order: the newest stored push has the seq \(contents.lastSeq), the next one gets "
            + "\(reserved + 1); with --durable soon, pushes of its last milliseconds may be missing")
      }
      contents.lastSeq = reserved
      return contents
    } catch {
      throw PostgreSQLError.damaged(error)
    }
  }

  /// The number of seqs after the newest stored one that may be in use.
  private static let reservedSeqs = 65_536

  // MARK: - Writing

  /// Executes `body` in a transaction that only the active server can make.
  private func transaction<Result>(_ connection: Connection, _ body: () throws -> Result) throws -> Result {
    try connection.transaction {
      try lock.checkEpoch(connection)
      return try body()
    }
  }

  package func write(_ batch: borrowing StoreBatch, progress: () -> Void) throws -> StoreBatch.Result {
    let batch = copy batch
    do {
      return try writeOnce(batch, progress)
    } catch {
      // The connection may have been lost while nothing was written, because the database was started again.
      guard writing.withLockedValue(\.hasLostConnection) else { throw error }
      progress()
      return try writeOnce(batch, progress)
    }
  }

  private func writeOnce(_ batch: StoreBatch, _ progress: () -> Void) throws -> StoreBatch.Result {
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
        // A database may have been restored.
        (former.removedThrough, former.hiddenThrough) = (0, 0)
        former.ids = WrittenIDs()
        state = former
      }
      do {
        let result = try transaction(connection) { try write(batch, connection, &state, progress) }
        state.isUnsure = false
        removeUnreferenced(connection, &state)
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
        if case PostgreSQLError.commitUnknown = error { former.isUnsure = true }
        throw error
      }
    }
  }

  private func write(
    _ batch: StoreBatch, _ connection: Connection, _ state: inout WritingState, _ progress: () -> Void
  ) throws -> StoreBatch.Result {
    if state.isUnsure, let result = try result(ofWritten: batch, connection) { return result }
    var contents = batch.contents
    let ids = try state.ids.ids(of: batch.appended, connection, clockOffset, progress)
    try append(batch.appended, ids, connection, progress)
    try update(batch.changed, connection, progress)
    try update(batch.deliveries, connection, progress)
    try state.ids.insertNames(of: batch.appended, connection)
    try state.ids.insertNames(of: batch.changed, connection)
    try write(batch.serverState, connection, progress)
    var result = StoreBatch.Result()
    result.deleted = try remove(batch.deleted, after: contents.emptiedThrough, connection)
    contents.count = max(0, contents.count - result.deleted.count)
    contents.bytes = max(0, contents.bytes - result.deleted.bytes)
    result.evicted = try removeOldest(batch, of: contents, connection, &state)
    let remainsHidden = try removeHidden(through: contents.emptiedThrough, connection, &state)
    result.isIncomplete = remainsHidden || result.evicted.count >= StoreBatch.removalLimit
    // The totals of a database that another program has changed may be smaller.
    contents.count = max(0, contents.count - result.evicted.count)
    contents.bytes = max(0, contents.bytes - result.evicted.bytes)
    contents.evicted += result.evicted.count
    if result.evicted.count > 0 { contents.lastEvicted = max(contents.lastEvicted, result.evicted.lastSeq) }
    try connection.query(
      """
      UPDATE contents SET last_seq = $1, reserved_seq = $2, emptied_through = $3, count = $4, bytes = $5, evicted = $6, \
      last_evicted = $7, last_connection = $8, last_batch = $9
      """,
      [
        contents.lastSeq, contents.lastSeq + Self.reservedSeqs, contents.emptiedThrough, contents.count, contents.bytes,
        contents.evicted, contents.lastEvicted, contents.lastConnection, batch.number,
      ].map { String($0) })
    return result
  }

  /// Returns what a batch removed if it was written, although the connection was lost before this was known.
  private func result(ofWritten batch: StoreBatch, _ connection: Connection) throws -> StoreBatch.Result? {
    let row = try connection.query("SELECT last_batch, count, bytes, evicted, last_evicted FROM contents")
    func number(_ column: Int) -> Int { Int(row.number(0, column) ?? 0) }
    guard row.count == 1, number(0) == batch.number else { return nil }
    var result = StoreBatch.Result()
    result.evicted.count = max(0, number(3) - batch.contents.evicted)
    result.evicted.lastSeq = number(4)
    // Together with the size of the evicted records.
    result.deleted.count = max(0, batch.contents.count - number(1) - result.evicted.count)
    result.deleted.bytes = max(0, batch.contents.bytes - number(2))
    result.deleted.lastSeq = batch.contents.lastSeq
    result.isIncomplete = true
    return result
  }

  /// Writes new records.
  ///
  /// - Parameter progress: Is called when the database has received a part of them.
  private func append(
    _ records: [Record], _ ids: [WrittenIDs.IDs], _ connection: Connection, _ progress: () -> Void
  ) throws {
    guard !records.isEmpty else { return }
    try connection.copy("COPY push (\(CopyRows.columns)) FROM STDIN (FORMAT binary)") { send in
      var rows = CopyRows(clockOffset: clockOffset)
      // By index, because each copy of a record counts its references.
      for index in records.indices {
        rows.beginRow()
        let ids = ids[index]
        records[index].write(to: &rows, connection: ids.connection, token: ids.token, checks: ids.checks)
        guard rows.bytes.count >= 1 << 18 else { continue }
        try send(rows.bytes)
        progress()
        rows.removeSent()
      }
      rows.end()
      try send(rows.bytes)
    }
  }

  private func update(_ records: [Record], _ connection: Connection, _ progress: () -> Void) throws {
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
      progress()
    }
  }

  /// The maximum number of records that one command updates.
  private static let updateLimit = 128

  /// The maximum number of deliveries that one command changes.
  private static let deliveryLimit = 2048

  private func update(
    _ deliveries: [Int: DeliveryState], _ connection: Connection, _ progress: () -> Void
  ) throws {
    for (delivery, changes) in Dictionary(grouping: deliveries, by: \.value) {
      for start in stride(from: 0, to: changes.count, by: Self.deliveryLimit) {
        let part = changes[start..<min(start + Self.deliveryLimit, changes.count)]
        let seqs = "{\(part.map { String($0.key) }.joined(separator: ","))}"
        try connection.query("UPDATE push SET delivery = $1 WHERE seq = ANY ($2::bigint[])", [delivery.text, seqs])
        progress()
      }
    }
  }

  private func write(_ state: StoredServerState.Rows, _ connection: Connection, _ progress: () -> Void) throws {
    let names = Array(state.keys)
    for start in stride(from: 0, to: names.count, by: Self.updateLimit) {
      let part = names[start..<min(start + Self.updateLimit, names.count)]
      let removed = part.filter { state[$0] == .some(nil) }
      let changed = part.filter { state[$0] != .some(nil) }
      if !removed.isEmpty {
        let list = removed.indices.map { "$\($0 + 1)" }.joined(separator: ", ")
        try connection.query("DELETE FROM state WHERE name IN (\(list))", removed.map { $0 })
      }
      if !changed.isEmpty {
        let rows = changed.indices.map { "($\(2 * $0 + 1), $\(2 * $0 + 2))" }.joined(separator: ", ")
        try connection.query(
          "INSERT INTO state VALUES \(rows) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
          changed.flatMap { [$0, state[$0] ?? nil] })
      }
      progress()
    }
  }

  private static let size =
    "coalesce(length(headers), 0)::bigint + coalesce(length(payload), 0) + \(Record.storedColumnsSize)"

  /// Removes records.
  private func remove(_ seqs: [Int], after emptied: Int, _ connection: Connection) throws -> RemovedRecords {
    var removed = RemovedRecords()
    guard !seqs.isEmpty else { return removed }
    let rows = try connection.query(
      "DELETE FROM push WHERE seq = ANY ($1::bigint[]) AND seq > $2 RETURNING seq, \(Self.size)",
      ["{\(seqs.map { String($0) }.joined(separator: ","))}", String(emptied)])
    removed.count = rows.count
    for row in 0..<rows.count {
      removed.lastSeq = max(removed.lastSeq, Int(rows.number(row, 0) ?? 0))
      removed.bytes += Int(rows.number(row, 1) ?? 0)
    }
    return removed
  }

  /// Removes the oldest records that exceed the limits of a batch, at most `StoreBatch.removalLimit`.
  ///
  /// - Parameter contents: What the store contains before.
  private func removeOldest(
    _ batch: StoreBatch, of contents: StoredContents, _ connection: Connection, _ state: inout WritingState
  ) throws -> RemovedRecords {
    var excess = ExcessRecords(batch, of: contents)
    guard excess.arePossible else { return excess.removed }
    let after = String(max(contents.emptiedThrough, state.removedThrough))
    let rows = try connection.query(
      """
      SELECT seq, received_at, \(Self.size) FROM push WHERE seq > $1 ORDER BY seq LIMIT \(StoreBatch.removalLimit)
      """, [after])
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
    guard removed.count > 0 else { return removed }
    try connection.query("DELETE FROM push WHERE seq > $1 AND seq <= $2", [after, String(removed.lastSeq)])
    state.removedThrough = removed.lastSeq
    return removed
  }

  /// Removes records that are hidden because the inbox was emptied.
  ///
  /// - Returns: Whether there may be more.
  private func removeHidden(
    through seq: Int, _ connection: Connection, _ state: inout WritingState
  ) throws -> Bool {
    guard seq > state.hiddenThrough else { return false }
    let hidden = try connection.query(
      """
      WITH removed AS (DELETE FROM push WHERE seq IN (SELECT seq FROM push WHERE seq > $1 AND seq <= $2 ORDER BY seq \
      LIMIT \(StoreBatch.removalLimit)) RETURNING seq) SELECT count(*), max(seq) FROM removed
      """, [String(state.hiddenThrough), String(seq)])
    let remains = hidden.number(0, 0) ?? 0 >= Int64(StoreBatch.removalLimit)
    state.hiddenThrough = remains ? Int(hidden.number(0, 1) ?? 0) : seq
    return remains
  }

  /// Removes some connections and provider tokens to which no record refers any more, once a minute.
  ///
  /// The writer refers to none after `WrittenIDs.lifetime` newer ones, so the records after the oldest one refer to none that is
  /// older by more.
  private func removeUnreferenced(_ connection: Connection, _ state: inout WritingState) {
    if let last = state.tidiedAt, .now - last < .seconds(60) { return }
    var isComplete = true
    // Nothing depends on it, so a failure does not matter.
    try? transaction(connection) {
      // Not longer: pushes wait for it. Removed records may be in the way until PostgreSQL has cleaned up.
      try connection.run("SET LOCAL statement_timeout TO '500ms'")
      for (table, column) in [("connection", "connection"), ("provider_token", "token")] {
        let oldest = """
          SELECT \(column) FROM push WHERE seq > greatest(\(state.removedThrough), (SELECT emptied_through FROM contents)) \
          ORDER BY seq LIMIT 1
          """
        let removed = try connection.query(
          """
          DELETE FROM \(table) WHERE id IN (SELECT id FROM \(table) WHERE id < (CASE WHEN EXISTS (\(oldest)) \
          THEN (\(oldest)) ELSE (SELECT max(id) FROM \(table)) END) - \(WrittenIDs.lifetime) \
          ORDER BY id LIMIT \(StoreBatch.removalLimit)) RETURNING 1
          """)
        if removed.count == StoreBatch.removalLimit { isComplete = false }
      }
    }
    if isComplete { state.tidiedAt = .now }
  }
}
