internal import GRDB
internal import GRDBSQLite
internal import APNSMockInbox

/// The parameters of a statement, one for each column. Bound without GRDB's values, which would be created for each of
/// them. Measured: a row of 1.4 KB takes 5 instead of 17 µs.
struct StatementRow: RowWriter {
  private let statement: Statement
  private let handle: SQLiteStatement
  /// The number of each column's parameter; 0 if the statement has none.
  private let parameters: [Int32]

  init(_ statement: Statement, _ columns: [RecordColumn]) {
    self.statement = statement
    handle = statement.sqliteStatement
    var parameters = [Int32](repeating: 0, count: RecordColumn.allCases.count)
    for (index, column) in columns.enumerated() { parameters[column.rawValue] = Int32(index + 1) }
    self.parameters = parameters
  }

  /// Tells SQLite to copy a text.
  private static let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

  mutating func setNull(_ column: RecordColumn) { sqlite3_bind_null(handle, parameters[column.rawValue]) }

  mutating func set(_ column: RecordColumn, _ number: Int64) {
    sqlite3_bind_int64(handle, parameters[column.rawValue], number)
  }

  mutating func set(_ column: RecordColumn, text: UnsafeRawBufferPointer) {
    guard let start = text.baseAddress else {
      sqlite3_bind_text(handle, parameters[column.rawValue], "", 0, Self.transient)
      return
    }
    sqlite3_bind_text(
      handle, parameters[column.rawValue], start.assumingMemoryBound(to: CChar.self), Int32(text.count), Self.transient)
  }

  mutating func set(_ column: RecordColumn, bytes: UnsafeRawBufferPointer, isText: @autoclosure () -> Bool) {
    // A blob without an address would be null.
    guard let start = bytes.baseAddress, !bytes.isEmpty else {
      sqlite3_bind_zeroblob(handle, parameters[column.rawValue], 0)
      return
    }
    if isText() {
      sqlite3_bind_text(
        handle, parameters[column.rawValue], start.assumingMemoryBound(to: CChar.self), Int32(bytes.count), nil)
    } else {
      sqlite3_bind_blob(handle, parameters[column.rawValue], start, Int32(bytes.count), nil)
    }
  }

  /// Executes the statement with the parameters set.
  mutating func execute() throws {
    let code = sqlite3_step(handle)
    sqlite3_reset(handle)
    guard code == SQLITE_DONE else {
      throw DatabaseError(
        resultCode: ResultCode(rawValue: code),
        message: sqlite3_db_handle(handle).map { String(cString: sqlite3_errmsg($0)) })
    }
  }
}

/// The current row of a query.
struct ResultRow: StoredRow {
  private let handle: SQLiteStatement

  fileprivate init(_ handle: SQLiteStatement) { self.handle = handle }

  func type(of column: Int) -> StoredType {
    switch sqlite3_column_type(handle, Int32(column)) {
    case SQLITE_NULL: .null
    case SQLITE_INTEGER: .number
    case SQLITE_TEXT: .text
    case SQLITE_BLOB: .bytes
    default: .other
    }
  }

  func number(_ column: Int) -> Int64 { sqlite3_column_int64(handle, Int32(column)) }

  func withBytes<Result>(_ column: Int, _ read: (UnsafeRawBufferPointer) -> Result) -> Result {
    let start = sqlite3_column_blob(handle, Int32(column))
    return read(
      UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(handle, Int32(column)))))
  }
}

extension Database {
  /// Calls `visit` with each row of a query, until it returns false. GRDB's rows are not used, because reading a value of
  /// another type from them ends the program.
  ///
  /// - Parameter isCached: Whether the statement is kept for the next query with the same SQL; never for conditions of users.
  func forEachRow(
    _ sql: String, _ parameters: [String?], isCached: Bool, _ visit: (ResultRow) throws -> Bool
  ) throws {
    let statement = try isCached ? cachedStatement(sql: sql) : makeStatement(sql: sql)
    statement.arguments = StatementArguments(parameters)
    let handle = statement.sqliteStatement
    defer { sqlite3_reset(handle) }
    while true {
      switch sqlite3_step(handle) {
      case SQLITE_ROW: guard try visit(ResultRow(handle)) else { return }
      case SQLITE_DONE: return
      case let code: throw DatabaseError(resultCode: ResultCode(rawValue: code), message: lastErrorMessage)
      }
    }
  }
}
