internal import APNSRules
internal import CSQLiteSettings
internal import GRDB
internal import GRDBSQLite
package import Inbox
internal import NIOConcurrencyHelpers
internal import PlatformLibc

/// An inbox in an SQLite file, which one server uses at a time and other programs may read.
package final class SQLiteStore: RecordStore {
  package let initialContents: StoredContents
  /// The path of the file.
  package let path: String

  package var place: String { "sqlite:\(path)" }
  /// SQLite reports failures itself; on a slow disk, moving the log into the file may take seconds.
  package let stallTime: Int64 = 5_000_000_000

  private let pool: DatabasePool
  private let lock: FileLock
  private let references: NIOLockedValueBox<ReferenceCache>
  /// Used on the thread of the writer only.
  private let writing = NIOLockedValueBox(WritingState())

  /// The size of the write-ahead log, in bytes, above which it is moved into the file.
  private static let logSize = 16 << 20
  /// SQLite without statistics about its memory: their lock takes 7 % of the writer's CPU time (`Benchmarks/store.py`).
  private static let prepareSQLite: Void = { _ = apns_disable_sqlite_memory_statistics() }()

  /// What the writer remembers between two batches.
  private struct WritingState {
    var ids = WrittenIDs()
    var block = OpenBlock()
  }

  /// Opens a file, or creates it.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - isDurable: Whether a commit waits until the disk has the data, so that it survives a power failure.
  ///   - report: Is called with a sentence about each step that may take long or that the user should know.
  /// - Throws: `SQLiteStoreError` with a sentence that names the repair. The file is then unchanged.
  package init(path: String, isDurable: Bool, report: (String) -> Void) throws(SQLiteStoreError) {
    // SQLite takes `file:` for the beginning of a URI, whose file would have another lock.
    let path = path.hasPrefix("file:") ? "./" + path : path
    self.path = path
    Self.prepareSQLite
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG { throw .notFile(path: path) }
    lock = try FileLock(path: path)
    let isNew = access(path, F_OK) != 0
    do {
      let openBlock = try Self.checkFile(path)
      var configuration = Configuration()
      configuration.label = "inbox"
      configuration.busyMode = .timeout(0.5)
      configuration.maximumReaderCount = 4
      configuration.prepareDatabase { db in
        // For a new file. The writer takes a third less CPU time than with pages of 4 KB (`Benchmarks/store.py`).
        try db.execute(sql: "PRAGMA page_size = 32768; PRAGMA cache_size = -16384")
        // The page size of an older file remains: `PRAGMA cache_size` has made SQLite read its header.
        let pageSize = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 4096
        try db.execute(sql: "PRAGMA wal_autocheckpoint = \(Self.logSize / pageSize)")
      }
      pool = try DatabasePool(path: path, configuration: configuration)
      // GRDB has set NORMAL, with which a loss of power may undo the newest transactions.
      if isDurable { try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") } }
      try Self.migrate(pool, path: path, report)
      initialContents = try pool.writeWithoutTransaction { db in
        // These pushes were waiting for their response when the server ended.
        try db.execute(sql: "UPDATE push SET outcome = 'aborted', finished_at = received_at WHERE outcome = 'pending'")
        return try Self.contents(db)
      }
      references = NIOLockedValueBox(ReferenceCache())
      writing.withLockedValue { $0.block = openBlock ?? OpenBlock() }
    } catch {
      if isNew { for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) } }
      lock.discard()
      throw SQLiteStoreError(error, path: path)
    }
  }

  package func close() throws {
    defer { lock.release() }
    // Then the file alone contains everything, for example to be copied. Not possible while another program reads it.
    try? pool.writeWithoutTransaction { db in
      try db.execute(sql: "UPDATE contents SET reserved_seq = last_seq")
      _ = try db.checkpoint(.truncate)
    }
    // Otherwise the last connection to be closed is one that cannot remove the files -wal and -shm.
    pool.invalidateReadOnlyConnections()
    try pool.close()
  }

  // MARK: - Opening

  /// Checks that the file is a database of this program, or empty, or missing, before anything changes it.
  ///
  /// - Returns: The block with the newest records; nil if there are no records yet.
  private static func checkFile(_ path: String) throws -> OpenBlock? {
    guard access(path, F_OK) == 0 else { return nil }
    var configuration = Configuration()
    configuration.readonly = true
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    defer { try? queue.close() }
    return try queue.read { db in
      let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
      let tables = try String.fetchSet(db, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
      guard !tables.isEmpty || version != 0 else { return nil }
      let columns = try String.fetchSet(
        db, sql: "SELECT name FROM pragma_table_info('push') UNION SELECT name FROM pragma_table_info('contents')")
      if !columns.isSuperset(of: ["seq", "arrived_ns", "push_key", "emptied_through", "last_seq"]) {
        throw SQLiteStoreError.foreign(path: path)
      }
      if version > Schema.version { throw SQLiteStoreError.newer(path: path, version: version) }
      if version > 0,
        !columns.isSuperset(of: RecordColumn.allCases.map(\.name) + ["reserved_seq", "last_connection"])
      {
        throw SQLiteStoreError.foreign(path: path)
      }
      // Fails if the totals cannot be read.
      _ = try Row.fetchOne(db, sql: "SELECT * FROM contents")
      return try OpenBlock(db)
    }
  }

  private static func migrate(_ pool: DatabasePool, path: String, _ report: (String) -> Void) throws {
    let version = try pool.read { try Int.fetchOne($0, sql: "PRAGMA user_version") ?? 0 }
    guard version < Schema.version else { return }
    if version > 0 {
      let copy = "\(path).version\(version)"
      report("copying \(path) to \(copy) before it is changed to the format of this version")
      try pool.backup(to: DatabaseQueue(path: copy))
    }
    try pool.write { try Schema.migrate($0, from: version) }
  }

  private static func contents(_ db: Database) throws -> StoredContents {
    var contents = StoredContents()
    guard let row = try Row.fetchOne(db, sql: "SELECT * FROM contents") else { return contents }
    // If the server was killed, clients may know seqs that were not stored. These are not used again.
    contents.lastSeq = max(row["last_seq"], row["reserved_seq"])
    contents.emptiedThrough = row["emptied_through"]
    contents.count = row["count"]
    contents.bytes = row["bytes"]
    contents.evicted = row["evicted"]
    contents.lastEvicted = row["last_evicted"]
    contents.lastConnection = row["last_connection"]
    return contents
  }

  /// The number of seqs after the newest stored one that may be in use.
  private static let reservedSeqs = 65_536

  // MARK: - Writing

  package func write(
    _ batch: borrowing StoreBatch, waitingForOthers: (Bool) -> Void
  ) throws -> StoreBatch.Result {
    let batch = copy batch
    do {
      return try write(batch)
    } catch let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode) {
      throw SQLiteStoreError.damaged(path: path, error.message ?? error.resultCode.description)
    }
  }

  private func write(_ batch: StoreBatch) throws -> StoreBatch.Result {
    try writing.withLockedValue { former in
      // A transaction that fails must not leave ids behind that it rolled back.
      var state = former
      let result = try pool.writeWithoutTransaction { db in
        var result = StoreBatch.Result()
        try db.inTransaction(.immediate) {
          result = try Self.write(batch, to: db, &state)
          return .commit
        }
        return result
      }
      former = state
      return result
    }
  }

  private static func write(
    _ batch: StoreBatch, to db: Database, _ state: inout WritingState
  ) throws -> StoreBatch.Result {
    var contents = batch.contents
    try state.block.append(batch.appended, to: db)
    if !batch.appended.isEmpty {
      let columns = RecordColumn.allCases
      let sql = """
        INSERT INTO push (\(columns.map(\.name).joined(separator: ", "))) \
        VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))
        """
      var row = StatementRow(try db.cachedStatement(sql: sql), columns)
      for record in batch.appended {
        let ids = try state.ids.ids(of: record, db)
        record.write(to: &row, connection: ids.connection, token: ids.token, checks: ids.checks)
        try row.execute()
      }
    }
    if !batch.changed.isEmpty { try update(batch.changed, db) }
    for record in batch.appended { try state.ids.insertNames(of: record, db) }
    for record in batch.changed { try state.ids.insertNames(of: record, db) }
    var result = StoreBatch.Result()
    result.deleted = try Removal(db).remove(batch.deleted)
    contents.count -= result.deleted.count
    contents.bytes -= result.deleted.bytes
    result.evicted = try Removal(db).removeOldest(batch, of: contents)
    let remainsHidden = try Removal(db).removeSome(through: contents.emptiedThrough)
    result.isIncomplete = remainsHidden || result.evicted.count >= StoreBatch.removalLimit
    if remainsHidden || batch.isEmptied || result.deleted.count + result.evicted.count > 0 {
      try Removal(db).removeUnreferenced()
    }
    contents.count -= result.evicted.count
    contents.bytes -= result.evicted.bytes
    contents.evicted += result.evicted.count
    if result.evicted.count > 0 { contents.lastEvicted = max(contents.lastEvicted, result.evicted.lastSeq) }
    try db.cachedStatement(
      sql: """
        UPDATE contents SET last_seq = ?, reserved_seq = ?, emptied_through = ?, count = ?, bytes = ?, evicted = ?, \
        last_evicted = ?, last_connection = ?
        """
    ).execute(arguments: [
      contents.lastSeq, contents.lastSeq + reservedSeqs, contents.emptiedThrough, contents.count, contents.bytes,
      contents.evicted, contents.lastEvicted, contents.lastConnection,
    ])
    return result
  }

  private static func update(_ records: [PushRecord], _ db: Database) throws {
    let columns = RecordColumn.changing
    let sql = "UPDATE push SET \(columns.map { "\($0.name) = ?" }.joined(separator: ", ")) WHERE seq = ?"
    var row = StatementRow(try db.cachedStatement(sql: sql), columns + [.seq])
    for record in records {
      record.writeResult(to: &row)
      row.set(.seq, Int64(record.seq))
      try row.execute()
    }
  }

  // MARK: - Reading

  private static let columns = RecordColumn.allCases.map(\.name).joined(separator: ", ")

  package func forEach(_ query: StoreQuery, _ visit: (borrowing PushRecord) -> Bool) throws {
    var rest = query
    // Visited after the database is free again, because `visit` may read other records. Few at first: often the first
    // one is enough.
    var limit = 8
    while true {
      let records = try records(of: rest, limit: limit)
      for index in records.indices { guard visit(records[index]) else { return } }
      guard records.count == limit, let last = records.last?.seq else { return }
      if query.newestFirst { rest.before = last } else { rest.after = last }
      limit = 256
    }
  }

  /// Returns the first records of a query.
  private func records(of query: StoreQuery, limit: Int) throws -> [PushRecord] {
    let condition = SQLCondition(query)
    let order = query.newestFirst ? "DESC" : "ASC"
    return try pool.unsafeRead { db in
      let sql = "SELECT \(Self.columns) FROM \(condition.table) WHERE \(condition.sql) ORDER BY seq \(order)"
      // GRDB keeps every cached statement, so only those without conditions of the user are cached.
      let statement = try query.conditions.count > 1 ? db.makeStatement(sql: sql) : db.cachedStatement(sql: sql)
      statement.arguments = condition.arguments
      let handle = statement.sqliteStatement
      defer { sqlite3_reset(handle) }
      var reader = StoredRecordReader()
      let row = ResultRow(handle)
      var records: [PushRecord] = []
      while records.count < limit {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: break
        case SQLITE_DONE: return records
        case let code: throw DatabaseError(resultCode: ResultCode(rawValue: code), message: db.lastErrorMessage)
        }
        guard query.mayMatch(row) else { continue }
        let (connection, token, checks) = try references.withLockedValue { try $0.references(of: row, db) }
        records.append(reader.record(of: row, connection: connection, token: token, checks: checks))
      }
      return records
    }
  }

  package func count(_ query: StoreQuery, limit: Int) throws -> Int {
    let condition = SQLCondition(query)
    return try pool.unsafeRead { db in
      try Int.fetchOne(
        db, sql: "SELECT count(*) FROM (SELECT 1 FROM \(condition.table) WHERE \(condition.sql) LIMIT ?)",
        arguments: condition.arguments + [limit]) ?? 0
    }
  }

  package func parts(of query: StoreQuery, span: Int) throws -> [RecordSlice] {
    try pool.unsafeRead { try Blocks($0).parts(of: query, span: span) }
  }

  package func contains(name: String) throws -> Bool {
    try pool.unsafeRead { db in
      try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM name WHERE name = ?)", arguments: [name]) ?? false
    }
  }
}

extension StoreQuery {
  fileprivate func mayMatch(_ row: ResultRow) -> Bool {
    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
    return row.withBytes(.headers) { headers in
      row.withBytes(.payload) { mayMatch(headers: headers ?? nothing, payload: $0 ?? nothing) }
    }
  }
}
