package import APNSRules
internal import FaultModel
internal import HTTPMessage
internal import Notation

/// A row of the table `push` that is written.
package protocol RowWriter {
  /// Sets a column to null.
  mutating func setNull(_ column: RecordColumn)
  /// Sets a column to a number.
  mutating func set(_ column: RecordColumn, _ number: Int64)
  /// Sets a column to a text in UTF-8, and copies it.
  mutating func set(_ column: RecordColumn, text: UnsafeRawBufferPointer)
  /// Sets a column to bytes. They need not be copied: they are valid until the record is released.
  ///
  /// - Parameter isText: Whether they are text in UTF-8.
  mutating func set(_ column: RecordColumn, bytes: UnsafeRawBufferPointer, isText: @autoclosure () -> Bool)
}

extension RowWriter {
  fileprivate mutating func set(_ column: RecordColumn, _ number: Int64?) {
    if let number { set(column, number) } else { setNull(column) }
  }

  fileprivate mutating func set(_ column: RecordColumn, _ text: String?) {
    guard var text else { return setNull(column) }
    text.withUTF8 { set(column, text: UnsafeRawBufferPointer($0)) }
  }

  /// Sets a column to bytes that are expected to be text.
  fileprivate mutating func set(_ column: RecordColumn, header: UnsafeRawBufferPointer?) {
    guard let header else { return setNull(column) }
    if header.allSatisfy({ $0 < 0x80 }) {
      set(column, text: header)
    } else {
      set(column, String(decoding: header, as: UTF8.self))
    }
  }
}

extension RecordColumn {
  /// All columns in the order in which `Record.write` sets them, each once.
  package static let inOrderOfWriting: [RecordColumn] = [
    .seq, .receivedAt, .arrivedAt, .kind, .attempt, .pushKey, .payloadSize, .stream, .connection, .token, .checks,
    .deviceToken, .topic, .pushType, .collapseID, .apnsID, .idOrigin, .priority, .credential, .verdictStatus,
    .failedCheck, .verdictReason, .detail, .unregisteredAt, .findings, .headers, .payload, .finishedAt,
    .decision, .ending, .outcome, .accepted, .status, .reason, .delivery, .latency, .rule, .details,
  ]
}

extension Record {
  /// Writes all columns of the record, in the order `RecordColumn.inOrderOfWriting`.
  ///
  /// - Parameters:
  ///   - connection: The `id` of the row with its connection.
  ///   - token: The `id` of the row with its provider token; nil without one.
  ///   - checks: The `id` of the row with its applicable checks; nil without a verdict.
  package borrowing func write(to row: inout some RowWriter, connection: Int64, token: Int64?, checks: Int64?) {
    row.set(.seq, Int64(seq))
    row.set(.receivedAt, receivedAt)
    row.set(.arrivedAt, arrivedAt)
    row.set(.kind, kind.rawValue)
    row.set(.attempt, Int64(attempt))
    row.set(.pushKey, Int64(bitPattern: pushKey.number))
    row.set(.payloadSize, Int64(bodySize))
    row.set(.stream, Int64(stream))
    row.set(.connection, connection)
    row.set(.token, token)
    row.set(.checks, checks)
    let facts = facts
    if withHeader(facts.deviceToken, { $0?.contains { (0x41...0x5A).contains($0) } ?? false }) {
      row.set(.deviceToken, deviceToken)
    } else {
      withHeader(facts.deviceToken) { row.set(.deviceToken, header: $0) }
    }
    withTopic { row.set(.topic, header: $0) }
    withHeader(facts.pushTypeText) { row.set(.pushType, header: $0) }
    withHeader(facts.collapseID) { row.set(.collapseID, header: $0) }
    withID { row.set(.apnsID, header: $0) }
    row.set(.idOrigin, withID { $0 == nil } ? nil : head { $0.idSize } > 0 ? "server" : "client")
    row.set(.priority, priority.map { Int64($0) })
    writeVerdict(to: &row)
    row.set(.findings, importedFindingNames?.joined(separator: ","))
    withHeaders { row.set(.headers, bytes: $0, isText: false) }
    withBody { row.set(.payload, bytes: $0, isText: $0.isText) }
    writeResult(to: &row)
  }
}

extension Record {
  /// Writes the columns that may change after the record was written.
  package borrowing func writeResult(to row: inout some RowWriter) {
    let response = sentResponse
    row.set(.finishedAt, finishedAt)
    row.set(.decision, end.decision.rawValue)
    row.set(.ending, end.ending.rawValue)
    row.set(.outcome, outcome.rawValue)
    row.set(.accepted, accepted ? 1 : 0)
    row.set(.status, response.status.map { Int64($0) })
    row.set(.reason, sentReason)
    row.set(.delivery, delivery?.text)
    row.set(.latency, response.latencyNanoseconds)
    row.set(.rule, wireDetails?.injections.first?.rule)
    guard wireDetails != nil || !isRequestComplete else { return row.setNull(.details) }
    row.set(.details, String(decoding: details(wireDetails ?? WireDetails()), as: UTF8.self))
  }

  private borrowing func writeVerdict(to row: inout some RowWriter) {
    guard let verdict else {
      for column in [RecordColumn.credential, .verdictStatus, .failedCheck, .verdictReason, .detail, .unregisteredAt] {
        row.setNull(column)
      }
      return
    }
    row.set(.credential, verdict.credential.name)
    row.set(.verdictStatus, Int64(verdict.status))
    row.set(.failedCheck, verdict.failed?.name)
    row.set(.verdictReason, verdict.reason?.text)
    row.set(.detail, verdict.isAccepted ? nil : detail(of: verdict))
    row.set(.unregisteredAt, verdict.timestamp)
  }

  /// The hashes of the device token and of the `apns-id`; nil for one that the request has not.
  package var hashes: (deviceToken: UInt32?, id: UInt32?) {
    (withHeader(facts.deviceToken) { $0.map { StoredHash.of($0) } }, withID { $0.map { StoredHash.of($0) } })
  }

  /// The names of the profiles, rules and reasons in the record that are not those of APNs.
  package borrowing func usedNames() -> [String] {
    guard let wireDetails else { return [] }
    let injections = wireDetails.injections
    return injections.map(\.rule) + injections.compactMap(\.profile) + [wireDetails.unusualReason].compactMap(\.self)
  }

  private borrowing func details(_ details: WireDetails) -> [UInt8] {
    let record = copy self
    var writer = JSONWriter()
    writer.object { writer in
      record.writeFault(to: &writer)
      writer.objectMember("served", record.writeServed)
      if !record.isRequestComplete { writer.member("incomplete", true) }
      if let violation = details.violation {
        writer.objectMember("violation") { writer in
          switch violation {
          case .afterGoAway(let lastStream, let nanoseconds):
            writer.member("last_stream", lastStream)
            writer.member("after_goaway_ns", nanoseconds)
          case .excessStreams(let limit): writer.member("excess_streams", limit)
          case .malformed(let text): writer.member("malformed", text)
          }
        }
      }
      writer.member("ended_ns", details.endedAt)
    }
    return writer.bytes
  }
}

/// What rows of the table `push` refer to, for readers: records share connections and provider tokens, as the originals
/// did.
package struct ReferenceCache: Sendable {
  private static let capacity = 4096

  private var connections: [Int64: ConnectionFacts] = [:]
  private var tokens: [Int64: ProviderToken] = [:]
  private var checks: [Int64: UInt64] = [:]

  /// Creates an empty cache.
  package init() {}

  /// Returns what a row of the table `push` refers to. Calls a function with the id of each part that is not known.
  ///
  /// - Parameter checkNames: Returns the names of a list of checks, separated by commas.
  /// - Throws: `DamagedRow`, or an error of one of the functions.
  package mutating func references(
    of row: CheckedRow<some StoredRow>, connection: (Int64) throws -> ConnectionFacts,
    token: (Int64) throws -> ProviderToken, checkNames: (Int64) throws -> String
  ) throws -> (connection: ConnectionFacts, token: ProviderToken?, checks: UInt64) {
    (
      try Self.value(try row.required(.connection), &connections, connection),
      try row.number(.token).map { try Self.value($0, &tokens, token) },
      try row.number(.checks).map { id in
        try Self.value(id, &checks) { Verdict.checkBits(names: try checkNames($0).split(separator: ",")) }
      } ?? 0
    )
  }

  /// Returns the ids of the connections and provider tokens that rows refer to and that are not known, to be read together.
  package mutating func unknown(
    in rows: some Sequence<CheckedRow<some StoredRow>>
  ) throws(DamagedRow) -> (connections: Set<Int64>, tokens: Set<Int64>) {
    // Not later, because those of these rows are needed.
    if connections.count >= Self.capacity { connections.removeAll() }
    if tokens.count >= Self.capacity { tokens.removeAll() }
    var unknown: (connections: Set<Int64>, tokens: Set<Int64>) = ([], [])
    for row in rows {
      if let id: Int64 = try row.number(.connection), connections[id] == nil { unknown.connections.insert(id) }
      if let id: Int64 = try row.number(.token), tokens[id] == nil { unknown.tokens.insert(id) }
    }
    return unknown
  }

  /// Adds a connection that was read.
  package mutating func add(_ connection: ConnectionFacts, id: Int64) { connections[id] = connection }

  /// Adds a provider token that was read.
  package mutating func add(_ token: ProviderToken, id: Int64) { tokens[id] = token }

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
    let details = try row.text(.details).map(StoredDetails.init)
    return Record(
      seq: try row.required(.seq, in: 1...StoredContents.numbers.upperBound), request: request, verdict: verdict,
      facts: facts, isRequestComplete: details?.isRequestComplete ?? true,
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

/// The column `details`.
private struct StoredDetails {
  private(set) var isRequestComplete = true
  private(set) var wireDetails: WireDetails?

  init(_ text: String) {
    var text = text
    text.withUTF8 { read(UnsafeRawBufferPointer($0)) }
  }

  private mutating func read(_ details: UnsafeRawBufferPointer) {
    var violation: WireDetails.ProtocolViolation?
    var endedAt: Int64?
    var isIncomplete = false
    var other = JSONReader(details)
    try? other.object { name, json throws(JSONText.Problem) in
      switch name {
      case "ended_ns": endedAt = try json.wholeOrNull()
      case "incomplete": isIncomplete = try json.flag()
      case "violation": violation = try WireDetails.ProtocolViolation(&json)
      default: break
      }
    }
    isRequestComplete = !isIncomplete
    var json = JSONReader(details)
    // Both have a member `violation`, of different types.
    wireDetails = try? ImportedRecord(details, &json, isStored: true).wireDetails(
      violation: violation, endedAt: endedAt)
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

extension WireDetails.ProtocolViolation {
  fileprivate init?(_ json: inout JSONReader) throws(JSONText.Problem) {
    var lastStream: Int32 = 0
    var delay: Int64?
    var limit: UInt32?
    var text: String?
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "last_stream": lastStream = try json.whole()
      case "after_goaway_ns": delay = try json.wholeOrNull()
      case "excess_streams": limit = try json.wholeOrNull()
      case "malformed": text = try json.text()
      default: break
      }
    }
    if let delay {
      self = .afterGoAway(lastStream: lastStream, nanoseconds: delay)
    } else if let limit {
      self = .excessStreams(limit: limit)
    } else if let text {
      self = .malformed(text)
    } else {
      return nil
    }
  }
}

extension Verdict.Credential {
  /// Creates a kind of credential from the name in a record.
  init(name: String) {
    self =
      switch name {
      case Self.token.name: .token
      case Self.certificate.name: .certificate
      default: .none
      }
  }
}

extension ProviderCertificate {
  /// The certificate as JSON.
  package var json: String {
    var writer = JSONWriter()
    writer.object { write(to: &$0) }
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// Reads a certificate from JSON; nil if it is invalid.
  package init?(json text: String) {
    var text = text
    let certificate = text.withUTF8 { bytes in
      var json = JSONReader(UnsafeRawBufferPointer(bytes))
      return try? ProviderCertificate(&json)
    }
    guard let certificate else { return nil }
    self = certificate
  }
}

extension UnsafeRawBufferPointer {
  /// Whether the bytes are UTF-8 without zeros, which many programs take for the end of a text.
  fileprivate var isText: Bool {
    firstPosition(of: 0) == nil && (isASCII || String(validating: self, as: UTF8.self) != nil)
  }

  /// Whether all bytes are ASCII characters. Eight bytes are tested at once, because this is done for each payload.
  private var isASCII: Bool {
    var offset = 0
    while offset + 8 <= count {
      guard loadUnaligned(fromByteOffset: offset, as: UInt64.self) & 0x8080_8080_8080_8080 == 0 else { return false }
      offset += 8
    }
    return self[offset...].allSatisfy { $0 < 0x80 }
  }
}
