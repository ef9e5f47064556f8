internal import APNSMockRules
package import APNSMockInbox
internal import NIOConcurrencyHelpers
internal import APNSMockPlatformLibc

/// The schemas of a database that match the pattern of a view, and what each contains.
package final class SchemaList: Sendable {
  /// A schema with an inbox, which its server writes.
  package struct Schema: Sendable {
    /// The name.
    package let name: String
    /// The number by which the database identifies the schema; another one if it was removed and created again.
    package let id: Int64
    /// What it contains, as far as views need it.
    package let contents: StoredContents
    /// Another text after a change of its runs.
    package let runsVersion: String
  }

  private let address: PostgreSQLAddress
  private let connection: ConnectionPool
  /// The schemas that were locked when they were last read.
  private let locked = NIOLockedValueBox<Set<Int64>>([])

  /// Opens no connection.
  package init(_ address: PostgreSQLAddress) {
    self.address = address
    connection = ConnectionPool(address, patience: .seconds(4), size: 1)
  }

  /// Ends the connections.
  package func close() { connection.close() }

  /// The schemas that there are.
  package struct Schemas {
    /// Those that can be read, in the order of their names.
    package fileprivate(set) var readable: [Schema] = []
    /// The numbers of the others.
    package fileprivate(set) var others: Set<Int64> = []
    /// A sentence for each of the others.
    package fileprivate(set) var problems: [String] = []
    /// The sentence for the first of the others that may belong to a server; nil if there is none.
    package fileprivate(set) var obstacle: String?
    /// The numbers of those that are only locked.
    fileprivate var locked: Set<Int64> = []

    fileprivate mutating func leaveOut(_ id: Int64, _ problem: String) {
      problems.append(problem)
      others.insert(id)
    }
  }

  /// The number of attempts to read a schema that was not locked the last time, and the microseconds between them: some locks are
  /// short.
  private static let (attempts, interval) = (4, UInt32(100_000))

  /// Reads the schemas.
  package func read() throws -> Schemas {
    let known = locked.withLockedValue { $0 }
    let schemas = try connection.use { connection in
      for _ in 1..<Self.attempts {
        // A table is missing if its schema is being removed.
        if let schemas = try? read(connection), schemas.locked.isSubset(of: known) { return schemas }
        if connection.isBroken { break }
        usleep(Self.interval)
      }
      return try read(connection)
    }
    locked.withLockedValue { $0 = schemas.locked }
    return schemas
  }

  /// The columns of the totals, and all others that a view reads, as rows in SQL.
  private static let totals = StoredTable.contents.columns.dropLast()
  private static let needed =
    [StoredTable.push, .connection, .providerToken, .checkList].flatMap { table in
      table.columns.map { "('\(table.name)'::name, '\($0)'::name)" }
    } + ["('name', 'name')", "('state', 'name')", "('state', 'value')"]

  /// A schema that this user may read, and whether it has all columns.
  private typealias Candidate = (id: Int64, name: String, isComplete: Bool)

  private func read(_ connection: Connection) throws -> Schemas {
    var schemas = Schemas()
    let readable = try candidates(connection, &schemas)
    guard !readable.isEmpty else { return schemas }
    let rows = try connection.query(
      readable.enumerated().map { index, schema in
        let runs =
          schema.isComplete
          ? "(SELECT value FROM \"\(schema.name)\".state WHERE name = '\(RunList.versionRow)')" : "NULL"
        return """
          SELECT \(Self.totals.joined(separator: ", ")), \(index), version, (SELECT max(seq) FROM "\(schema.name)".push), \(runs)::text \
          FROM "\(schema.name)".contents
          """
      }.joined(separator: " UNION ALL "))
    let rowsOfSchemas = Dictionary(grouping: 0..<rows.count) { Int(rows.number($0, Self.totals.count) ?? 0) }
    for (index, schema) in readable.enumerated() {
      do {
        schemas.readable.append(try Self.schema(schema, rowsOfSchemas[index] ?? [], of: rows))
      } catch {
        schemas.leaveOut(schema.id, error.description)
        schemas.obstacle = schemas.obstacle ?? error.description
      }
    }
    return schemas
  }

  /// Returns the schemas that may be read, and notes the others.
  private func candidates(_ connection: Connection, _ schemas: inout Schemas) throws -> [Candidate] {
    let pattern = (address.pattern ?? address.schema).replacing("_", with: "\\_").replacing("*", with: "%")
    let totals = (Self.totals + ["version"]).map { "'\($0)'" }
    let found = try connection.query(
      """
      SELECT n.oid::bigint, n.nspname::text, has_schema_privilege(n.oid, 'USAGE') AND NOT EXISTS (SELECT FROM pg_class t \
      WHERE t.relnamespace = n.oid AND t.relname IN ('push', 'contents', 'connection', 'provider_token', 'check_list', 'name', \
      'state') AND NOT has_table_privilege(t.oid, 'SELECT')), \
      (SELECT count(*) FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid WHERE t.relnamespace = n.oid \
      AND a.atttypid IN ('integer'::regtype, 'bigint'::regtype) \
      AND (t.relname = 'contents' AND a.attname IN (\(totals.joined(separator: ", "))) \
      OR t.relname = 'push' AND a.attname IN ('seq', 'received_at'))), \
      EXISTS (SELECT FROM pg_locks l JOIN pg_class t ON t.oid = l.relation WHERE t.relnamespace = n.oid \
      AND t.relname IN ('push', 'contents') AND l.mode = 'AccessExclusiveLock' AND l.granted), \
      (SELECT count(*) FROM (VALUES \(Self.needed.joined(separator: ", "))) AS needed (relation, attribute) \
      JOIN pg_class t ON t.relnamespace = n.oid AND t.relname = needed.relation \
      JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = needed.attribute) \
      FROM pg_namespace n WHERE n.nspname LIKE $1 \
      AND 2 = (SELECT count(*) FROM pg_class WHERE relnamespace = n.oid AND relname IN ('push', 'contents')) \
      ORDER BY n.nspname COLLATE "C"
      """, [pattern])
    var readable: [Candidate] = []
    for row in 0..<found.count {
      let (id, name) = (found.number(row, 0) ?? 0, found.text(row, 1) ?? "")
      // Anybody who may create schemas chooses their names, which become parts of commands.
      guard PostgreSQLAddress.isName(name[...]) else {
        let shown = name.debugDescription
        schemas.leaveOut(
          id, "the schema \(shown) has a name that no server uses: give it one that the pattern does not match")
        continue
      }
      var problem: String?
      if found.number(row, 2) != 1 {
        problem = "this user may not read the schema \(name): GRANT USAGE ON SCHEMA and SELECT ON ALL TABLES to it"
      } else if found.number(row, 3) != Int64(totals.count + 2) {
        problem = PostgreSQLError.foreign(viewed: name).description
      } else if found.number(row, 4) == 1 {
        problem = "the tables of the schema \(name) are being changed: wait until its server is ready"
        schemas.locked.insert(id)
      }
      guard let problem else {
        readable.append((id, name, found.number(row, 5) == Int64(Self.needed.count)))
        continue
      }
      schemas.leaveOut(id, problem)
      schemas.obstacle = schemas.obstacle ?? problem
    }
    return readable
  }

  /// Returns a schema.
  ///
  /// - Parameter numbers: The numbers of its rows of the table `contents` in `rows`.
  /// - Throws: Why it cannot be read.
  private static func schema(_ schema: Candidate, _ numbers: [Int], of rows: Rows) throws(PostgreSQLError) -> Schema {
    guard numbers.count == 1 else { throw .damaged(schema: schema.name, rows: numbers.count) }
    let row = numbers[0]
    let version = Int(rows.number(row, totals.count + 1) ?? 0)
    guard version <= PostgreSQLStore.schemaVersion else { throw .newer(schema: schema.name, version: version) }
    guard version >= PostgreSQLStore.oldestSchemaVersion else { throw .tooOld(schema: schema.name, version: version) }
    guard version == PostgreSQLStore.schemaVersion else { throw .older(schema: schema.name, version: version) }
    guard schema.isComplete else { throw .foreign(viewed: schema.name) }
    do {
      let contents = try StoredContents(rows.checked(row, of: .contents))
      try contents.check(newest: Int(rows.number(row, totals.count + 2) ?? 0))
      return Schema(
        name: schema.name, id: schema.id, contents: contents, runsVersion: rows.text(row, totals.count + 3) ?? "")
    } catch {
      throw .damaged(schema: schema.name, error)
    }
  }
}

/// What a view needs of a schema besides its records.
extension PostgreSQLStore {
  /// The version of the tables that this program reads.
  static var schemaVersion: Int { Schema.version }
  /// The oldest version that a server changes.
  static var oldestSchemaVersion: Int { Schema.oldestVersion }

  /// Returns the `seq` of the newest record that arrived at each of these times or before; 0 if there is none. If a clock was set
  /// back, it may be any record that arrived by that time.
  package func seqs(atTimes times: [Int64]) throws -> [Int] {
    try readers.use { connection in
      let rows = try connection.query(
        """
        SELECT (SELECT seq FROM push WHERE received_at <= time ORDER BY received_at DESC LIMIT 1) \
        FROM unnest($1::bigint[]) WITH ORDINALITY AS times (time, number) ORDER BY number
        """, ["{\(times.map { String($0) }.joined(separator: ","))}"])
      return (0..<rows.count).map { Int(rows.number($0, 0) ?? 0) }
    }
  }

  /// Returns when the records with these `seq` values arrived, or those after them; fewer times if there are none.
  package func times(ofSamples seqs: [Int]) throws -> [Int64] {
    try readers.use { connection in
      let rows = try connection.query(
        "SELECT (SELECT received_at FROM push WHERE push.seq >= sample ORDER BY push.seq LIMIT 1) FROM unnest($1::bigint[]) AS sample",
        ["{\(seqs.map { String($0) }.joined(separator: ","))}"])
      return (0..<rows.count).compactMap { rows.number($0, 0) }
    }
  }

  /// Returns when the records of a range arrived, in the order of their `seq`.
  package func times(of range: ClosedRange<Int>) throws -> [(seq: Int, receivedAt: Int64)] {
    try readers.use { connection in
      let rows = try connection.query(
        "SELECT seq, received_at FROM push WHERE seq BETWEEN $1 AND $2 ORDER BY seq",
        [String(range.lowerBound), String(range.upperBound)])
      return (0..<rows.count).map { (Int(rows.number($0, 0) ?? 0), rows.number($0, 1) ?? 0) }
    }
  }
}
