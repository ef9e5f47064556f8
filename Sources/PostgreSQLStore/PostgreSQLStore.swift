internal import APNSMockRules
package import APNSMockInbox
internal import NIOConcurrencyHelpers

/// An inbox in a schema of a PostgreSQL database, which the active server uses: the one whose session holds the `ActiveLock`.
package final class PostgreSQLStore: RecordStore {
  package let initialContents: StoredContents
  package let isRemote = true
  package var concurrentReads: Int { ConnectionPool.size }
  package var place: String { address.place }
  package var isExclusive: Bool { lock?.isExclusive ?? true }
  package var isReadOnly: Bool { lock == nil }

  private let address: PostgreSQLAddress
  /// The lock of the schema, which this server has; nil for a schema that is only read.
  private let lock: ActiveLock?
  let readers: ConnectionPool
  /// The nanoseconds to add to a monotonic time of this machine for one that all servers understand.
  let clockOffset: Int64
  let references = NIOLockedValueBox(ReferenceCache())
  private let writing: NIOLockedValueBox<WritingState>

  /// What the writer remembers between two batches.
  private struct WritingState {
    /// The connection; nil after it was lost.
    var connection: Connection?
    var writer = SQLWriter()
    /// Whether the last batch may have been written although its connection was lost.
    var isUnsure = false
    /// Whether the last attempt to write failed because a connection that had been used before was lost.
    var hasLostConnection = false
    /// When the removal of rows to which no record refers was last complete.
    var tidiedAt: ContinuousClock.Instant?
  }

  /// Reads a schema that another program writes. Opens no connection.
  ///
  /// - Parameter contents: What the schema contains.
  package init(reading address: PostgreSQLAddress, _ contents: StoredContents) {
    self.address = address
    lock = nil
    initialContents = contents
    clockOffset = MachineTime.nanosecondsSince1970 - MachineTime.nanoseconds
    // A view has those of many schemas.
    readers = ConnectionPool(address, patience: .seconds(20), size: 2)
    writing = NIOLockedValueBox(WritingState())
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
    clockOffset = Connection.clockOffset
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
    lock?.release()
  }

  /// Stores the URL of this server, which standby servers name to their clients.
  package func advertise(_ url: String?) throws { try readers.use { try lock?.advertise(url, $0) } }

  /// Reads the totals.
  private static func contents(_ connection: Connection, _ report: (String) -> Void) throws -> StoredContents {
    do {
      guard let found = try connection.contents() else {
        throw PostgreSQLError.other("the table contents has no row")
      }
      var contents = found.contents
      if contents.lastSeq > found.lastStored {
        report(
          "the former server did not end in order: the newest stored push has the seq \(found.lastStored), the next one gets "
            + "\(contents.lastSeq + 1); with --durable soon, pushes of its last milliseconds may be missing")
      }
      contents.seed = try connection.number("SELECT seed FROM contents").map { UInt64(bitPattern: $0) }
      return contents
    } catch let damage as DamagedRow {
      throw PostgreSQLError.damaged(damage)
    }
  }

  // MARK: - Writing

  /// Executes `body` in a transaction that only the active server can make.
  private func transaction<Result>(_ connection: Connection, _ body: () throws -> Result) throws -> Result {
    try connection.transaction {
      try lock?.checkEpoch(connection)
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
        former.writer = SQLWriter()
        state = former
      }
      do {
        let result = try transaction(connection) {
          if state.isUnsure, let written = try self.result(ofWritten: batch, connection) { return written }
          return try state.writer.write(
            batch, to: connection, totals: ", last_batch = \(batch.number)", progress: progress)
        }
        state.isUnsure = false
        removeUnreferenced(connection, &state)
        former = state
        return result
      } catch {
        if connection.isBroken {
          former.hasLostConnection = isUsed && !connection.isSilent
          former.connection = nil
        } else if (error as? PostgreSQLError)?.kind == .readOnly {
          // Another server may be the primary now.
          former.connection = nil
        }
        if (error as? PostgreSQLError)?.kind == .commitUnknown { former.isUnsure = true }
        throw error
      }
    }
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

  /// Removes some connections and provider tokens to which no record refers any more, once a minute.
  private func removeUnreferenced(_ connection: Connection, _ state: inout WritingState) {
    if let last = state.tidiedAt, .now - last < .seconds(60) { return }
    // Nothing depends on it, so a failure does not matter.
    let isComplete = try? transaction(connection) {
      // Not longer: pushes wait for it. Removed records may be in the way until PostgreSQL has cleaned up.
      try connection.run("SET LOCAL statement_timeout TO '500ms'")
      return try state.writer.removeUnreferenced(connection)
    }
    if isComplete ?? true { state.tidiedAt = .now }
  }
}
