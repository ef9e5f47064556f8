package import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// What rows of the table `push` refer to, for readers: records share connections and provider tokens, as the originals
/// did.
package struct ReferenceCache: Sendable {
  private static let capacity = 4096

  private var connections: [Int64: ConnectionFacts] = [:]
  private var tokens: [Int64: ProviderToken] = [:]
  private var checks: [Int64: UInt64] = [:]

  /// Creates an empty cache.
  package init() {}

  /// Returns what a row of the table `push` refers to. What has no row itself any more is empty.
  ///
  /// - Parameter damage: Is called with an error for a row that cannot be read, which is empty if this does not throw.
  /// - Throws: `DamagedRow`, or an error of the database.
  package mutating func references<Connection: SQLConnection>(
    of row: CheckedRow<Connection.Row>, _ db: Connection, damage: (any Error) throws -> Void = { throw $0 }
  ) throws -> (connection: ConnectionFacts, token: ProviderToken?, checks: UInt64) {
    func find<Value>(
      _ id: Int64, in table: StoredTable, _ read: (CheckedRow<Connection.Row>) throws -> Value
    ) throws -> Value? {
      var value: Value?
      do {
        try Self.read(table, [id], db) { value = try read($0) }
      } catch {
        try damage(error)
      }
      return value
    }
    return (
      try Self.value(try row.required(.connection), &connections) { id in
        try find(id, in: .connection) { try ConnectionFacts($0, clockOffset: db.clockOffset) } ?? .missing(id)
      },
      try row.number(.token).map { id in
        try Self.value(id, &tokens) { id in try find(id, in: .providerToken) { try ProviderToken($0) } ?? .missing(id) }
      },
      try row.number(.checks).map { id in
        try Self.value(id, &checks) { id in
          let names = try find(id, in: .checkList) { try $0.text(1) ?? "" } ?? ""
          return Verdict.checkBits(names: names.split(separator: ","))
        }
      } ?? 0
    )
  }

  /// Reads the connections and provider tokens that rows refer to and that are not known, each kind with one command.
  package mutating func read<Connection: SQLConnection>(
    for rows: [CheckedRow<Connection.Row>], _ db: Connection
  ) throws {
    // Not later, because those of these rows are needed.
    if connections.count >= Self.capacity { connections.removeAll() }
    if tokens.count >= Self.capacity { tokens.removeAll() }
    var unknown: (connections: Set<Int64>, tokens: Set<Int64>) = ([], [])
    for row in rows {
      if let id: Int64 = try row.number(.connection), connections[id] == nil { unknown.connections.insert(id) }
      if let id: Int64 = try row.number(.token), tokens[id] == nil { unknown.tokens.insert(id) }
    }
    try Self.read(.connection, unknown.connections, db) { row in
      connections[try row.required(0)] = try ConnectionFacts(row, clockOffset: db.clockOffset)
    }
    try Self.read(.providerToken, unknown.tokens, db) { row in
      tokens[try row.required(0)] = try ProviderToken(row)
    }
  }

  private static func read<Connection: SQLConnection>(
    _ table: StoredTable, _ ids: Set<Int64>, _ db: Connection, _ add: (CheckedRow<Connection.Row>) throws -> Void
  ) throws {
    guard !ids.isEmpty else { return }
    let list = ids.map { String($0) }
    // The statement for one is always the same.
    let condition = list.count == 1 ? "id = $1" : "id IN (\(list.joined(separator: ",")))"
    try db.forEachRow(
      "SELECT \(table.columnList) FROM \(table.name) WHERE \(condition)", list.count == 1 ? list : []
    ) { row in
      try add(CheckedRow(row, of: table))
      return true
    }
  }

  private static func value<Value>(
    _ id: Int64, _ known: inout [Int64: Value], _ read: (Int64) throws -> Value
  ) rethrows -> Value {
    if let value = known[id] { return value }
    let value = try read(id)
    if known.count >= capacity { known.removeAll() }
    known[id] = value
    return value
  }
}

/// Creates records from rows of the table `push`.
package struct StoredRecordReader {
  private let arena = RecordArena()
  private var request = HTTPRequest()

  /// Creates a reader, for one query.
  package init() {}

  /// Returns the record of a row of the table `push`.
  ///
  /// - Parameters:
  ///   - checks: The `applicableCheckBits` of the record's verdict.
  ///   - clockOffset: The nanoseconds by which monotonic times in the store are ahead of those of this machine.
  /// - Throws: `DamagedRow` for a value of another type, or out of its range. A name of a reason or a check that this version
  ///   does not know is omitted.
  package mutating func record(
    of row: CheckedRow<some StoredRow>, connection: ConnectionFacts, token: ProviderToken?, checks: UInt64,
    clockOffset: Int64 = 0
  ) throws(DamagedRow) -> Record {
    request.stream = try row.required(.stream)
    request.headers.removeAll()
    let areFields = try row.withBytes(.headers) { request.headers.append(stored: $0) }
    guard areFields else { throw row.damage(.headers, .notFields) }
    request.body.removeAll(keepingCapacity: true)
    try row.withBytes(.payload, mayBeText: true) {
      request.body.append(contentsOf: $0.prefix(HTTPRequest.bodyLimit))
    }
    request.bodySize = try row.required(.payloadSize, in: request.body.count...Int(UInt32.max))
    let isGenerated = try row.text(.idOrigin) == "server"
    let id = isGenerated ? Array((try row.text(.apnsID) ?? "").utf8.prefix(Int(UInt8.max))) : []
    let credential = try row.text(.credential).map { Verdict.Credential(name: $0) }
    // Only a validated request has the topic of its provider certificate.
    let facts = PushFacts(
      request.headers, defaultTopic: credential == nil ? nil : connection.certificate?.defaultTopic)
    let acceptedStatus: Int = try row.number(.verdictStatus, in: 0...999) ?? 200
    let failure = try failure(of: row)
    let verdict = credential.map { credential in
      Verdict(
        facts: facts, credential: credential, token: token, acceptedStatus: acceptedStatus, checkBits: checks,
        failure: failure)
    }
    let details = try row.text(.details).flatMap(ImportedRecord.init(stored:))
    return Record(
      seq: try row.required(.seq, in: 1...StoredContents.numbers.upperBound), request: request, verdict: verdict,
      facts: facts, isRequestComplete: details?.isIncomplete != true,
      findings: try row.text(.findings)?.split(separator: ",").map(String.init), generatedID: id[...],
      connection: connection, attempt: try row.required(.attempt),
      receivedAt: try row.required(.receivedAt, in: Self.times),
      arrivedAt: try row.required(.arrivedAt) &- clockOffset, result: try result(of: row, details?.wireDetails),
      pushKey: PushKey(number: UInt64(bitPattern: try row.required(.pushKey))), in: arena)
  }

  /// The valid times by the server's clock: more than RFC 3339 can represent, and sums of them do not overflow.
  private static let times: ClosedRange<ServerTime> = -1 << 53...1 << 53

  private func failure(of row: CheckedRow<some StoredRow>) throws(DamagedRow) -> Verdict.StoredFailure? {
    let (check, reason) = (try row.text(.failedCheck), try row.text(.verdictReason))
    let (timestamp, detail): (Int64?, String?) = (try row.number(.unregisteredAt), try row.text(.detail))
    guard let check = check.flatMap({ Check(named: $0) }) else { return nil }
    return Verdict.StoredFailure(
      check: check, reason: reason.flatMap(Reason.init(text:)), timestamp: timestamp, detail: detail ?? "")
  }

  private func result(
    of row: CheckedRow<some StoredRow>, _ wireDetails: WireDetails?
  ) throws(DamagedRow) -> Record.Result {
    guard let decision = try row.value(.decision, Decision.init) else { throw row.damage(.decision, .missing) }
    guard let ending = try row.value(.ending, Ending.init) else { throw row.damage(.ending, .missing) }
    guard AttemptEnd.isPossible(decision, ending) else { throw row.damage(.ending, .contradictory) }
    let status: Int16? = try row.number(.status)
    let result = Record.Result(
      decision, ending,
      sentResponse: Record.SentResponse(
        status: status.map { Int($0) }, reason: try row.text(.reason).flatMap(Reason.init(text:)),
        latencyNanoseconds: try row.number(.latency)),
      wireDetails: wireDetails, finishedAt: try row.number(.finishedAt, in: Self.times),
      delivery: try row.value(.delivery, DeliveryState.init(text:)))
    // Queries of the database rely on these two.
    guard let outcome = try row.value(.outcome, Record.Outcome.init) else { throw row.damage(.outcome, .missing) }
    guard outcome == result.outcome else { throw row.damage(.outcome, .contradictory) }
    guard try row.required(.accepted, in: 0...1) == (result.accepted ? 1 : 0) else {
      throw row.damage(.accepted, .contradictory)
    }
    return result
  }
}

extension HeaderList {
  /// Appends the packed fields of a record.
  ///
  /// - Returns: `false` if the bytes are not packed fields.
  fileprivate mutating func append(stored packed: UnsafeRawBufferPointer) -> Bool {
    // Positions are 16-bit numbers.
    guard packed.count <= Int(UInt16.max) else { return false }
    var (count, end) = (0, 0)
    Self.forEachField(in: packed) { _, value in
      count += 1
      end = value.indices.upperBound
    }
    return end == packed.count && append(packed: packed, count: count)
  }
}

/// Access to a row of the table `push`.
extension CheckedRow {
  fileprivate func damage(_ column: RecordColumn, _ problem: DamagedRow.Problem) -> DamagedRow {
    damage(column.rawValue, problem)
  }

  fileprivate func number<Number: FixedWidthInteger>(
    _ column: RecordColumn, in range: ClosedRange<Number>? = nil
  ) throws(DamagedRow) -> Number? {
    try number(column.rawValue, in: range)
  }

  fileprivate func required<Number: FixedWidthInteger>(
    _ column: RecordColumn, in range: ClosedRange<Number>? = nil
  ) throws(DamagedRow) -> Number {
    try required(column.rawValue, in: range)
  }

  fileprivate func text(_ column: RecordColumn) throws(DamagedRow) -> String? { try text(column.rawValue) }

  fileprivate func value<Value>(
    _ column: RecordColumn, _ convert: (String) -> Value?
  ) throws(DamagedRow) -> Value? {
    try value(column.rawValue, convert)
  }

  fileprivate func withBytes<Result>(
    _ column: RecordColumn, mayBeText: Bool = false, _ read: (UnsafeRawBufferPointer) -> Result
  ) throws(DamagedRow) -> Result {
    try withBytes(column.rawValue, mayBeText: mayBeText, read)
  }
}

extension ConnectionFacts {
  /// Reads a row of the table `connection`.
  ///
  /// - Parameter clockOffset: The nanoseconds by which monotonic times in the store are ahead of those of this machine.
  package convenience init(_ row: CheckedRow<some StoredRow>, clockOffset: Int64 = 0) throws(DamagedRow) {
    let id: Int64 = try row.required(0)
    self.init(
      id: try row.text(1) ?? "", listener: try row.number(2) ?? 0,
      environment: try row.value(3, PushEnvironment.init) ?? .sandbox, client: try row.text(4) ?? "",
      sni: try row.text(5), tls: try row.text(6), http: try row.value(7, HTTPVersion.init) ?? .http2,
      certificate: try row.value(8) { ProviderCertificate(json: $0) },
      openedAt: (try row.number(9) ?? 0) &- clockOffset, identity: UInt64(bitPattern: try row.number(10) ?? id))
  }

  /// The facts of a connection that has no row any more.
  ///
  /// - Parameter id: The `id` of its row.
  package static func missing(_ id: Int64) -> ConnectionFacts {
    ConnectionFacts(
      id: "", listener: 0, client: "", sni: nil, tls: nil, openedAt: 0, identity: UInt64(bitPattern: id))
  }
}

extension ProviderToken {
  /// Reads a row of the table `provider_token`.
  package convenience init(_ row: CheckedRow<some StoredRow>) throws(DamagedRow) {
    let identity: Int64? = try row.number(5)
    self.init(
      keyID: try row.text(1), teamID: try row.text(2), issuedAt: try row.number(3),
      signature: try row.value(4, Signature.init) ?? .unchecked, identity: identity.map { UInt64(bitPattern: $0) })
  }

  /// The token that has no row any more.
  ///
  /// - Parameter id: The `id` of its row.
  package static func missing(_ id: Int64) -> ProviderToken {
    ProviderToken(keyID: nil, teamID: nil, issuedAt: nil, signature: .unchecked, identity: UInt64(bitPattern: id))
  }
}
