internal import APNSRules
internal import GRDB
internal import GRDBSQLite
internal import Inbox
internal import Notation

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
  init(_ db: Database) throws {
    guard let last = try Int.fetchOne(db, sql: "SELECT max(seq) FROM push") else { return }
    begin(at: last)
    let rows = try Row.fetchCursor(
      db, sql: "SELECT seq, received_at, device_token, push_key, apns_id FROM push WHERE seq >= ?", arguments: [first])
    while let row = try rows.next() {
      let seq: Int = row[0]
      add(time: row[1], at: seq)
      if let token: String = row[2] { set(.deviceToken, StoredHash.of(token), at: seq) }
      if let key: Int64 = row[3] { set(.pushKey, StoredHash.of(UInt64(bitPattern: key)), at: seq) }
      if let id: String = row[4] { set(.apnsID, StoredHash.of(id), at: seq) }
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

  /// Returns parts of the range of `query` with all records that match it, in ascending order.
  func parts(of query: StoreQuery, span: Int) throws -> [RecordSlice] {
    let hashed = RecordColumn.Hashed.allCases.lazy.compactMap { column in query.hashes(of: column).map { (column, $0) }
    }
    .first
    // Read first: a block that is written in the meantime is then part of the range after it.
    let last = try Int.fetchOne(db, sql: "SELECT max(first_seq) FROM block") ?? 1 - Block.size
    let statement = try db.cachedStatement(
      sql: """
        SELECT first_seq, oldest, newest\(hashed.map { ", \($0.0.rawValue)" } ?? "") FROM block \
        WHERE first_seq >= ? AND first_seq < ? AND first_seq <= ? ORDER BY first_seq
        """)
    statement.arguments = [Block.first(of: query.after + 1), query.before, last]
    let handle = statement.sqliteStatement
    defer { sqlite3_reset(handle) }
    var parts: [RecordSlice] = []
    while true {
      switch sqlite3_step(handle) {
      case SQLITE_ROW: break
      case SQLITE_DONE:
        // The newest block is not written yet.
        add(last + Block.size, through: query.before - 1, of: query, span, to: &parts)
        return parts
      case let code: throw DatabaseError(resultCode: ResultCode(rawValue: code), message: db.lastErrorMessage)
      }
      let first = Int(sqlite3_column_int64(handle, 0))
      let times =
        sqlite3_column_int64(handle, 1)...max(sqlite3_column_int64(handle, 1), sqlite3_column_int64(handle, 2))
      guard query.mayContain(times) else { continue }
      if let (_, hashes) = hashed {
        let bytes = UnsafeRawBufferPointer(
          start: sqlite3_column_blob(handle, 3), count: Int(sqlite3_column_bytes(handle, 3)))
        let found = Self.positions(of: hashes, in: bytes)
        if found.count <= Self.singleLimit {
          for position in found { add(first + position, through: first + position, of: query, span, to: &parts) }
          continue
        }
      }
      add(first, through: first + Block.size - 1, of: query, span, to: &parts)
    }
  }

  /// Adds the part of a range that the query covers.
  private func add(_ first: Int, through last: Int, of query: StoreQuery, _ span: Int, to parts: inout [RecordSlice]) {
    let (first, last) = (max(first, query.after + 1), min(last, query.before - 1))
    guard first <= last else { return }
    for start in stride(from: first, through: last, by: span) {
      parts.append(RecordSlice(after: start - 1, before: min(start + span, last + 1)))
    }
  }

  /// Returns the positions of hashes in a list of them.
  private static func positions(of wanted: [UInt32], in bytes: UnsafeRawBufferPointer) -> [Int] {
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

/// Removes records from the table `push` in small steps.
struct Removal {
  private let db: Database

  init(_ db: Database) { self.db = db }

  /// Removes the oldest records that exceed the limits of a batch, at most `StoreBatch.removalLimit`.
  ///
  /// - Parameter contents: What the store contains before.
  func removeOldest(_ batch: StoreBatch, of contents: StoredContents) throws -> RemovedRecords {
    var excess = ExcessRecords(batch, of: contents)
    guard excess.arePossible else { return excess.removed }
    let rows = try Row.fetchCursor(
      db,
      sql: """
        SELECT seq, received_at, length(headers) + length(CAST(payload AS BLOB)) FROM push WHERE seq > ? ORDER BY seq \
        LIMIT \(StoreBatch.removalLimit)
        """, arguments: [contents.emptiedThrough])
    while let row = try rows.next(),
      excess.examine(seq: row[0], receivedAt: row[1], size: (row[2] as Int? ?? 0) + PushRecord.storedColumnsSize)
    {}
    if let (lastSeq, latestTime) = excess.unresolved, let time = try firstTime(notAfter: latestTime, behind: lastSeq) {
      excess.resolve(nextReceivedAt: time)
    }
    if excess.removed.count > 0 { try remove(after: contents.emptiedThrough, through: excess.removed.lastSeq) }
    return excess.removed
  }

  /// Returns the time of the first record after `seq` that did not arrive later than `time`.
  private func firstTime(notAfter time: ServerTime, behind seq: Int) throws -> ServerTime? {
    // Without reading the records of blocks that all arrived later. The newest block is not written yet.
    let block = try Int.fetchOne(
      db,
      sql: """
        SELECT coalesce(min(first_seq) FILTER (WHERE oldest <= ?), max(first_seq) + \(Block.size)) FROM block \
        WHERE first_seq >= ?
        """, arguments: [time, Block.first(of: seq + 1)])
    return try ServerTime.fetchOne(
      db, sql: "SELECT received_at FROM push WHERE seq > ? AND received_at <= ? ORDER BY seq LIMIT 1",
      arguments: [max(seq, (block ?? 0) - 1), time])
  }

  /// Removes records.
  func remove(_ seqs: [Int]) throws -> RemovedRecords {
    var removed = RemovedRecords()
    for seq in seqs {
      let statement = try db.cachedStatement(
        sql: "DELETE FROM push WHERE seq = ? RETURNING length(headers) + length(CAST(payload AS BLOB))")
      guard let size = try Int.fetchOne(statement, arguments: [seq]) else { continue }
      removed.count += 1
      removed.bytes += size + PushRecord.storedColumnsSize
      removed.lastSeq = max(removed.lastSeq, seq)
    }
    return removed
  }

  /// Removes records that are hidden because the inbox was emptied.
  ///
  /// - Returns: Whether there may be more.
  func removeSome(through seq: Int) throws -> Bool {
    guard seq > 0 else { return false }
    let last = try Int.fetchOne(
      db,
      sql: "SELECT max(seq) FROM (SELECT seq FROM push WHERE seq <= ? ORDER BY seq LIMIT \(StoreBatch.removalLimit))",
      arguments: [seq])
    guard let last else { return false }
    try remove(after: 0, through: last)
    return last < seq
  }

  /// Removes some connections and provider tokens to which no record refers any more.
  ///
  /// The writer refers only to the newest `WrittenIDs.capacity` of each, so the records after the oldest one refer to none
  /// that is older by more.
  func removeUnreferenced() throws {
    for (table, column) in [("connection", "connection"), ("provider_token", "token")] {
      let statement = try db.cachedStatement(
        sql: """
          DELETE FROM \(table) WHERE id IN (SELECT id FROM \(table) WHERE id < (CASE WHEN EXISTS (SELECT 1 FROM push) \
          THEN (SELECT \(column) FROM push ORDER BY seq LIMIT 1) ELSE (SELECT max(id) FROM \(table)) END) \
          - \(WrittenIDs.capacity) ORDER BY id LIMIT \(StoreBatch.removalLimit))
          """)
      try statement.execute()
    }
  }

  private func remove(after: Int, through last: Int) throws {
    try db.execute(sql: "DELETE FROM push WHERE seq > ? AND seq <= ?", arguments: [after, last])
    try db.execute(sql: "DELETE FROM block WHERE first_seq <= ?", arguments: [last - Block.size + 1])
  }
}
