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
    let id = Int64(try db.number("SELECT id FROM check_list WHERE names = ?", [names]) ?? 0)
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
  /// Returns what a row of the table `push` refers to. What has no row itself any more is empty.
  ///
  /// - Parameter damage: Is called with an error for a row that cannot be read, which is empty if this does not throw.
  mutating func references(
    of row: CheckedRow<ResultRow>, _ db: Database, damage: (any Error) throws -> Void = { throw $0 }
  ) throws -> (connection: ConnectionFacts, token: ProviderToken?, checks: UInt64) {
    func find<Value>(
      _ id: Int64, in table: StoredTable, _ read: (CheckedRow<ResultRow>) throws -> Value
    ) throws -> Value? {
      do {
        return try db.firstRow("SELECT \(table.columnList) FROM \(table.name) WHERE id = ?", [id]) { row in
          try read(CheckedRow(row, of: table))
        }
      } catch {
        try damage(error)
        return nil
      }
    }
    return try references(
      of: row,
      connection: { id in try find(id, in: .connection) { try ConnectionFacts($0) } ?? .missing(id) },
      token: { id in try find(id, in: .providerToken) { try ProviderToken($0) } ?? .missing(id) },
      checkNames: { id in try find(id, in: .checkList) { try $0.text(1) ?? "" } ?? "" })
  }
}
