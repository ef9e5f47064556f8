internal import APNSRules
internal import GRDB
internal import Inbox

/// The rows that the rows of `push` refer to, for the writer: what several records share is written once.
struct WrittenIDs: Sendable {
  /// The maximum number of connections, and of provider tokens, that are remembered.
  static let capacity = 4096

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
        INSERT INTO connection (name, listener, environment, client, sni, tls, http, certificate, opened_ns, identity) \
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
    ).execute(arguments: [
      facts.id, facts.listener, facts.environment.rawValue, facts.client, facts.sni, facts.tls, facts.http.rawValue,
      facts.certificate?.json, facts.openedAt, Int64(bitPattern: facts.identity),
    ])
    if connections.count >= Self.capacity { connections.removeAll() }
    connections[ObjectIdentifier(facts)] = (facts, db.lastInsertedRowID)
    return db.lastInsertedRowID
  }

  private mutating func id(of token: ProviderToken, _ db: Database) throws -> Int64 {
    if let known = tokens[ObjectIdentifier(token)] { return known.id }
    try db.cachedStatement(
      sql: "INSERT INTO provider_token (key_id, team_id, issued_at, signature, identity) VALUES (?, ?, ?, ?, ?)"
    ).execute(arguments: [
      token.keyID, token.teamID, token.issuedAt, token.signature.rawValue, Int64(bitPattern: token.identity),
    ])
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

extension ReferenceCache {
  /// Returns what a row refers to.
  mutating func references(
    of row: ResultRow, _ db: Database
  ) throws -> (connection: ConnectionFacts, token: ProviderToken?, checks: UInt64) {
    try references(
      of: row, connection: { try ConnectionFacts($0, db) }, token: { try ProviderToken($0, db) },
      checkNames: { try String.fetchOne(db, sql: "SELECT names FROM check_list WHERE id = ?", arguments: [$0]) ?? "" })
  }
}

extension ConnectionFacts {
  fileprivate convenience init(_ id: Int64, _ db: Database) throws {
    let row = try Row.fetchOne(db, sql: "SELECT * FROM connection WHERE id = ?", arguments: [id]) ?? Row()
    let certificate: String? = row["certificate"]
    self.init(
      id: row["name"] ?? "", listener: row["listener"] ?? 0,
      environment: (row["environment"] as String?).flatMap(PushEnvironment.init) ?? .sandbox,
      client: row["client"] ?? "", sni: row["sni"], tls: row["tls"],
      http: (row["http"] as String?).flatMap(ConnectionFacts.HTTPVersion.init) ?? .http2,
      certificate: certificate.flatMap { ProviderCertificate(json: $0) }, openedAt: row["opened_ns"] ?? 0,
      identity: UInt64(bitPattern: row["identity"] ?? id))
  }
}

extension ProviderToken {
  fileprivate convenience init(_ id: Int64, _ db: Database) throws {
    let row = try Row.fetchOne(db, sql: "SELECT * FROM provider_token WHERE id = ?", arguments: [id]) ?? Row()
    self.init(
      keyID: row["key_id"], teamID: row["team_id"], issuedAt: row["issued_at"],
      signature: (row["signature"] as String?).flatMap(ProviderToken.Signature.init) ?? .unchecked,
      identity: (row["identity"] as Int64?).map { UInt64(bitPattern: $0) })
  }
}
