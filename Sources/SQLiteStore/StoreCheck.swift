internal import GRDB
internal import GRDBSQLite
internal import APNSMockInbox

/// What is wrong in a file.
package struct StoreCheck: Sendable {
  /// The number of pushes that can be read.
  package internal(set) var readable = 0
  /// The number of rows of pushes that cannot be read. Those in pages that cannot be read are not counted.
  package internal(set) var unreadable = 0
  /// What is wrong, without values of the rows: the first `problemLimit` sentences.
  package private(set) var problems: [String] = []
  /// The number of problems.
  package private(set) var problemCount = 0

  /// The maximum number of problems that are described.
  package static let problemLimit = 50

  mutating func add(_ problem: String) {
    problemCount += 1
    if problems.count < Self.problemLimit { problems.append(problem) }
  }

  /// Checks the pages and the rows of a file. A server may be using it.
  ///
  /// - Parameter progress: Is called now and then with a sentence about what is done.
  /// - Throws: `SQLiteStoreError` if the file is missing, is no inbox, or has another version.
  package init(path: String, progress: (String) -> Void) throws(SQLiteStoreError) {
    let lock = try? FileLock(existing: path)
    defer { lock?.release() }
    let file = try ReadableFile(path, lock)
    defer { file.close() }
    try self.init(file, progress)
  }

  init(_ file: ReadableFile, _ progress: (String) -> Void) throws(SQLiteStoreError) {
    let path = file.path
    do {
      progress("checking the pages of \(path)")
      for problem in try file.pageProblems() { add(problem) }
      do {
        _ = try file.read { try SQLiteStore.contents($0) }
      } catch {
        add(ReadableFile.text(of: error))
      }
      try file.forEachPush(to: &self, progress: progress) { _, check in check.readable += 1 }
    } catch {
      throw SQLiteStoreError(error, path: path)
    }
  }

  init() {}
}

/// A file of a store, opened to read as much of it as possible.
struct ReadableFile {
  let path: String
  private let queue: DatabaseQueue
  private let lock: FileLock?
  private let others: OtherFiles

  /// - Parameter lock: The lock of the file; nil if a server uses it.
  /// - Throws: `SQLiteStoreError` if the file is no inbox of this version.
  init(_ path: String, _ lock: FileLock?) throws(SQLiteStoreError) {
    (self.path, self.lock) = (path, lock)
    others = try OtherFiles(of: path)
    do {
      guard let version = try SQLiteStore.checkFormat(path) else { throw SQLiteStoreError.missing(path: path) }
      if version < Schema.version { throw SQLiteStoreError.older(path: path, version: version) }
      var configuration = Configuration()
      configuration.readonly = true
      configuration.busyMode = .timeout(5)
      queue = try DatabaseQueue(path: path, configuration: configuration)
    } catch {
      if lock != nil { others.removeNew() }
      throw SQLiteStoreError(error, path: path)
    }
  }

  func close() {
    try? queue.close()
    if lock != nil { others.removeNew() }
  }

  func read<Value>(_ body: (Database) throws -> Value) throws -> Value { try queue.unsafeRead(body) }

  /// A sentence about an error, without values of rows.
  static func text(of error: any Error) -> String {
    (error as? DatabaseError).map { $0.message ?? $0.resultCode.description } ?? "\(error)"
  }

  /// What SQLite finds wrong in the pages and indexes.
  func pageProblems() throws -> [String] {
    try read { db in
      var problems: [String] = []
      do {
        try db.forEachRow("PRAGMA integrity_check(\(StoreCheck.problemLimit))", []) { row in
          // A row may have several lines, of which the first one is a heading.
          problems += (row.text(0) ?? "").split(separator: "\n").filter { !$0.hasPrefix("***") }.map(String.init)
          return true
        }
      } catch {
        problems.append(Self.text(of: error))
      }
      return problems == ["ok"] ? [] : problems
    }
  }

  /// Calls `visit` with each push that can be read, in ascending order, and adds to `check` what cannot be read.
  ///
  /// What a push refers to and that cannot be read is empty in it, as if its row were missing.
  func forEachPush(
    to check: inout StoreCheck, progress: (String) -> Void,
    _ visit: (borrowing PushRecord, inout StoreCheck) throws -> Void
  ) throws {
    try read { db in
      var scan = PushScan(db)
      while try scan.readUntilDamage(&check, progress, visit) == false {
        guard try scan.skipUnreadablePages(&check) else { return }
      }
    }
  }
}

/// Reads the table `push` of a file whose pages may be damaged.
private struct PushScan {
  private let db: Database
  private var reader = StoredRecordReader()
  private var references = ReferenceCache()
  /// The `seq` of the last row that was read.
  private var last: Int64 = 0
  private var rows = 0
  /// Damaged rows that pushes refer to, each of which is reported once.
  private var reported: Set<String> = []

  /// The largest plausible `seq`.
  private let limit: Int64

  init(_ db: Database) {
    self.db = db
    limit = Int64(StoredContents.seqLimit(db))
  }

  /// The number of pushes between two reports of progress.
  private static let reportedRows = 50_000
  private static let columns = RecordColumn.allCases.map(\.name).joined(separator: ", ")

  /// Reads rows after `last`.
  ///
  /// - Returns: Whether the last row was reached; false if a page cannot be read.
  mutating func readUntilDamage(
    _ check: inout StoreCheck, _ progress: (String) -> Void,
    _ visit: (borrowing PushRecord, inout StoreCheck) throws -> Void
  ) throws -> Bool {
    do {
      try db.forEachRow("SELECT \(Self.columns) FROM push WHERE seq >= $1 ORDER BY seq", [String(last + 1)]) { row in
        let seq = row.number(RecordColumn.seq.rawValue)
        // In a damaged file, rows may have another order.
        guard seq > last else {
          check.unreadable += 1
          check.add("in the table push, a row is not in the order of seq")
          return true
        }
        last = seq
        do {
          guard seq <= limit else { throw CheckedRow(row, of: .push).damage(RecordColumn.seq.rawValue, .outOfRange) }
          let record = try record(of: CheckedRow(row, of: .push), &check)
          try visit(record, &check)
        } catch let damage as DamagedRow {
          check.unreadable += 1
          check.add("\(damage)")
        }
        rows += 1
        if rows.isMultiple(of: Self.reportedRows) { progress("\(rows) pushes read") }
        return true
      }
      return true
    } catch let error as DatabaseError where error.isOfDamage {
      return false
    }
  }

  private mutating func record(of row: CheckedRow<ResultRow>, _ check: inout StoreCheck) throws -> PushRecord {
    var damages: [String] = []
    let (connection, token, checks) = try references.references(of: row, db) { error in
      guard error is DamagedRow || (error as? DatabaseError)?.isOfDamage == true else { throw error }
      damages.append(ReadableFile.text(of: error))
    }
    for text in damages where reported.insert(text).inserted { check.add(text) }
    let record = try reader.record(of: row, connection: connection, token: token, checks: checks)
    // SQLite returns no bytes of a value whose pages cannot be read.
    guard db.lastErrorCode != .SQLITE_CORRUPT else { throw row.damage(RecordColumn.payload.rawValue, .missing) }
    return record
  }

  /// Finds the first row after pages that cannot be read, and reads on from there.
  ///
  /// - Returns: Whether there is one.
  mutating func skipUnreadablePages(_ check: inout StoreCheck) throws -> Bool {
    let first = last + 1
    var distance: Int64 = 1
    // The rows from `low` on cannot be read; from `high` on, they can.
    var (low, high) = (first, first)
    while true {
      guard distance < Int64(StoredContents.numbers.upperBound) else {
        check.add("in the table push, the rows from \(first) on cannot be read")
        return false
      }
      high = first + distance
      if try isReadable(from: high) { break }
      low = high
      distance *= 2
    }
    while high - low > 1 {
      let middle = low + (high - low) / 2
      if try isReadable(from: middle) { high = middle } else { low = middle }
    }
    check.add("in the table push, the rows from \(first) to \(high - 1) cannot be read")
    last = high - 1
    return true
  }

  private func isReadable(from seq: Int64) throws -> Bool {
    do {
      try db.forEachRow("SELECT seq FROM push WHERE seq >= $1 ORDER BY seq LIMIT 1", [String(seq)]) { _ in true }
      return true
    } catch let error as DatabaseError where error.isOfDamage {
      return false
    }
  }
}

extension DatabaseError {
  /// Whether a page of the file cannot be read.
  var isOfDamage: Bool { [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_IOERR].contains(resultCode) }
}
