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
  /// The number of newer ids, given to all servers, after which an id is not used again.
  static let lifetime: Int64 = 500_000

  /// What a row of `push` refers to.
  typealias IDs = (connection: Int64, token: Int64?, checks: Int64?)

  /// Returns the ids of what a record refers to.
  ///
  /// - Parameter clockOffset: The nanoseconds to add to a monotonic time of this machine for one that all servers
  ///   understand.
  mutating func ids(
    of record: Record, _ database: Connection, _ clockOffset: Int64
  ) throws(PostgreSQLError) -> IDs {
    let verdict = record.verdict
    let connection = try id(of: record.connection, database, clockOffset)
    let token: Int64? = if let token = verdict?.token { try id(of: token, database) } else { nil }
    let checks: Int64? = if let verdict { try id(of: verdict, database) } else { nil }
    return (connection, token, checks)
  }

  private mutating func id(
    of facts: ConnectionFacts, _ database: Connection, _ clockOffset: Int64
  ) throws(PostgreSQLError) -> Int64 {
    if let known = connections[ObjectIdentifier(facts)] { return known.id }
    let id = try database.query(
      """
      INSERT INTO connection (name, listener, environment, client, sni, tls, http, certificate, opened_ns, identity) \
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id
      """,
      [
        facts.id, String(facts.listener), facts.environment.rawValue, facts.client, facts.sni, facts.tls,
        facts.http.rawValue, facts.certificate?.json, String(facts.openedAt + clockOffset),
        String(Int64(bitPattern: facts.identity)),
      ]
    ).number(0, 0)
    if connections.count >= Self.capacity { connections.removeAll() }
    connections[ObjectIdentifier(facts)] = (facts, id ?? 0)
    return id ?? 0
  }

  private mutating func id(of token: ProviderToken, _ database: Connection) throws(PostgreSQLError) -> Int64 {
    if let known = tokens[ObjectIdentifier(token)] { return known.id }
    let id = try database.query(
      """
      INSERT INTO provider_token (key_id, team_id, issued_at, signature, identity) VALUES ($1, $2, $3, $4, $5) RETURNING id
      """,
      [
        token.keyID, token.teamID, token.issuedAt.map { String($0) }, token.signature.rawValue,
        String(Int64(bitPattern: token.identity)),
      ]
    ).number(0, 0)
    if tokens.count >= Self.capacity { tokens.removeAll() }
    tokens[ObjectIdentifier(token)] = (token, id ?? 0)
    return id ?? 0
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
  /// Returns what a row refers to.
  mutating func references(
    of row: ResultRow, _ database: Connection
  ) throws -> (connection: ConnectionFacts, token: ProviderToken?, checks: UInt64) {
    try references(
      of: row, connection: { try ConnectionFacts($0, database, row.clockOffset) },
      token: { try ProviderToken($0, database) },
      checkNames: { id in
        let rows = try database.query("SELECT names FROM check_list WHERE id = $1", [String(id)])
        return rows.count == 1 ? rows.text(0, 0) ?? "" : ""
      })
  }
}

extension ConnectionFacts {
  fileprivate convenience init(_ id: Int64, _ database: Connection, _ clockOffset: Int64) throws {
    let rows = try database.query(
      """
      SELECT name, listener, environment, client, sni, tls, http, certificate, opened_ns, identity FROM connection \
      WHERE id = $1
      """, [String(id)])
    func text(_ column: Int) -> String? { rows.count == 1 ? rows.text(0, column) : nil }
    func number(_ column: Int) -> Int64? { rows.count == 1 ? rows.number(0, column) : nil }
    self.init(
      id: text(0) ?? "", listener: Int(number(1) ?? 0),
      environment: text(2).flatMap(PushEnvironment.init) ?? .sandbox, client: text(3) ?? "", sni: text(4), tls: text(5),
      http: text(6).flatMap(ConnectionFacts.HTTPVersion.init) ?? .http2,
      certificate: text(7).flatMap { ProviderCertificate(json: $0) }, openedAt: (number(8) ?? 0) - clockOffset,
      identity: UInt64(bitPattern: number(9) ?? id))
  }
}

extension ProviderToken {
  fileprivate convenience init(_ id: Int64, _ database: Connection) throws {
    let rows = try database.query(
      "SELECT key_id, team_id, issued_at, signature, identity FROM provider_token WHERE id = $1", [String(id)])
    func text(_ column: Int) -> String? { rows.count == 1 ? rows.text(0, column) : nil }
    func number(_ column: Int) -> Int64? { rows.count == 1 ? rows.number(0, column) : nil }
    self.init(
      keyID: text(0), teamID: text(1), issuedAt: number(2),
      signature: text(3).flatMap(ProviderToken.Signature.init) ?? .unchecked,
      identity: number(4).map { UInt64(bitPattern: $0) })
  }
}
