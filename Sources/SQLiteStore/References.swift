internal import APNSRules
internal import GRDB
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

  /// Returns the ids of what a record refers to.
  mutating func ids(
    of record: PushRecord, _ db: Database
  ) throws -> (connection: Int64, token: Int64?, checks: Int64?) {
    let verdict = record.verdict
    return (
      try id(of: record.connection, db), try verdict?.token.map { try id(of: $0, db) },
      try verdict.map { try id(of: $0, db) }
    )
  }

  private mutating func id(of facts: ConnectionFacts, _ db: Database) throws -> Int64 {
    if let known = connections[ObjectIdentifier(facts)] { return known.id }
    try db.cachedStatement(
      sql: """
        INSERT INTO connection (name, listener, environment, client, sni, tls, http, certificate, opened_ns) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
    ).execute(arguments: [
      facts.id, facts.listener, facts.environment.rawValue, facts.client, facts.sni,
      facts.tls,
      facts.http.rawValue, facts.certificate?.json, facts.openedAt,
    ])
    if connections.count >= Self.capacity { connections.removeAll() }
    connections[ObjectIdentifier(facts)] = (facts, db.lastInsertedRowID)
    return db.lastInsertedRowID
  }

  private mutating func id(of token: ProviderToken, _ db: Database) throws -> Int64 {
    if let known = tokens[ObjectIdentifier(token)] { return known.id }
    try db.cachedStatement(
      sql: "INSERT INTO provider_token (key_id, team_id, issued_at, signature) VALUES (?, ?, ?, ?)"
    ).execute(arguments: [token.keyID, token.teamID, token.issuedAt, token.signature.rawValue])
    if tokens.count >= Self.capacity { tokens.removeAll() }
    tokens[ObjectIdentifier(token)] = (token, db.lastInsertedRowID)
    return db.lastInsertedRowID
  }

  private mutating func id(of verdict: Verdict, _ db: Database) throws -> Int64 {
    if let known = checks[verdict.applicableCheckBits] { return known }
    let names = verdict.applicableCheckNames.joined(separator: ",")
    try db.execute(sql: "INSERT OR IGNORE INTO check_list (names) VALUES (?)", arguments: [names])
    let id = try Int64.fetchOne(db, sql: "SELECT id FROM check_list WHERE names = ?", arguments: [names]) ?? 0
    checks[verdict.applicableCheckBits] = id
    return id
  }

  /// Stores the names of rules, profiles and unusual reasons of a record, which conditions may name.
  mutating func insertNames(of record: PushRecord, _ db: Database) throws {
    for name in record.usedNames() where !names.contains(name) {
      try db.execute(sql: "INSERT OR IGNORE INTO name VALUES (?)", arguments: [name])
      if names.count < Self.capacity { names.insert(name) }
    }
  }
}

/// The rows that the rows of `push` refer to, for readers: records share connections and provider tokens, as the
/// originals did.
struct ReferenceCache: Sendable {
  private static let capacity = 4096

  private var connections: [Int64: ConnectionFacts] = [:]
  private var tokens: [Int64: ProviderToken] = [:]
  private var checks: [Int64: UInt64] = [:]

  /// Returns what a row refers to.
  mutating func references(
    of row: ResultRow, _ db: Database
  ) throws -> (connection: ConnectionFacts, token: ProviderToken?, checks: UInt64) {
    (
      try connection(row.number(.connection) ?? 0, db), try row.number(.token).map { try token($0, db) },
      try row.number(.checks).map { try checks($0, db) } ?? 0
    )
  }

  private mutating func connection(_ id: Int64, _ db: Database) throws -> ConnectionFacts {
    if let known = connections[id] { return known }
    let row = try Row.fetchOne(db, sql: "SELECT * FROM connection WHERE id = ?", arguments: [id]) ?? Row()
    let certificate: String? = row["certificate"]
    let facts = ConnectionFacts(
      id: row["name"] ?? "", listener: row["listener"] ?? 0,
      environment: (row["environment"] as String?).flatMap(PushEnvironment.init) ?? .sandbox,
      client: row["client"] ?? "", sni: row["sni"], tls: row["tls"],
      http: (row["http"] as String?).flatMap(ConnectionFacts.HTTPVersion.init) ?? .http2,
      certificate: certificate.flatMap { ProviderCertificate(json: $0) }, openedAt: row["opened_ns"] ?? 0)
    if connections.count >= Self.capacity { connections.removeAll() }
    connections[id] = facts
    return facts
  }

  private mutating func token(_ id: Int64, _ db: Database) throws -> ProviderToken {
    if let known = tokens[id] { return known }
    let row = try Row.fetchOne(db, sql: "SELECT * FROM provider_token WHERE id = ?", arguments: [id]) ?? Row()
    let token = ProviderToken(
      keyID: row["key_id"], teamID: row["team_id"], issuedAt: row["issued_at"],
      signature: (row["signature"] as String?).flatMap(ProviderToken.Signature.init) ?? .unchecked)
    if tokens.count >= Self.capacity { tokens.removeAll() }
    tokens[id] = token
    return token
  }

  private mutating func checks(_ id: Int64, _ db: Database) throws -> UInt64 {
    if let known = checks[id] { return known }
    let names = try String.fetchOne(db, sql: "SELECT names FROM check_list WHERE id = ?", arguments: [id]) ?? ""
    let bits = Verdict.checkBits(names: names.split(separator: ","))
    checks[id] = bits
    return bits
  }
}
