internal import APNSMockRules
internal import CAPNSMockSQLiteSettings
internal import GRDB
internal import GRDBSQLite
package import APNSMockInbox
internal import NIOConcurrencyHelpers
internal import APNSMockPlatformLibc

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
  private let files: StoreFiles
  private let references: NIOLockedValueBox<ReferenceCache>
  /// Used on the thread of the writer only.
  private let writing = NIOLockedValueBox(WritingState())

  /// The size of the write-ahead log, in bytes, above which it is moved into the file.
  private static let logSize = 16 << 20
  /// SQLite without statistics about its memory: their lock takes 7 % of the writer's CPU time (`Benchmarks/store.py`).
  private static let prepareSQLite: Void = { _ = apns_disable_sqlite_memory_statistics() }()

  /// What the writer remembers between two batches.
  private struct WritingState {
    var writer = SQLWriter()
    var block = OpenBlock()
  }

  /// Opens a file, or creates it.
  ///
  /// - Parameters:
  ///   - path: The path of the file.
  ///   - isDurable: Whether a commit waits until the disk has the data, so that it survives a power failure.
  ///   - seed: The seed for servers that are started without one, if none is stored.
  ///   - report: Is called with a sentence about each step that may take long or that the user should know.
  /// - Throws: `SQLiteStoreError` with a sentence that names the repair. The file is then unchanged.
  package init(
    path: String, isDurable: Bool, seed: UInt64, report: (String) -> Void
  ) throws(SQLiteStoreError) {
    // SQLite takes `file:` for the beginning of a URI, whose file would have another lock.
    let path = path.hasPrefix("file:") ? "./" + path : path
    self.path = path
    Self.prepareSQLite
    let others = try OtherFiles(of: path)
    lock = try FileLock(path: path)
    do {
      let openBlock = try Self.checkContents(path)
      var configuration = Configuration()
      configuration.label = "inbox"
      configuration.busyMode = .timeout(0.5)
      configuration.maximumReaderCount = 4
      configuration.prepareDatabase { db in
        // For a new file. The writer takes a third less CPU time than with pages of 4 KB (`Benchmarks/store.py`).
        try db.execute(sql: "PRAGMA page_size = 32768; PRAGMA cache_size = -16384")
        // The page size of an older file remains: `PRAGMA cache_size` has made SQLite read its header.
        let pageSize = max(512, Int(try db.number("PRAGMA page_size") ?? 4096))
        try db.execute(sql: "PRAGMA wal_autocheckpoint = \(Self.logSize / pageSize)")
      }
      pool = try DatabasePool(path: path, configuration: configuration)
      // GRDB has set NORMAL, with which a loss of power may undo the newest transactions.
      if isDurable { try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") } }
      try Self.migrate(pool, path: path, report)
      initialContents = try pool.writeWithoutTransaction { db in
        // These pushes were waiting for their response when the server ended.
        try db.execute(sql: "UPDATE push SET \(FormerResult.disconnection) WHERE outcome = 'pending'")
        try db.execute(sql: "INSERT OR IGNORE INTO state VALUES ('seed', ?)", arguments: [String(seed)])
        var contents = try Self.contents(db)
        contents.seed = try Self.seed(db) ?? seed
        return contents
      }
      files = StoreFiles(path)
      references = NIOLockedValueBox(ReferenceCache())
      writing.withLockedValue { $0.block = openBlock ?? OpenBlock() }
    } catch {
      if lock.isNew { unlink(path) }
      others.removeNew()
      lock.release()
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

  /// Checks that a file is a database of this program, or empty, or missing, without a change.
  ///
  /// - Parameter body: Is called with the version of the format, unless the file is empty or missing.
  private static func inspect<Value>(_ path: String, _ body: (Database, Int) throws -> Value?) throws -> Value? {
    guard access(path, F_OK) == 0 else { return nil }
    var configuration = Configuration()
    configuration.readonly = true
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    defer { try? queue.close() }
    return try queue.read { db in
      let version = Int(try db.number("PRAGMA user_version") ?? 0)
      let hasTables = try db.number("SELECT count(*) FROM sqlite_master WHERE type = 'table'") != 0
      guard hasTables || version != 0 else { return nil }
      var columns: Set<String> = []
      try db.forEachRow(
        "SELECT name FROM pragma_table_info('push') UNION SELECT name FROM pragma_table_info('contents')", []
      ) { row in
        if let name = row.text(0) { columns.insert(name) }
        return true
      }
      if version < 0 || !columns.isSuperset(of: ["seq", "arrived_ns", "push_key", "emptied_through", "last_seq"]) {
        throw SQLiteStoreError.foreign(path: path)
      }
      if version > Schema.version { throw SQLiteStoreError.newer(path: path, version: version) }
      if version < Schema.oldestVersion { throw SQLiteStoreError.tooOld(path: path, version: version) }
      if !columns.isSuperset(of: RecordColumn.allCases.map(\.name) + ["reserved_seq", "last_connection"]) {
        throw SQLiteStoreError.foreign(path: path)
      }
      return try body(db, version)
    }
  }

  /// Returns the version of the format of a file; nil if it is empty or missing.
  static func checkFormat(_ path: String) throws -> Int? { try inspect(path) { $1 } }

  /// Checks that the server can go on with what a file contains, before anything changes it.
  ///
  /// - Returns: The block with the newest records; nil if there are no records yet.
  private static func checkContents(_ path: String) throws -> OpenBlock? {
    try inspect(path) { db, version in
      _ = try contents(db)
      if version == Schema.version { _ = try db.serverState() }
      return try OpenBlock(db)
    }
  }

  private static func migrate(_ pool: DatabasePool, path: String, _ report: (String) -> Void) throws {
    let version = Int(try pool.read { try $0.number("PRAGMA user_version") ?? 0 })
    guard version < Schema.version else { return }
    if version > 0 {
      let copy = "\(path).version\(version)"
      report("copying \(path) to \(copy) before it is changed to the format of this version")
      try createPrivateFile(copy)
      try pool.backup(to: DatabaseQueue(path: copy))
    }
    try pool.write { try Schema.migrate($0, from: version) }
  }

  /// Reads the totals.
  ///
  /// - Throws: `DamagedRow` if they cannot be those of these pushes.
  static func contents(_ db: Database) throws -> StoredContents {
    guard let found = try db.contents() else {
      throw DamagedRow(table: StoredTable.contents.name, column: DamagedRow.onlyRow, .missing)
    }
    return found.contents
  }

  // MARK: - Writing

  package func write(_ batch: borrowing StoreBatch, progress: () -> Void) throws -> StoreBatch.Result {
    let batch = copy batch
    guard !isLost else { throw SQLiteStoreError.removed(path: path) }
    do {
      return try write(batch)
    } catch {
      throw explained(error)
    }
  }

  package var isLost: Bool { StoreFiles(path) != files }

  /// Returns the error for people: of a damaged file one that names the repair.
  private func explained(_ error: any Error) -> any Error {
    guard let error = error as? DatabaseError else {
      return error is DamagedRow ? SQLiteStoreError(error, path: path) : error
    }
    guard [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode) else { return error }
    return SQLiteStoreError.damaged(path: path, error.message ?? error.resultCode.description)
  }

  private func write(_ batch: StoreBatch) throws -> StoreBatch.Result {
    try writing.withLockedValue { former in
      // A transaction that fails must not leave ids behind that it rolled back.
      var state = former
      let result = try pool.writeWithoutTransaction { db in
        var result = StoreBatch.Result()
        try db.inTransaction(.immediate) {
          try state.block.append(batch.appended, to: db)
          result = try state.writer.write(batch, to: db) {}
          if result.isIncomplete || batch.isEmptied || result.deleted.count + result.evicted.count > 0 {
            try state.writer.removeUnreferenced(db)
          }
          return .commit
        }
        return result
      }
      former = state
      return result
    }
  }

  // MARK: - Reading

  private static let columns = RecordColumn.allCases.map(\.name).joined(separator: ", ")

  package func forEach(_ query: StoreQuery, _ visit: (borrowing PushRecord) -> Bool) throws {
    try forEach(query, visit) { try records(of: $0, limit: $1) }
  }

  /// Calls `body` on a connection that reads.
  private func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    do {
      return try pool.unsafeRead(body)
    } catch {
      throw explained(error)
    }
  }

  /// Returns the first records of a query, and the `seq` of the last one if there may be more.
  private func records(of query: StoreQuery, limit: Int) throws -> (records: [PushRecord], last: Int?) {
    let condition = SQLCondition(query, .sqlite)
    let order = query.newestFirst ? "DESC" : "ASC"
    let sql = "SELECT \(Self.columns) FROM \(condition.table) WHERE \(condition.sql) ORDER BY seq \(order)"
    return try read { db in
      var reader = StoredRecordReader()
      var records: [PushRecord] = []
      // In a damaged file, rows may have another order.
      var valid = (query.after, query.before)
      var (count, last) = (0, 0)
      // GRDB keeps every cached statement, so only those without conditions of the user are cached.
      try db.forEachRow(sql, condition.parameters, isCached: query.conditions.count <= 1) { row in
        guard query.mayMatch(row) else { return true }
        last = Int(row.number(RecordColumn.seq.rawValue))
        guard last > valid.0, last < valid.1 else {
          throw SQLiteStoreError.damaged(path: path, "the pushes are not in the order of seq")
        }
        if query.newestFirst { valid.1 = last } else { valid.0 = last }
        count += 1
        let checked = CheckedRow(row, of: .push)
        do {
          let (connection, token, checks) = try references.withLockedValue {
            try $0.references(of: checked, db)
          }
          records.append(try reader.record(of: checked, connection: connection, token: token, checks: checks))
        } catch let damage as DamagedRow {
          guard let skip = query.skip else { throw damage }
          skip(last, explained(damage))
        }
        return count < limit
      }
      return (records, count == limit ? last : nil)
    }
  }

  package func count(_ query: StoreQuery, limit: Int) throws -> Int {
    let condition = SQLCondition(query, .sqlite)
    let sql = "SELECT count(*) FROM (SELECT 1 FROM \(condition.table) WHERE \(condition.sql) LIMIT \(limit))"
    return try read { db in
      var count = 0
      try db.forEachRow(sql, condition.parameters, isCached: false) { row in
        count = Int(row.number(0))
        return true
      }
      return count
    }
  }

  package func parts(of query: StoreQuery, span: Int) throws -> [RecordSlice] {
    try read { try Blocks($0).parts(of: query, span: span) }
  }

  package func contains(name: String) throws -> Bool { try read { try $0.contains(name: name) } }

  package func seqsOfStorage(limit: Int) throws -> [Int] {
    try read { try $0.seqsOfStorage(limit: limit) }
  }

  package func serverState() throws -> [String: String] { try read { try $0.serverState() } }

  /// Returns the stored seed; nil if there is none, or no number.
  static func seed(_ db: Database) throws -> UInt64? {
    try db.serverState()["seed"].flatMap { UInt64($0) }
  }
}

extension StoreQuery {
  /// Returns whether a row of the table `push` may match. A damaged one may.
  fileprivate func mayMatch(_ row: ResultRow) -> Bool {
    let (headers, payload) = (RecordColumn.headers.rawValue, RecordColumn.payload.rawValue)
    guard row.type(of: headers) == .bytes, [.bytes, .text].contains(row.type(of: payload)) else { return true }
    return row.withBytes(headers) { headers in row.withBytes(payload) { mayMatch(headers: headers, payload: $0) } }
  }
}

/// The files of a store in the file system, to notice that another program has removed or replaced one of them.
private struct StoreFiles: Equatable, Sendable {
  private struct Identity: Equatable, Sendable {
    let device: UInt64
    let number: UInt64
  }

  private let database: Identity?
  private let log: Identity?

  init(_ path: String) {
    (database, log) = (Self.identity(of: path), Self.identity(of: path + "-wal"))
  }

  private static func identity(of path: String) -> Identity? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Identity(device: UInt64(truncatingIfNeeded: status.st_dev), number: UInt64(status.st_ino))
  }
}
