internal import APNSRules
internal import Inbox

/// The rows that the rows of `push` refer to, for the writer: what several records share is written once.
struct WrittenIDs: Sendable {
  /// The maximum number of connections, and of provider tokens, that are remembered.
  private static let capacity = 4096

  // The objects are kept alive, so that no other object gets the same identifier.
  private var connections: [ObjectIdentifier: (facts: ConnectionFacts, id: Int64)] = [:]
  private var tokens: [ObjectIdentifier: (token: ProviderToken, id: Int64)] = [:]
  private var checks: [UInt64: Int64] = [:]
  private var names: Set<String> = []
  /// The number of newer ids after which an id is not used again: those that are remembered, and those of one batch.
  static let lifetime = capacity + RecordWriter.batchLimit

  /// What a row of `push` refers to.
  typealias IDs = (connection: Int64, token: Int64?, checks: Int64?)

  /// Returns the ids of what records refer to. Inserts the rows that are missing, many with one command.
  ///
  /// - Parameters:
  ///   - clockOffset: The nanoseconds to add to a monotonic time of this machine for one that all servers understand.
  ///   - progress: Is called when the database has executed a command.
  mutating func ids(
    of records: [Record], _ database: Connection, _ clockOffset: Int64, _ progress: () -> Void = {}
  ) throws(PostgreSQLError) -> [IDs] {
    // Not later, because those of this batch are needed.
    if connections.count >= Self.capacity { connections.removeAll() }
    if tokens.count >= Self.capacity { tokens.removeAll() }
    var newConnections: [ObjectIdentifier: ConnectionFacts] = [:]
    var newTokens: [ObjectIdentifier: ProviderToken] = [:]
    for index in records.indices {
      let facts = records[index].connection
      if connections[ObjectIdentifier(facts)] == nil { newConnections[ObjectIdentifier(facts)] = facts }
      guard let token = records[index].verdict?.token, tokens[ObjectIdentifier(token)] == nil else { continue }
      newTokens[ObjectIdentifier(token)] = token
    }
    try Self.insert(
      Array(newConnections.values), into: "connection",
      "name, listener, environment, client, sni, tls, http, certificate, opened_ns, identity", database, progress
    ) { facts in
      [
        facts.id, String(facts.listener), facts.environment.rawValue, facts.client, facts.sni, facts.tls,
        facts.http.rawValue, facts.certificate?.json, String(facts.openedAt &+ clockOffset),
        String(Int64(bitPattern: facts.identity)),
      ]
    } didInsert: { facts, id in
      connections[ObjectIdentifier(facts)] = (facts, id)
    }
    try Self.insert(
      Array(newTokens.values), into: "provider_token", "key_id, team_id, issued_at, signature, identity", database,
      progress
    ) { token in
      [
        token.keyID, token.teamID, token.issuedAt.map { String($0) }, token.signature.rawValue,
        String(Int64(bitPattern: token.identity)),
      ]
    } didInsert: { token, id in
      tokens[ObjectIdentifier(token)] = (token, id)
    }
    var result: [IDs] = []
    result.reserveCapacity(records.count)
    for index in records.indices {
      let verdict = records[index].verdict
      let checks: Int64? = if let verdict { try id(of: verdict, database) } else { nil }
      result.append(
        (
          connections[ObjectIdentifier(records[index].connection)]?.id ?? 0,
          verdict?.token.flatMap { tokens[ObjectIdentifier($0)]?.id }, checks
        ))
    }
    return result
  }

  /// The maximum number of rows that one command inserts.
  private static let insertLimit = 500

  /// Inserts a row for each object. The ids are taken first: the order in which an INSERT returns them is not guaranteed.
  private static func insert<Object>(
    _ objects: [Object], into table: String, _ columns: String, _ database: Connection, _ progress: () -> Void,
    values: (Object) -> [String?], didInsert: (Object, Int64) -> Void
  ) throws(PostgreSQLError) {
    for start in stride(from: 0, to: objects.count, by: insertLimit) {
      let part = objects[start..<min(start + insertLimit, objects.count)]
      let found = try database.query(
        "SELECT nextval(pg_get_serial_sequence($1, 'id')) FROM generate_series(1, $2::bigint)",
        [table, String(part.count)])
      progress()
      let ids = (0..<found.count).map { found.number($0, 0) ?? 0 }
      var rows: [String] = []
      var parameters: [String?] = []
      for (id, object) in zip(ids, part) {
        let row = [String(id)] + values(object)
        rows.append("(\((1...row.count).map { "$\(parameters.count + $0)" }.joined(separator: ", ")))")
        parameters += row
      }
      try database.query("INSERT INTO \(table) (id, \(columns)) VALUES \(rows.joined(separator: ", "))", parameters)
      progress()
      for (id, object) in zip(ids, part) { didInsert(object, id) }
    }
  }

  private mutating func id(of verdict: Verdict, _ database: Connection) throws(PostgreSQLError) -> Int64 {
    if let known = checks[verdict.applicableCheckBits] { return known }
    let names = verdict.applicableCheckNames.joined(separator: ",")
    try database.query("INSERT INTO check_list (names) VALUES ($1) ON CONFLICT DO NOTHING", [names])
    let id = try database.query("SELECT id FROM check_list WHERE names = $1", [names]).number(0, 0) ?? 0
    checks[verdict.applicableCheckBits] = id
    return id
  }

  /// Stores the names of rules, profiles and unusual reasons of records, which conditions may name.
  mutating func insertNames(of records: [Record], _ database: Connection) throws(PostgreSQLError) {
    for index in records.indices {
      for name in records[index].usedNames() where !names.contains(name) {
        try database.query("INSERT INTO name VALUES (left($1, 500)) ON CONFLICT DO NOTHING", [name])
        if names.count < Self.capacity { names.insert(name) }
      }
    }
  }
}

extension ReferenceCache {
  /// Reads the connections and provider tokens of rows of the table `push` that are not known, each kind with one command.
  mutating func read(for rows: [CheckedRow<ResultRow>], _ database: Connection, _ clockOffset: Int64) throws {
    let unknown = try unknown(in: rows)
    func read(_ table: StoredTable, _ ids: Set<Int64>, _ add: (CheckedRow<ResultRow>, Int64) throws -> Void) throws {
      guard !ids.isEmpty else { return }
      let found = try database.query(
        "SELECT \(table.columnList) FROM \(table.name) WHERE id = ANY ($1::bigint[])", [ids.arrayInSQL])
      for index in 0..<found.count {
        let row = found.checked(index, of: table)
        try add(row, try row.required(0))
      }
    }
    try read(.connection, unknown.connections) { row, id in
      add(try ConnectionFacts(row, clockOffset: clockOffset), id: id)
    }
    try read(.providerToken, unknown.tokens) { row, id in add(try ProviderToken(row), id: id) }
  }

  /// Returns what a row of the table `push` refers to. What has no row itself any more is empty.
  mutating func references(
    of row: CheckedRow<ResultRow>, _ database: Connection
  ) throws -> (connection: ConnectionFacts, token: ProviderToken?, checks: UInt64) {
    try references(
      of: row, connection: { .missing($0) }, token: { .missing($0) },
      checkNames: { id in
        let table = StoredTable.checkList
        let rows = try database.query("SELECT \(table.columnList) FROM \(table.name) WHERE id = $1", [String(id)])
        return rows.count == 1 ? try rows.checked(0, of: table).text(1) ?? "" : ""
      })
  }
}

extension Set<Int64> {
  fileprivate var arrayInSQL: String { "{\(map { String($0) }.joined(separator: ","))}" }
}
