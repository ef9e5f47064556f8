internal import APNSMockInbox

/// Rows for COPY in binary format, as the documentation of PostgreSQL describes it under COPY.
struct CopyRows: RowWriter {
  /// The columns of the table `push` in the order of the rows.
  static let columns = RecordColumn.inOrderOfWriting.map(\.name).joined(separator: ", ")
  private static let header: [UInt8] = Array("PGCOPY\n".utf8) + [0xFF, 0x0D, 0x0A, 0] + [UInt8](repeating: 0, count: 8)

  private(set) var bytes = Self.header
  private let clockOffset: Int64

  /// - Parameter clockOffset: The nanoseconds to add to a monotonic time of this machine for one that all servers understand.
  init(clockOffset: Int64) { self.clockOffset = clockOffset }

  /// Begins a row. `Record.write` writes its columns.
  mutating func beginRow() { append(Int16(RecordColumn.inOrderOfWriting.count)) }

  mutating func setNull(_ column: RecordColumn) { append(Int32(-1)) }

  mutating func set(_ column: RecordColumn, _ number: Int64) {
    // An imported record may have any time.
    let number = column == .arrivedAt ? number &+ clockOffset : number
    // Together, because this is what most columns contain.
    let value = (
      UInt32(8).bigEndian, UInt32(truncatingIfNeeded: number >> 32).bigEndian,
      UInt32(truncatingIfNeeded: number).bigEndian
    )
    withUnsafeBytes(of: value) { bytes.append(contentsOf: $0) }
  }

  mutating func set(_ column: RecordColumn, text: UnsafeRawBufferPointer) {
    guard text.contains(0) else { return append(text) }
    text.withoutZeros.withUnsafeBytes { append($0) }
  }

  mutating func set(_ column: RecordColumn, bytes: UnsafeRawBufferPointer, isText: @autoclosure () -> Bool) {
    append(bytes)
  }

  private mutating func append(_ value: UnsafeRawBufferPointer) {
    append(Int32(value.count))
    bytes.append(contentsOf: value)
  }

  /// Completes the data.
  mutating func end() { append(Int16(-1)) }

  /// Forgets the rows that were sent.
  mutating func removeSent() { bytes.removeAll(keepingCapacity: true) }

  private mutating func append(_ number: some FixedWidthInteger) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
  }
}

extension UnsafeRawBufferPointer {
  /// The bytes of a text as PostgreSQL can store it: question marks replace zeros, which its texts cannot contain.
  fileprivate var withoutZeros: [UInt8] { map { $0 == 0 ? UInt8(ascii: "?") : $0 } }
}

/// The values of an UPDATE as parameters.
struct UpdatedRow: RowWriter {
  private(set) var values = [String?](repeating: nil, count: RecordColumn.changing.count)

  private mutating func set(_ column: RecordColumn, to value: String?) {
    if let index = RecordColumn.changing.firstIndex(of: column) { values[index] = value }
  }

  mutating func setNull(_ column: RecordColumn) { set(column, to: nil) }
  mutating func set(_ column: RecordColumn, _ number: Int64) { set(column, to: String(number)) }
  mutating func set(_ column: RecordColumn, text: UnsafeRawBufferPointer) {
    set(column, to: String(decoding: text.withoutZeros, as: UTF8.self))
  }
  mutating func set(_ column: RecordColumn, bytes: UnsafeRawBufferPointer, isText: @autoclosure () -> Bool) {
    set(column, text: bytes)
  }
}

/// A row of a result.
struct ResultRow: StoredRow {
  let rows: Rows
  let index: Int

  func type(of column: Int) -> StoredType { rows.type(index, column) }

  func number(_ column: Int) -> Int64 { rows.number(index, column) ?? 0 }

  func withBytes<Result>(_ column: Int, _ read: (UnsafeRawBufferPointer) -> Result) -> Result {
    rows.withBytes(index, column) { read($0 ?? UnsafeRawBufferPointer(start: nil, count: 0)) }
  }
}

extension Rows {
  /// Returns the row at an index, whose values are checked. It has the columns of `table`.
  func checked(_ index: Int, of table: StoredTable) -> CheckedRow<ResultRow> {
    CheckedRow(ResultRow(rows: self, index: index), of: table)
  }
}

/// A condition in SQL with its parameters.
struct SQLCondition {
  private(set) var sql: String
  private(set) var parameters: [String?]

  /// Creates the condition of a query: its range, and the conditions on columns.
  init(_ query: StoreQuery) {
    sql = "seq > $1 AND seq < $2"
    parameters = [String(query.after), String(query.before)]
    for condition in query.conditions { add(condition) }
  }

  private mutating func add(_ condition: ColumnCondition) {
    let name = condition.column.name
    let test: String
    switch condition.test {
    case .texts(let texts, let foldsCase):
      // Device tokens are stored in lower case.
      let folds = foldsCase || condition.column == .deviceToken
      let column = condition.column == .deviceToken || !folds ? name : "lower(\(name))"
      let list = texts.map { parameter(folds ? $0.lowercasedASCII : $0) }
      var found = "\(column) IN (\(list.joined(separator: ", ")))"
      if condition.column == .deviceToken || condition.column == .apnsID && folds {
        // What the index contains: values may be longer than it allows.
        found += " AND left(\(column), 200) IN (\(list.map { "left(\($0), 200)" }.joined(separator: ", ")))"
      }
      test = texts.isEmpty ? "false" : found
    case .ranges(let ranges):
      let list = ranges.map { range in
        let lower = parameter(String(range.lowerBound))
        return range.lowerBound == range.upperBound
          ? "\(name) = \(lower)" : "\(name) BETWEEN \(lower) AND \(parameter(String(range.upperBound)))"
      }
      test = list.isEmpty ? "false" : list.joined(separator: " OR ")
    }
    sql += condition.isNegated ? " AND (\(name) IS NULL OR NOT (\(test)))" : " AND (\(test))"
  }

  /// Adds a condition in SQL.
  mutating func append(_ condition: String) { sql += " AND " + condition }

  /// Adds bytes as a parameter and returns its name.
  mutating func parameter(bytes: [UInt8]) -> String {
    parameters.append("\\x" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())
    return "$\(parameters.count)::bytea"
  }

  private mutating func parameter(_ value: String) -> String {
    parameters.append(value.contains("\0") ? String(value.map { $0 == "\0" ? "?" : $0 }) : value)
    return "$\(parameters.count)"
  }
}

extension String {
  /// The text with ASCII letters in lower case, as `lower` of PostgreSQL returns it with the collation `C`.
  fileprivate var lowercasedASCII: String {
    String(decoding: utf8.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}
