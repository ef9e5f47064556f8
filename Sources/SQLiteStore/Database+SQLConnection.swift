internal import APNSMockRules
internal import GRDB
internal import GRDBSQLite
internal import APNSMockInbox

extension Database: SQLConnection {
  static var contentSize: String { "length(headers) + length(CAST(payload AS BLOB))" }

  var clockOffset: Int64 { 0 }

  func forEachRow(_ sql: String, _ parameters: [String?], _ visit: (ResultRow) throws -> Bool) throws {
    // GRDB keeps every cached statement, so those with lists of any length are not cached.
    try forEachRow(sql, parameters, isCached: parameters.count < 16 && !sql.contains(" IN ("), visit)
  }

  func insert(_ records: [PushRecord], _ ids: [ReferenceIDs], progress: () -> Void) throws {
    guard !records.isEmpty else { return }
    let columns = RecordColumn.allCases
    let sql = """
      INSERT INTO push (\(columns.map(\.name).joined(separator: ", "))) \
      VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))
      """
    var row = StatementRow(try cachedStatement(sql: sql), columns)
    for (record, ids) in zip(records, ids) {
      record.write(to: &row, connection: ids.connection, token: ids.token, checks: ids.checks)
      try row.execute()
    }
  }

  func update(_ records: [PushRecord], progress: () -> Void) throws {
    guard !records.isEmpty else { return }
    let columns = RecordColumn.changing
    let sql = "UPDATE push SET \(columns.map { "\($0.name) = ?" }.joined(separator: ", ")) WHERE seq = ?"
    var row = StatementRow(try cachedStatement(sql: sql), columns + [.seq])
    for record in records {
      record.writeResult(to: &row)
      row.set(.seq, Int64(record.seq))
      try row.execute()
    }
  }

  func firstTime(notAfter time: Int64, behind seq: Int) throws -> Int64? {
    // Without reading the records of blocks that all arrived later. The newest block is not written yet.
    let block = try number(
      """
      SELECT coalesce(min(first_seq) FILTER (WHERE oldest <= $1), max(first_seq) + \(Block.size)) FROM block \
      WHERE first_seq >= $2
      """, [String(time), String(Block.first(of: seq + 1))])
    return try number(
      "SELECT received_at FROM push WHERE seq > $1 AND received_at <= $2 ORDER BY seq LIMIT 1",
      [String(max(seq, Int(block ?? 1) - 1)), String(time)])
  }

  func remove(after: Int, through last: Int) throws {
    try execute("DELETE FROM push WHERE seq > $1 AND seq <= $2", [String(after), String(last)])
    try execute("DELETE FROM block WHERE first_seq <= $1", [String(last - Block.size + 1)])
  }
}
