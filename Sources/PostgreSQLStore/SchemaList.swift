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

  private func read(_ connection: Connection) throws -> Schemas {
    let pattern = (address.pattern ?? address.schema).replacing("_", with: "\\_").replacing("*", with: "%")
    let found = try connection.query(
      """
      SELECT n.oid::bigint, n.nspname::text, has_schema_privilege(n.oid, 'USAGE') AND NOT EXISTS (SELECT FROM pg_class t \
      WHERE t.relnamespace = n.oid AND t.relname IN ('push', 'contents', 'connection', 'provider_token', 'check_list', 'name') \
      AND NOT has_table_privilege(t.oid, 'SELECT')), count(a.attname), \
      EXISTS (SELECT FROM pg_locks l JOIN pg_class t ON t.oid = l.relation WHERE t.relnamespace = n.oid \
      AND t.relname IN ('push', 'contents') AND l.mode = 'AccessExclusiveLock' AND l.granted) \
      FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'contents' \
      LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname IN \
      ('version', 'last_seq', 'emptied_through', 'count', 'bytes', 'evicted', 'last_evicted') \
      WHERE n.nspname LIKE $1 AND EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname = 'push') \
      GROUP BY n.oid, n.nspname ORDER BY n.nspname COLLATE "C"
      """, [pattern])
    var schemas = Schemas()
    var readable: [(id: Int64, name: String)] = []
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
      } else if found.number(row, 3) != 7 {
        problem = "the schema \(name) has tables of another program: choose a pattern that leaves it out"
      } else if found.number(row, 4) == 1 {
        problem = "the tables of the schema \(name) are being changed: wait until its server is ready"
        schemas.locked.insert(id)
      }
      guard let problem else {
        readable.append((id, name))
        continue
      }
      schemas.leaveOut(id, problem)
      schemas.obstacle = schemas.obstacle ?? problem
    }
    guard !readable.isEmpty else { return schemas }
    let rows = try connection.query(
      readable.indices.map { index in
        "SELECT \(index), version, last_seq, emptied_through, count, bytes, evicted, last_evicted "
          + "FROM \"\(readable[index].name)\".contents"
      }.joined(separator: " UNION ALL ") + " ORDER BY 1")
    for row in 0..<rows.count {
      func number(_ column: Int) -> Int { Int(rows.number(row, column) ?? 0) }
      let (id, name) = readable[number(0)]
      guard number(1) == PostgreSQLStore.schemaVersion else {
        let problem = Self.problem(ofVersion: number(1), of: name)
        schemas.leaveOut(id, problem)
        schemas.obstacle = schemas.obstacle ?? problem
        continue
      }
      var contents = StoredContents()
      (contents.lastSeq, contents.emptiedThrough, contents.count) = (number(2), number(3), number(4))
      (contents.bytes, contents.evicted, contents.lastEvicted) = (number(5), number(6), number(7))
      schemas.readable.append(Schema(name: name, id: id, contents: contents))
    }
    return schemas
  }

  private static func problem(ofVersion version: Int, of name: String) -> String {
    if version > PostgreSQLStore.schemaVersion { return "\(PostgreSQLError.newer(schema: name, version: version))" }
    if version < PostgreSQLStore.oldestSchemaVersion {
      return "\(PostgreSQLError.tooOld(schema: name, version: version))"
    }
    return
      "the schema \(name) has the format \(version) of an older version, this one reads \(PostgreSQLStore.schemaVersion): "
      + "start a server of this version with it, which changes its tables, and wait until that server is ready"
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
