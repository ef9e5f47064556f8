internal import APNSMockRules
internal import GRDB
internal import GRDBSQLite
internal import APNSMockInbox

/// A connection to the database of a file.
struct SQLiteConnection: SQLConnection {
  static let contentSize = "length(headers) + length(CAST(payload AS BLOB))"

  let clockOffset: Int64 = 0
  let db: Database

  init(_ db: Database) { self.db = db }

  private static let maxCachedParameters = 16

  func forEachRow(_ sql: String, _ parameters: [String?], _ visit: (ResultRow) throws -> Bool) throws {
    // GRDB keeps every cached statement, so those with lists of any length are not cached.
    let isCached = parameters.count < Self.maxCachedParameters && !sql.contains(" IN (")
    try db.forEachRow(sql, StatementArguments(parameters), isCached: isCached, visit)
  }

  func insert(_ records: [PushRecord], _ ids: [ReferenceIDs], progress: () -> Void) throws {
    guard !records.isEmpty else { return }
    let columns = RecordColumn.allCases
    let sql = """
      INSERT INTO push (\(columns.map(\.name).joined(separator: ", "))) \
      VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))
      """
    var row = StatementRow(try db.cachedStatement(sql: sql), columns)
    for (record, ids) in zip(records, ids) {
      record.write(to: &row, connection: ids.connection, token: ids.token, checks: ids.checks)
      try row.execute()
    }
  }

  func update(_ records: [PushRecord], progress: () -> Void) throws {
    guard !records.isEmpty else { return }
    let columns = RecordColumn.changing
    let sql = "UPDATE push SET \(columns.map { "\($0.name) = ?" }.joined(separator: ", ")) WHERE seq = ?"
    var row = StatementRow(try db.cachedStatement(sql: sql), columns + [.seq])
    for record in records {
      record.writeResult(to: &row)
      row.set(.seq, Int64(record.seq))
      try row.execute()
    }
  }

  func firstTime(notAfter time: Int64, behind seq: Int) throws -> Int64? {
    // Without reading the records of blocks that all arrived later. The newest block is not written yet.
    let block = try db.number(
      """
      SELECT coalesce(min(first_seq) FILTER (WHERE oldest <= ?), max(first_seq) + \(Block.size)) FROM block \
      WHERE first_seq >= ?
      """, [time, Block.first(of: seq + 1)])
    return try db.number(
      "SELECT received_at FROM push WHERE seq > ? AND received_at <= ? ORDER BY seq LIMIT 1",
      [max(seq, (block ?? 1) - 1), time]
    ).map { Int64($0) }
  }

  func remove(after: Int, through last: Int) throws {
    try db.execute(sql: "DELETE FROM push WHERE seq > ? AND seq <= ?", arguments: [after, last])
    try db.execute(sql: "DELETE FROM block WHERE first_seq <= ?", arguments: [last - Block.size + 1])
  }
}
