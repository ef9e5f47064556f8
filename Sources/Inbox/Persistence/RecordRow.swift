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
    .failedCheck, .verdictReason, .detail, .unregisteredAt, .findings, .headers, .payload, .finishedAt, .outcome,
    .accepted, .status, .reason, .delivery, .latency, .rule, .details,
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
    row.set(.outcome, outcome.rawValue)
    row.set(.accepted, accepted ? 1 : 0)
    row.set(.status, response.status.map { Int64($0) })
    row.set(.reason, sentReason)
    row.set(.delivery, delivery?.text)
    row.set(.latency, response.latencyNanoseconds)
    guard let wireOutcome else {
      row.setNull(.rule)
      return row.setNull(.details)
    }
    row.set(.rule, wireOutcome.injections.first?.rule)
    row.set(.details, String(decoding: details(wireOutcome), as: UTF8.self))
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
    guard let wireOutcome else { return [] }
    let injections = wireOutcome.injections
    return injections.map(\.rule) + injections.compactMap(\.profile) + [wireOutcome.unusualReason].compactMap(\.self)
  }

  private borrowing func details(_ outcome: WireOutcome) -> [UInt8] {
    let record = copy self
    var writer = JSONWriter()
    writer.object { writer in
      record.writeFault(to: &writer)
      writer.objectMember("served", record.writeServed)
      if let violation = outcome.violation {
        writer.objectMember("violation") { writer in
          switch violation {
          case .afterGoAway(let lastStream, let nanoseconds):
            writer.member("last_stream", lastStream)
            writer.member("after_goaway_ns", nanoseconds)
          case .excessStreams(let limit): writer.member("excess_streams", limit)
          }
        }
      }
      writer.member("ended_ns", outcome.endedAt)
    }
    return writer.bytes
  }
}

/// A row of the table `push` that is read.
package protocol RowReader {
  /// Returns a number; nil for null.
  func number(_ column: RecordColumn) -> Int64?
  /// Calls `read` with the bytes of a text or of bytes; nil for null.
  func withBytes<Result>(_ column: RecordColumn, _ read: (UnsafeRawBufferPointer?) -> Result) -> Result
}

extension RowReader {
  fileprivate func text(_ column: RecordColumn) -> String? {
    withBytes(column) { $0.map { String(decoding: $0, as: UTF8.self) } }
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

  /// Returns what a row refers to. Calls a function with the id of each part that is not known.
  ///
  /// - Parameter checkNames: Returns the names of a list of checks, separated by commas.
  package mutating func references(
    of row: some RowReader, connection: (Int64) throws -> ConnectionFacts, token: (Int64) throws -> ProviderToken,
    checkNames: (Int64) throws -> String
  ) rethrows -> (connection: ConnectionFacts, token: ProviderToken?, checks: UInt64) {
    (
      try Self.value(row.number(.connection) ?? 0, &connections, connection),
      try row.number(.token).map { try Self.value($0, &tokens, token) },
      try row.number(.checks).map { id in
        try Self.value(id, &checks) { Verdict.checkBits(names: try checkNames($0).split(separator: ",")) }
      } ?? 0
    )
  }

  /// Returns the ids of the connections and provider tokens that rows refer to and that are not known, to be read together.
  package mutating func unknown(in rows: some Sequence<some RowReader>) -> (connections: Set<Int64>, tokens: Set<Int64>)
  {
    // Not later, because those of these rows are needed.
    if connections.count >= Self.capacity { connections.removeAll() }
    if tokens.count >= Self.capacity { tokens.removeAll() }
    var unknown: (connections: Set<Int64>, tokens: Set<Int64>) = ([], [])
    for row in rows {
      if let id = row.number(.connection), connections[id] == nil { unknown.connections.insert(id) }
      if let id = row.number(.token), tokens[id] == nil { unknown.tokens.insert(id) }
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

  /// Returns the record of a row.
  ///
  /// - Parameters:
  ///   - checks: The `applicableCheckBits` of the record's verdict.
  package mutating func record(
    of row: some RowReader, connection: ConnectionFacts, token: ProviderToken?, checks: UInt64
  ) -> Record {
    request.stream = Int32(truncatingIfNeeded: row.number(.stream) ?? 0)
    request.headers.removeAll()
    row.withBytes(.headers) { packed in
      guard let packed else { return }
      var count = 0
      HeaderList.forEachField(in: packed) { _, _ in count += 1 }
      request.headers.append(packed: packed, count: count)
    }
    request.body.removeAll(keepingCapacity: true)
    row.withBytes(.payload) {
      if let bytes = $0 { request.body.append(contentsOf: bytes.prefix(HTTPRequest.bodyLimit)) }
    }
    request.bodySize = Int(row.number(.payloadSize) ?? 0)
    let isGenerated = row.withBytes(.idOrigin) { $0?.first == UInt8(ascii: "s") }
    let id = isGenerated ? row.withBytes(.apnsID) { bytes in bytes.map { Array($0.prefix(Int(UInt8.max))) } ?? [] } : []
    let credential = row.text(.credential).map { Verdict.Credential(name: $0) }
    // Only a validated request has the topic of its provider certificate.
    let facts = PushFacts(
      request.headers, defaultTopic: credential == nil ? nil : connection.certificate?.defaultTopic)
    let verdict = credential.map { credential in
      Verdict(
        facts: facts, credential: credential, token: token, acceptedStatus: Int(row.number(.verdictStatus) ?? 200),
        checkBits: checks, failure: failure(of: row))
    }
    return Record(
      seq: Int(row.number(.seq) ?? 0), request: request, verdict: verdict, facts: facts,
      findings: row.text(.findings)?.split(separator: ",").map(String.init), generatedID: id[...],
      connection: connection, attempt: Int32(truncatingIfNeeded: row.number(.attempt) ?? 1),
      receivedAt: row.number(.receivedAt) ?? 0, arrivedAt: row.number(.arrivedAt) ?? 0, result: result(of: row),
      pushKey: PushKey(number: UInt64(bitPattern: row.number(.pushKey) ?? 0)), in: arena)
  }

  private func failure(of row: some RowReader) -> Verdict.StoredFailure? {
    guard let check = row.text(.failedCheck).flatMap({ Check(named: $0) }) else { return nil }
    return Verdict.StoredFailure(
      check: check, reason: row.text(.verdictReason).flatMap(Reason.init(text:)),
      timestamp: row.number(.unregisteredAt), detail: row.text(.detail) ?? "")
  }

  private func result(of row: some RowReader) -> Record.Result {
    Record.Result(
      outcome: row.text(.outcome).flatMap(Record.Outcome.init) ?? .aborted, accepted: row.number(.accepted) == 1,
      sentResponse: Record.SentResponse(
        status: row.number(.status).map { Int(truncatingIfNeeded: $0) },
        reason: row.text(.reason).flatMap(Reason.init(text:)), latencyNanoseconds: row.number(.latency)),
      wireOutcome: row.withBytes(.details) { $0.flatMap(Self.wireOutcome) }, finishedAt: row.number(.finishedAt),
      delivery: row.text(.delivery).flatMap(DeliveryState.init(text:)))
  }

  private static func wireOutcome(_ details: UnsafeRawBufferPointer) -> WireOutcome? {
    var violation: WireOutcome.ProtocolViolation?
    var endedAt: Int64?
    var other = JSONReader(details)
    try? other.object { name, json throws(JSONText.Problem) in
      switch name {
      case "ended_ns": endedAt = try json.wholeOrNull()
      case "violation": violation = try WireOutcome.ProtocolViolation(&json)
      default: break
      }
    }
    var json = JSONReader(details)
    return try? ImportedRecord(details, &json).wireOutcome(violation: violation, endedAt: endedAt)
  }
}

extension WireOutcome.ProtocolViolation {
  fileprivate init?(_ json: inout JSONReader) throws(JSONText.Problem) {
    var lastStream: Int32 = 0
    var delay: Int64?
    var limit: UInt32?
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "last_stream": lastStream = try json.whole()
      case "after_goaway_ns": delay = try json.wholeOrNull()
      case "excess_streams": limit = try json.wholeOrNull()
      default: break
      }
    }
    if let delay {
      self = .afterGoAway(lastStream: lastStream, nanoseconds: delay)
    } else if let limit {
      self = .excessStreams(limit: limit)
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
