internal import APNSMockRules
internal import APNSMockInbox

extension Connection: SQLConnection {
  static let contentSize = "length(headers)::bigint + length(payload)"

  /// The nanoseconds to add to a monotonic time of this machine for one that all servers understand.
  static let clockOffset = MachineTime.nanosecondsSince1970 - MachineTime.nanoseconds

  var clockOffset: Int64 { Self.clockOffset }

  func forEachRow(_ sql: String, _ parameters: [String?], _ visit: (ResultRow) throws -> Bool) throws {
    let rows = try query(sql, parameters)
    for index in 0..<rows.count { guard try visit(ResultRow(rows: rows, index: index)) else { return } }
  }

  func insert(_ records: [Record], _ ids: [ReferenceIDs], progress: () -> Void) throws {
    guard !records.isEmpty else { return }
    try copy("COPY push (\(CopyRows.columns)) FROM STDIN (FORMAT binary)") { send in
      var rows = CopyRows(clockOffset: clockOffset)
      // By index, because each copy of a record counts its references.
      for index in records.indices {
        rows.beginRow()
        let ids = ids[index]
        records[index].write(to: &rows, connection: ids.connection, token: ids.token, checks: ids.checks)
        guard rows.bytes.count >= 1 << 18 else { continue }
        try send(rows.bytes)
        progress()
        rows.removeSent()
      }
      rows.end()
      try send(rows.bytes)
    }
    try Block.add(records, to: self)
  }

  /// The maximum number of records that one command updates.
  private static let updateLimit = 128

  func update(_ records: [Record], progress: () -> Void) throws {
    let columns = [RecordColumn.seq] + RecordColumn.changing
    let names = columns.map(\.name).joined(separator: ", ")
    let assignments = RecordColumn.changing.map { "\($0.name) = new.\($0.name)" }.joined(separator: ", ")
    // Many at a time, because each command waits for the database.
    for start in stride(from: 0, to: records.count, by: Self.updateLimit) {
      var rows: [String] = []
      var values: [String?] = []
      for index in start..<min(start + Self.updateLimit, records.count) {
        var row = UpdatedRow()
        records[index].writeResult(to: &row)
        let first = values.count + 1
        let parameters = columns.enumerated().map { "$\(first + $0)::\($1.isNumber ? "bigint" : "text")" }
        rows.append("(\(parameters.joined(separator: ", ")))")
        values += [String(records[index].seq)] + row.values
      }
      try query(
        """
        UPDATE push SET \(assignments) FROM (VALUES \(rows.joined(separator: ", "))) AS new (\(names)) \
        WHERE push.seq = new.seq
        """, values)
      progress()
    }
  }

  func firstTime(notAfter time: Int64, behind seq: Int) throws -> Int64? {
    // By their index: those that did not arrive later may be at the end.
    try number(
      "SELECT received_at FROM push WHERE seq > $1 AND received_at <= $2 ORDER BY received_at LIMIT 1",
      [String(seq), String(time)])
  }

  func remove(after: Int, through last: Int) throws {
    try query("DELETE FROM push WHERE seq > $1 AND seq <= $2", [String(after), String(last)])
    try Block.remove(through: last, from: self)
  }
}
