/// The type of a value in a database.
package enum StoredType: Sendable {
  case null
  /// A whole number of up to 64 bits.
  case number
  case text
  case bytes
  /// A type that the tables of a store do not have, such as a number with a fraction.
  case other
}

/// A row of a result, by the positions of its columns.
package protocol StoredRow {
  /// Returns the type of a value.
  func type(of column: Int) -> StoredType
  /// Returns a value of the type `number`.
  func number(_ column: Int) -> Int64
  /// Calls `read` with a value of the type `text` or `bytes`.
  func withBytes<Result>(_ column: Int, _ read: (UnsafeRawBufferPointer) -> Result) -> Result
}

extension StoredRow {
  /// Returns a value of the type `text`; nil for one of another type. Invalid UTF-8 is replaced.
  package func text(_ column: Int) -> String? {
    type(of: column) == .text ? withBytes(column) { String(decoding: $0, as: UTF8.self) } : nil
  }
}

/// A table of a store, with the columns that are read.
package struct StoredTable: Sendable {
  /// The name of the table.
  package let name: String
  /// The names of the columns in the order in which they are selected. The first one identifies the row, unless there is only
  /// one row.
  package let columns: [String]
  /// Whether the table has many rows.
  let hasKey: Bool

  private init(_ name: String, _ columns: [String], hasKey: Bool = true) {
    (self.name, self.columns, self.hasKey) = (name, columns, hasKey)
  }

  /// The names of the columns, separated by commas.
  package var columnList: String { columns.joined(separator: ", ") }

  /// The records, with the columns of `RecordColumn`.
  package static let push = StoredTable("push", RecordColumn.allCases.map(\.name))
  /// The columns of the newest records from which their index is made again.
  package static let indexed = StoredTable("push", ["seq", "received_at", "device_token", "push_key", "apns_id"])
  /// The connections that records refer to.
  package static let connection = StoredTable(
    "connection",
    [
      "id", "name", "listener", "environment", "client", "sni", "tls", "http", "certificate", "opened_ns", "identity",
    ])
  /// The provider tokens that records refer to.
  package static let providerToken = StoredTable(
    "provider_token", ["id", "key_id", "team_id", "issued_at", "signature", "identity"])
  /// The applicable checks that records refer to.
  package static let checkList = StoredTable("check_list", ["id", "names"])

  /// The totals.
  package static let contents = StoredTable(
    "contents",
    [
      "last_seq", "emptied_through", "count", "bytes", "evicted", "last_evicted", "last_connection", "reserved_seq",
    ], hasKey: false)
}

/// A value that this program cannot have written: the file is damaged, or another program has changed it. The description has
/// no value of the row, because logs may be read by others than the inbox.
package struct DamagedRow: Error, Sendable, CustomStringConvertible {
  /// What is wrong with a value.
  package enum Problem: String, Sendable {
    case missing = "is missing"
    case notNumber = "is not a whole number"
    case notText = "is not a text"
    case notBytes = "is not a list of bytes"
    case outOfRange = "is out of range"
    case unknown = "has an unknown value"
    case contradictory = "contradicts another column"
    case notFields = "is not a list of header fields"
  }

  /// The name in place of a column's if the table must have one row and has none.
  package static let onlyRow = "the only row"

  /// The name of the table.
  package let table: String
  /// The column that identifies the row, and its value; nil in a table of one row.
  package let key: (column: String, value: Int64)?
  /// The name of the column.
  package let column: String
  /// What is wrong.
  package let problem: Problem

  /// Creates the description of a damaged row.
  package init(table: String, key: (column: String, value: Int64)? = nil, column: String, _ problem: Problem) {
    (self.table, self.key, self.column, self.problem) = (table, key, column, problem)
  }

  package var description: String {
    "in the table \(table)\(key.map { ", row \($0.value)" } ?? ""), \(column) \(problem.rawValue)"
  }

  /// The SQL that repairs the row: it removes what cannot be read, or computes a total again. Records that refer to a removed
  /// row remain without what it said.
  package var repair: String {
    if let key { return "DELETE FROM \(table) WHERE \(key.column) = \(key.value)" }
    if column == Self.onlyRow {
      return """
        INSERT INTO contents (last_seq, reserved_seq, emptied_through, count, bytes, evicted, last_evicted, last_connection) \
        SELECT coalesce(max(seq), 0), coalesce(max(seq), 0), 0, count(*), 0, 0, 0, 0 FROM push
        """
    }
    let value =
      switch column {
      case "last_seq": "(SELECT coalesce(max(seq), 0) FROM push)"
      case "reserved_seq": "last_seq"
      case "count": "(SELECT count(*) FROM push)"
      default: "0"
      }
    return "UPDATE \(table) SET \(column) = \(value)"
  }
}

/// A row of which each value is checked when it is read: every type and every range. All rows of a store are read by it, so
/// that nothing that a file or a database contains is relied on.
package struct CheckedRow<Row: StoredRow> {
  private let row: Row
  private let table: StoredTable

  /// - Parameter row: A row with the columns of `table`, in their order.
  package init(_ row: Row, of table: StoredTable) { (self.row, self.table) = (row, table) }

  /// Returns the error for a value.
  package func damage(_ column: Int, _ problem: DamagedRow.Problem) -> DamagedRow {
    DamagedRow(
      table: table.name,
      key: table.hasKey && row.type(of: 0) == .number ? (table.columns[0], row.number(0)) : nil,
      column: table.columns[column], problem)
  }

  /// Returns a number; nil for null.
  ///
  /// - Parameter range: The valid numbers; nil for all of the type.
  package func number<Number: FixedWidthInteger>(
    _ column: Int, in range: ClosedRange<Number>? = nil
  ) throws(DamagedRow) -> Number? {
    switch row.type(of: column) {
    case .null: return nil
    case .number: break
    default: throw damage(column, .notNumber)
    }
    guard let number = Number(exactly: row.number(column)), range?.contains(number) ?? true else {
      throw damage(column, .outOfRange)
    }
    return number
  }

  /// Returns a number.
  ///
  /// - Throws: `DamagedRow` for null too.
  package func required<Number: FixedWidthInteger>(
    _ column: Int, in range: ClosedRange<Number>? = nil
  ) throws(DamagedRow) -> Number {
    guard let number = try number(column, in: range) else { throw damage(column, .missing) }
    return number
  }

  /// Returns a text; nil for null. Invalid UTF-8 is replaced.
  package func text(_ column: Int) throws(DamagedRow) -> String? {
    let text = row.text(column)
    guard text != nil || row.type(of: column) == .null else { throw damage(column, .notText) }
    return text
  }

  /// Returns the value that `convert` makes of a text; nil for null.
  ///
  /// - Throws: `DamagedRow` also if `convert` returns nil.
  package func value<Value>(_ column: Int, _ convert: (String) -> Value?) throws(DamagedRow) -> Value? {
    guard let text = try text(column) else { return nil }
    guard let value = convert(text) else { throw damage(column, .unknown) }
    return value
  }

  /// Calls `read` with bytes.
  ///
  /// - Parameter mayBeText: Whether they may be stored as a text.
  /// - Throws: `DamagedRow` for null too.
  func withBytes<Result>(
    _ column: Int, mayBeText: Bool, _ read: (UnsafeRawBufferPointer) -> Result
  ) throws(DamagedRow) -> Result {
    switch row.type(of: column) {
    case .bytes: break
    case .text where mayBeText: break
    case .null: throw damage(column, .missing)
    default: throw damage(column, .notBytes)
    }
    return row.withBytes(column, read)
  }
}

extension StoredContents {
  /// The numbers that a store can contain: provisional numbers of records begin after them.
  package static let numbers = 0...(1 << 52) - 1
  /// The maximum number of `seq` values without a record, except for evicted ones: memory of some queries grows with it.
  package static let gapLimit = 1 << 32

  /// Reads the totals of a row of the table `contents`. Sums of any two of them do not overflow.
  package init(_ row: CheckedRow<some StoredRow>) throws(DamagedRow) {
    lastSeq = try row.required(0, in: Self.numbers)
    emptiedThrough = try row.required(1, in: Self.numbers)
    count = try row.required(2, in: Self.numbers)
    bytes = try row.required(3, in: Self.numbers)
    evicted = try row.required(4, in: Self.numbers)
    lastEvicted = try row.required(5, in: Self.numbers)
    lastConnection = try row.required(6, in: Self.numbers)
  }

  /// Checks the totals against the records when a store is opened.
  ///
  /// - Parameter newest: The `seq` of the newest record in the store; 0 without one.
  /// - Throws: `DamagedRow` if a new record would get the `seq` of another one, or totals contradict each other.
  package func check(newest: Int) throws(DamagedRow) {
    func check(_ column: String, _ holds: Bool) throws(DamagedRow) {
      guard holds else { throw DamagedRow(table: "contents", column: column, .outOfRange) }
    }
    if !Self.numbers.contains(newest) || newest > lastSeq + Self.gapLimit {
      throw DamagedRow(table: "push", key: ("seq", Int64(newest)), column: "seq", .outOfRange)
    }
    let isPlausible = lastSeq <= max(newest, emptiedThrough + evicted) + Self.gapLimit
    try check("last_seq", lastSeq >= newest && isPlausible)
    try check("emptied_through", emptiedThrough <= lastSeq)
    try check("last_evicted", lastEvicted <= lastSeq + Self.gapLimit)
    try check("count", count <= max(lastSeq, lastEvicted))
  }
}
