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
