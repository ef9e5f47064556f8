internal import APNSMockRules
package import APNSMockInbox
internal import NIOConcurrencyHelpers

extension PostgreSQLStore {
  private static let columns = RecordColumn.allCases.map(\.name).joined(separator: ", ")

  private func records(
    of rows: Rows, _ connection: Connection, _ references: inout ReferenceCache, skip: ((Int, any Error) -> Void)?
  ) throws -> [Record] {
    var reader = StoredRecordReader()
    var records: [Record] = []
    func read(_ rows: [CheckedRow<ResultRow>]) throws {
      try references.read(for: rows, connection)
      for row in rows {
        let (facts, token, checks) = try references.references(of: row, connection)
        records.append(
          try reader.record(of: row, connection: facts, token: token, checks: checks, clockOffset: clockOffset))
      }
    }
    let checked = (0..<rows.count).map { rows.checked($0, of: .push) }
    do {
      try read(checked)
    } catch let damage as DamagedRow {
      guard let skip else { throw PostgreSQLError.damaged(damage) }
      // One by one, because the damaged row may be one that several refer to.
      records.removeAll()
      for (index, row) in checked.enumerated() {
        do {
          try read([row])
        } catch let damage as DamagedRow {
          skip(Int(rows.number(index, RecordColumn.seq.rawValue) ?? 0), PostgreSQLError.damaged(damage))
        }
      }
    }
    return records
  }

  package func forEach(_ query: StoreQuery, _ visit: (borrowing Record) -> Bool) throws {
    guard let query = try readers.use({ try Block.narrowed(query, $0) }) else { return }
    if query.readsContents.headers || query.readsContents.payload {
      return try forEachCandidate(query) { seqs in
        try records("seq = ANY ($1::bigint[])", [seqs], of: query, limit: Self.pageSize).records.allSatisfy {
          visit($0)
        }
      }
    }
    try forEach(query, visit) { part, limit in
      let condition = SQLCondition(part, .postgresql)
      return try records(condition.sql, condition.parameters, of: part, limit: limit)
    }
  }

  /// The number of records that are read at once.
  static let pageSize = 256

  /// Returns the first records of a query that meet a condition, and the `seq` of the last one if there may be more.
  private func records(
    _ condition: String, _ parameters: [String?], of query: StoreQuery, limit: Int
  ) throws -> (records: [Record], last: Int?) {
    var damaged: [(seq: Int, error: any Error)] = []
    func skip(_ seq: Int, _ error: any Error) { damaged.append((seq, error)) }
    let found: (records: [Record], last: Int?) = try readers.use { connection in
      damaged = []
      let rows = try connection.query(
        """
        SELECT \(Self.columns) FROM push WHERE \(condition) ORDER BY seq \(query.newestFirst ? "DESC" : "ASC") \
        LIMIT \(limit)
        """, parameters)
      // A copy, so that no other query waits for the lock while this one reads from the database.
      var cache = references.withLockedValue { $0 }
      defer { references.withLockedValue { $0 = cache } }
      let last = rows.count == limit ? rows.number(limit - 1, RecordColumn.seq.rawValue).map { Int($0) } : nil
      return (try records(of: rows, connection, &cache, skip: query.skip == nil ? nil : skip), last)
    }
    // Not before, because it may need a connection too.
    for (seq, error) in damaged { query.skip?(seq, error) }
    return found
  }

  package func count(_ query: StoreQuery, limit: Int) throws -> Int {
    let condition = SQLCondition(query, .postgresql)
    return try readers.use { connection in
      let rows = try connection.query(
        "SELECT count(*) FROM (SELECT 1 FROM push WHERE \(condition.sql) LIMIT \(limit)) AS found",
        condition.parameters)
      return Int(rows.number(0, 0) ?? 0)
    }
  }

  /// The maximum number of matches of an index that are listed; more of them are searched like any other condition.
  private static let indexLimit = 50_000

  package func parts(of query: StoreQuery, span: Int) throws -> [RecordSlice] {
    try readers.use { connection in
      guard let query = try Block.narrowed(query, connection) else { return [] }
      let condition = SQLCondition(query, .postgresql)
      if RecordColumn.Hashed.allCases.contains(where: { query.hashes(of: $0) != nil }) {
        let found = try connection.query(
          "SELECT seq FROM push WHERE \(condition.sql) ORDER BY seq LIMIT \(Self.indexLimit + 1)", condition.parameters)
        if found.count <= Self.indexLimit {
          return stride(from: 0, to: found.count, by: 256).map { start in
            let end = min(start + 256, found.count) - 1
            return RecordSlice(
              after: Int(found.number(start, 0) ?? 0) - 1, before: Int(found.number(end, 0) ?? 0) + 1)
          }
        }
      }
      let bounds = try connection.query(
        "SELECT min(seq), max(seq) FROM push WHERE seq > $1 AND seq < $2", [String(query.after), String(query.before)])
      guard let first = bounds.number(0, 0), let last = bounds.number(0, 1) else { return [] }
      return RecordSlice.parts(of: Int(first)...Int(last), span: span)
    }
  }

  package func contains(name: String) throws -> Bool { try readers.use { try $0.contains(name: name) } }

  package func seqsOfStorage(limit: Int) throws -> [Int] { try readers.use { try $0.seqsOfStorage(limit: limit) } }

  package func serverState() throws -> [String: String] { try readers.use { try $0.serverState() } }

  /// Returns the rows of the server's state whose names begin with `prefix`.
  package func serverState(prefix: String) throws -> [String: String] {
    try readers.use { try $0.serverState(prefix: prefix) }
  }
}
