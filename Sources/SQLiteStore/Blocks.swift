internal import APNSMockRules
internal import GRDB
internal import GRDBSQLite
internal import APNSMockInbox
internal import APNSMockNotation

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The index of the table `push`: a row for each 4096 `seq` values, with the times of its records, and hashes of their
/// device tokens, push keys and `apns-id`s.
///
/// A B-tree over random values costs far more. Measured with a million records of 1.4 KB: 5 µs of CPU for each record
/// without an index, 21 with two indexes of numbers, 42 with three of texts, and rising with the size. Reading the hashes
/// of ten million records takes 40 MB and some milliseconds.
enum Block {
  /// The number of `seq` values in a block.
  static let size = 4096

  /// The first `seq` of the block of a record.
  static func first(of seq: Int) -> Int { (seq - 1) / size * size + 1 }
}

/// The newest block, which is written when a record of the next one arrives.
struct OpenBlock: Sendable {
  private var first = 0
  private var times: ClosedRange<ServerTime>?
  private var hashes: [RecordColumn.Hashed: [UInt32]] = [:]

  init() {}

  /// Reads the records of the block with the newest record.
  ///
  /// - Throws: `DamagedRow` if one of them has a value of another type.
  init(_ db: Database) throws {
    guard let last = try db.number("SELECT max(seq) FROM push").map({ Int($0) }), StoredContents.numbers.contains(last),
      last > 0
    else { return }
    begin(at: last)
    let table = StoredTable.indexed
    try db.forEachRow("SELECT \(table.columnList) FROM \(table.name) WHERE seq >= $1", [String(first)]) { row in
      let row = CheckedRow(row, of: table)
      let seq = try row.required(0, in: first...first + Block.size - 1)
      add(time: try row.required(1), at: seq)
      if let token = try row.text(2) { set(.deviceToken, StoredHash.of(token), at: seq) }
      set(.pushKey, StoredHash.of(UInt64(bitPattern: try row.required(3))), at: seq)
      if let id = try row.text(4) { set(.apnsID, StoredHash.of(id), at: seq) }
      return true
    }
  }

  /// Adds new records. Writes each block that they complete.
  mutating func append(_ records: [PushRecord], to db: Database) throws {
    for record in records {
      if Block.first(of: record.seq) != first {
        try write(to: db)
        begin(at: record.seq)
      }
      add(time: record.receivedAt, at: record.seq)
      let hashes = record.hashes
      if let hash = hashes.deviceToken { set(.deviceToken, hash, at: record.seq) }
      if let hash = hashes.id { set(.apnsID, hash, at: record.seq) }
      set(.pushKey, StoredHash.of(record.pushKey.number), at: record.seq)
    }
  }

  private mutating func begin(at seq: Int) {
    first = Block.first(of: seq)
    times = nil
    for column in RecordColumn.Hashed.allCases { hashes[column] = Array(repeating: 0, count: Block.size) }
  }

  private mutating func add(time: ServerTime, at seq: Int) {
    times = times.map { min($0.lowerBound, time)...max($0.upperBound, time) } ?? time...time
  }

  private mutating func set(_ column: RecordColumn.Hashed, _ hash: UInt32, at seq: Int) {
    hashes[column]?[seq - first] = hash
  }

  private func write(to db: Database) throws {
    guard let times else { return }
    let columns = RecordColumn.Hashed.allCases
    var arguments: StatementArguments = [first, times.lowerBound, times.upperBound]
    for column in columns {
      arguments += [hashes[column].map { hashes in hashes.withUnsafeBytes { Data($0) } }]
    }
    try db.execute(
      sql: """
        INSERT OR REPLACE INTO block (first_seq, oldest, newest, \(columns.map(\.rawValue).joined(separator: ", "))) \
        VALUES (?, ?, ?\(columns.map { _ in ", ?" }.joined()))
        """, arguments: arguments)
  }
}

/// Finds the blocks that may contain records of a query.
struct Blocks {
  /// The number of records of a block that are read one by one; if it has more, it is read as a whole.
  private static let singleLimit = 64

  private let db: Database

  init(_ db: Database) { self.db = db }

  /// Returns parts of the range of `query` with all records that match it, in ascending order. A part without a valid row in the
  /// table `block` is searched as a whole, as is the newest block, which is not written yet.
  func parts(of query: StoreQuery, span: Int) throws -> [RecordSlice] {
    let hashed = RecordColumn.Hashed.allCases.lazy.compactMap { column in query.hashes(of: column).map { (column, $0) }
    }
    .first
    var parts: [RecordSlice] = []
    // The first `seq` that no part so far covers.
    var next = query.after + 1
    try db.forEachRow(
      """
      SELECT first_seq, oldest, newest\(hashed.map { ", \($0.0.rawValue)" } ?? "") FROM block \
      WHERE first_seq >= $1 AND first_seq < $2 ORDER BY first_seq
      """, [String(Block.first(of: next)), String(query.before)]
    ) { row in
      let first = Int(row.number(0))
      guard first == Block.first(of: first), first + Block.size > next else { return true }
      try addPresent(next, through: first - 1, of: query, span, to: &parts)
      next = first + Block.size
      if let times = Self.times(of: row), !query.mayContain(times) { return true }
      if let (_, hashes) = hashed, row.type(of: 3) == .bytes,
        let found = row.withBytes(3, { Self.positions(of: hashes, in: $0) }), found.count <= Self.singleLimit
      {
        for position in found { add(first + position, through: first + position, of: query, span, to: &parts) }
      } else {
        add(first, through: first + Block.size - 1, of: query, span, to: &parts)
      }
      return true
    }
    try addPresent(next, through: query.before - 1, of: query, span, to: &parts)
    return parts
  }

  /// Returns the times of a block's records; nil if they are not stored as numbers.
  private static func times(of row: ResultRow) -> ClosedRange<Int64>? {
    guard row.type(of: 1) == .number, row.type(of: 2) == .number else { return nil }
    return row.number(1)...max(row.number(1), row.number(2))
  }

  /// Adds the part of a range from its first to its last record, if it has any.
  private func addPresent(
    _ first: Int, through last: Int, of query: StoreQuery, _ span: Int, to parts: inout [RecordSlice]
  ) throws {
    let range = "FROM push WHERE seq >= $1 AND seq <= $2 ORDER BY seq"
    let bounds = [String(first), String(last)]
    guard first <= last, let oldest = try db.number("SELECT seq \(range) LIMIT 1", bounds),
      let newest = try db.number("SELECT seq \(range) DESC LIMIT 1", bounds)
    else { return }
    add(Int(oldest), through: Int(newest), of: query, span, to: &parts)
  }

  /// Adds the part of a range that the query covers.
  private func add(_ first: Int, through last: Int, of query: StoreQuery, _ span: Int, to parts: inout [RecordSlice]) {
    let (first, last) = (max(first, query.after + 1), min(last, query.before - 1))
    guard first <= last else { return }
    parts += RecordSlice.parts(of: first...last, span: span)
  }

  /// Returns the positions of hashes in the list of a block; nil if that has another size.
  private static func positions(of wanted: [UInt32], in bytes: UnsafeRawBufferPointer) -> [Int]? {
    guard bytes.count == Block.size * MemoryLayout<UInt32>.size else { return nil }
    var positions: [Int] = []
    let hashes = bytes.bindMemory(to: UInt32.self)
    if wanted.count == 1, let wanted = wanted.first {
      for index in hashes.indices where hashes[index] == wanted { positions.append(index) }
    } else {
      let wanted = Set(wanted)
      for index in hashes.indices where wanted.contains(hashes[index]) { positions.append(index) }
    }
    return positions
  }
}

extension StoreQuery {
  /// Returns whether records of these times may match.
  fileprivate func mayContain(_ times: ClosedRange<Int64>) -> Bool {
    conditions.allSatisfy { condition in
      guard condition.column == .receivedAt, !condition.isNegated, case .ranges(let ranges) = condition.test else {
        return true
      }
      return ranges.contains { $0.overlaps(times) }
    }
  }
}
