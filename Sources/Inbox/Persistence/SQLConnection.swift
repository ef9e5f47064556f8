internal import APNSMockRules
package import APNSMockNotation

/// A connection to a database that executes SQL: what differs between the two kinds of stores in what they do alike. The
/// parameters of a statement are `$1`, `$2` and so on.
package protocol SQLConnection {
  associatedtype Row: StoredRow

  /// The size of the header fields and the payload of a row of the table `push` in bytes, in SQL.
  static var contentSize: String { get }

  /// The nanoseconds to add to a monotonic time of this machine for one in the database.
  var clockOffset: Int64 { get }

  /// Calls `visit` with each row of the result of a statement, until it returns false.
  ///
  /// - Parameter parameters: Texts, which the database converts to the types of the columns; nil for null.
  func forEachRow(_ sql: String, _ parameters: [String?], _ visit: (Row) throws -> Bool) throws

  /// Inserts rows into the table `push`.
  ///
  /// - Parameters:
  ///   - ids: What the row of each record refers to.
  ///   - progress: Is called when the database has received a part of them.
  func insert(_ records: [Record], _ ids: [ReferenceIDs], progress: () -> Void) throws

  /// Writes the columns `RecordColumn.changing` of records again.
  func update(_ records: [Record], progress: () -> Void) throws

  /// Returns the time of the first record after `seq` that did not arrive later than `time`; nil if there is none.
  func firstTime(notAfter time: ServerTime, behind seq: Int) throws -> ServerTime?

  /// Removes all records with a `seq` above `after` up to `last`.
  func remove(after: Int, through last: Int) throws
}

extension SQLConnection {
  /// Executes a statement whose result is not needed.
  package func execute(_ sql: String, _ parameters: [String?] = []) throws {
    try forEachRow(sql, parameters) { _ in true }
  }

  /// Returns the number in the first row of a result; nil without one, and for a value of another type.
  package func number(_ sql: String, _ parameters: [String?] = []) throws -> Int64? {
    var number: Int64?
    try forEachRow(sql, parameters) { row in
      if row.type(of: 0) == .number { number = row.number(0) }
      return false
    }
    return number
  }
}

extension SQLConnection {
  /// Reads and checks the totals.
  ///
  /// - Returns: The totals, whose `lastSeq` is the last number that clients may know, and the `seq` of the newest stored record; nil
  ///   if the table `contents` has no row.
  /// - Throws: `DamagedRow` if they cannot be those of these records.
  package func contents() throws -> (contents: StoredContents, lastStored: Int)? {
    let table = StoredTable.contents
    let newest = try number("SELECT max(seq) FROM push") ?? 0
    var found: (StoredContents, Int)?
    try forEachRow("SELECT \(table.columnList) FROM \(table.name)", []) { row in
      let row = CheckedRow(row, of: table)
      var contents = try StoredContents(row)
      try contents.check(newest: Int(newest))
      let lastStored = contents.lastSeq
      // If the former server was killed, clients may know seqs that were not stored. These are not used again.
      contents.lastSeq = try row.required(7, in: lastStored...lastStored + StoredContents.reservedSeqs)
      found = (contents, lastStored)
      return false
    }
    return found
  }

  /// Returns whether a record with this rule, profile or reason that is not one of APNs was ever stored.
  package func contains(name: String) throws -> Bool {
    try number("SELECT 1 FROM name WHERE name = $1", [WrittenReferences.stored(name: name)]) != nil
  }

  /// Returns the `seq` of the newest pushes that wait for their device, or have (`DeliveryState.ofStorage`), in ascending order.
  package func seqsOfStorage(limit: Int) throws -> [Int] {
    var seqs: [Int] = []
    let sql = "SELECT seq FROM push WHERE \(DeliveryState.isOfStorage) ORDER BY seq DESC LIMIT \(limit)"
    try forEachRow(sql, []) { row in
      seqs.append(Int(row.number(0)))
      return true
    }
    return seqs.reversed()
  }

  /// Returns the state of the server that was stored last (`StoredServerState`), by name. What is no text is left out.
  ///
  /// - Parameter prefix: The beginning of the names to return, without the wildcards of SQL.
  package func serverState(prefix: String = "") throws -> [String: String] {
    var state: [String: String] = [:]
    try forEachRow("SELECT name, value FROM state WHERE name LIKE $1", [prefix + "%"]) { row in
      if let name = row.text(0), let value = row.text(1) { state[name] = value }
      return true
    }
    return state
  }
}

/// What a row of the table `push` refers to: the `id` of a row of each of three other tables.
package typealias ReferenceIDs = (connection: Int64, token: Int64?, checks: Int64?)

/// The rows that the rows of `push` refer to, for the writer: what several records share is written once.
struct WrittenReferences: Sendable {
  /// The maximum number of connections, and of provider tokens, that are remembered.
  private static let capacity = 4096
  /// The number of newer ids after which an id is not used again: those that are remembered, and those of one batch.
  static let lifetime = capacity + RecordWriter.batchLimit

  // The objects are kept alive, so that no other object gets the same identifier.
  private var connections: [ObjectIdentifier: (facts: ConnectionFacts, id: Int64)] = [:]
  private var tokens: [ObjectIdentifier: (token: ProviderToken, id: Int64)] = [:]
  private var checks: [UInt64: Int64] = [:]
  private var names: Set<String> = []

  /// Returns the ids of what records refer to. Inserts the rows that are missing, many with one command.
  ///
  /// - Parameter progress: Is called when the database has executed a command.
  mutating func ids(
    of records: [Record], _ db: some SQLConnection, progress: () -> Void
  ) throws -> [ReferenceIDs] {
    // Not later, because those of this batch are needed.
    if connections.count >= Self.capacity { connections.removeAll() }
    if tokens.count >= Self.capacity { tokens.removeAll() }
    var newConnections: [ObjectIdentifier: ConnectionFacts] = [:]
    var newTokens: [ObjectIdentifier: ProviderToken] = [:]
    var verdicts: [(token: ProviderToken?, checks: Int64)?] = []
    verdicts.reserveCapacity(records.count)
    // By index, because each copy of a record counts its references.
    for index in records.indices {
      let facts = records[index].connection
      if connections[ObjectIdentifier(facts)] == nil { newConnections[ObjectIdentifier(facts)] = facts }
      guard let verdict = records[index].verdict else {
        verdicts.append(nil)
        continue
      }
      verdicts.append((verdict.token, try id(ofChecksOf: verdict, db)))
      if let token = verdict.token, tokens[ObjectIdentifier(token)] == nil {
        newTokens[ObjectIdentifier(token)] = token
      }
    }
    let clockOffset = db.clockOffset
    try Self.insert(newConnections.values, \.identity, into: .connection, db, progress) { facts in
      [
        facts.id, String(facts.listener), facts.environment.rawValue, facts.client, facts.sni, facts.tls,
        facts.http.rawValue, facts.certificate?.json, String(facts.openedAt &+ clockOffset),
      ]
    } didInsert: {
      connections[ObjectIdentifier($0)] = ($0, $1)
    }
    try Self.insert(newTokens.values, \.identity, into: .providerToken, db, progress) { token in
      [token.keyID, token.teamID, token.issuedAt.map { String($0) }, token.signature.rawValue]
    } didInsert: {
      tokens[ObjectIdentifier($0)] = ($0, $1)
    }
    return records.indices.map { index in
      (
        connections[ObjectIdentifier(records[index].connection)]?.id ?? 0,
        verdicts[index]?.token.flatMap { tokens[ObjectIdentifier($0)]?.id }, verdicts[index]?.checks
      )
    }
  }

  /// The maximum number of rows that one command inserts.
  private static let insertLimit = 500

  /// Inserts a row for each object: `values`, and its identity in the last column.
  private static func insert<Object>(
    _ objects: some Collection<Object>, _ identity: (Object) -> UInt64, into table: StoredTable,
    _ db: some SQLConnection, _ progress: () -> Void, values: (Object) -> [String?], didInsert: (Object, Int64) -> Void
  ) throws {
    let columns = table.columns.dropFirst()
    var rest = Array(objects)[...]
    while !rest.isEmpty {
      // The order in which an INSERT returns ids is not guaranteed. Tokens that were verified again have the same identity.
      var part: [Int64: Object] = [:]
      var rows: [String] = []
      var parameters: [String?] = []
      while rows.count < insertLimit, let object = rest.first {
        let identity = Int64(bitPattern: identity(object))
        guard part[identity] == nil else { break }
        part[identity] = object
        rows.append("(\((1...columns.count).map { "$\(parameters.count + $0)" }.joined(separator: ", ")))")
        parameters += values(object) + [String(identity)]
        rest.removeFirst()
      }
      try db.forEachRow(
        """
        INSERT INTO \(table.name) (\(columns.joined(separator: ", "))) VALUES \(rows.joined(separator: ", ")) \
        RETURNING id, identity
        """, parameters
      ) { row in
        if let object = part[row.number(1)] { didInsert(object, row.number(0)) }
        return true
      }
      progress()
    }
  }

  private mutating func id(ofChecksOf verdict: Verdict, _ db: some SQLConnection) throws -> Int64 {
    if let known = checks[verdict.applicableCheckBits] { return known }
    let names = verdict.applicableCheckNames.joined(separator: ",")
    try db.execute("INSERT INTO check_list (names) VALUES ($1) ON CONFLICT DO NOTHING", [names])
    let id = try db.number("SELECT id FROM check_list WHERE names = $1", [names]) ?? 0
    checks[verdict.applicableCheckBits] = id
    return id
  }

  /// Returns the beginning of a name, which an index can contain.
  static func stored(name: String) -> String { String(name.unicodeScalars.prefix(500)) }

  /// Stores the names of rules, profiles and unusual reasons of records, which conditions may name.
  mutating func insertNames(of records: [Record], _ db: some SQLConnection) throws {
    for index in records.indices {
      for name in records[index].usedNames() where !names.contains(name) {
        try db.execute("INSERT INTO name VALUES ($1) ON CONFLICT DO NOTHING", [Self.stored(name: name)])
        if names.count < Self.capacity { names.insert(name) }
      }
    }
  }
}
