internal import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockHTTPMessage
internal import APNSMockNotation

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Creates records from their JSON. Records share connections and provider tokens as the originals did.
struct RecordReader {
  /// The maximum number of connections, and of tokens, remembered for sharing.
  private static let capacity = 4096
  /// The largest valid `seq`: JSON readers do not represent larger integers exactly.
  static let maxSeq = 1 << 53

  private struct Token: Hashable {
    let teamID: String?
    let keyID: String?
    let issuedAt: Int64?
    let signature: ProviderToken.Signature
  }

  /// The run and the test of the record that was read last; nil for none.
  private(set) var owner: RunAttribution.Owner?
  /// The nanoseconds from the time of an export to machine time.
  let arrivalOffset: Int64
  /// What precedes the `id` of each connection.
  let connectionPrefix: String
  private let arena = RecordArena()
  private var connections: [String: ConnectionFacts] = [:]
  private var tokens: [Token: ProviderToken] = [:]

  init(arrivalOffset: Int64, connectionPrefix: String = "") {
    self.arrivalOffset = arrivalOffset
    self.connectionPrefix = connectionPrefix
  }

  /// Parses the record in `text`.
  ///
  /// - Throws: `JSONText.Problem` if the text is not a valid record.
  mutating func read(_ text: UnsafeRawBufferPointer) throws(JSONText.Problem) -> Record {
    var json = JSONReader(text)
    let imported = try ImportedRecord(text, &json)
    func required<Value>(_ value: Value?, _ name: String) throws(JSONText.Problem) -> Value {
      guard let value else { throw json.problem("no record of a push: \(name) is missing") }
      return value
    }
    let seq = try required(imported.seq, "seq")
    owner = imported.run.map {
      RunAttribution.Owner(
        run: TestRun.cut($0, TestRun.maxName), test: imported.test.map { TestRun.cut($0, TestRun.maxName) },
        number: imported.test == nil ? nil : imported.testNumber.flatMap { (0...Self.maxSeq).contains($0) ? $0 : nil })
    }
    guard (1...Self.maxSeq).contains(seq) else { throw json.problem("seq cannot be \(seq)") }
    let end = try imported.end(json)
    let receivedAt = try required(imported.receivedAt, "received_at")
    guard let request = Self.request(imported) else {
      throw json.problem("header fields or body that no push can have had")
    }
    let facts = PushFacts(request.headers, defaultTopic: imported.verdict == nil ? nil : imported.apns.topic)
    let id = imported.apns.origin == "server" ? Array((imported.apns.id ?? "").utf8) : []
    guard id.count <= Int(UInt8.max) else { throw json.problem("an apns.id that is too long") }
    return Record(
      seq: seq, request: request,
      verdict: verdict(imported, facts), facts: facts,
      isRequestComplete: imported.request.isComplete ?? (end.ending != .incomplete && end.ending != .malformed),
      findings: imported.findings,
      generatedID: id[...], connection: connection(imported, facts), attempt: imported.attempt ?? 1,
      receivedAt: receivedAt, arrivedAt: receivedAt &* 1_000_000 &+ arrivalOffset,
      result: Record.Result(
        end.decision, end.ending, sentResponse: sentResponse(of: imported),
        wireDetails: imported.wireDetails,
        finishedAt: imported.finishedAt, delivery: imported.delivery), in: arena)
  }

  // MARK: - Request

  private static func request(_ imported: ImportedRecord) -> HTTPRequest? {
    let members = imported.request
    var request = HTTPRequest()
    request.stream = imported.connection.stream
    guard let headers = headers(members) else { return nil }
    request.headers = headers
    if let text = members.bodyBytes {
      guard let body = Data(base64Encoded: text) else { return nil }
      request.body = Array(body.prefix(HTTPRequest.bodyLimit))
    } else if members.payloadError == nil, let payload = members.payload {
      request.body = Array(payload.prefix(HTTPRequest.bodyLimit))
    }
    // The size of a payload that another program has reformatted differs from `size`, but the body was not cut.
    request.bodySize = members.bodyBytes == nil ? request.body.count : max(request.body.count, members.size ?? 0)
    return request
  }

  private static func headers(_ members: ImportedRecord.RequestMembers) -> HeaderList? {
    var headers = HeaderList()
    func append(_ name: [UInt8], _ value: [UInt8]) -> Bool {
      name.withUnsafeBytes { name in value.withUnsafeBytes { headers.append(name: name, value: $0) } }
    }
    if let fields = members.fieldBytes {
      for field in fields {
        guard let name = Data(base64Encoded: field.name), let value = Data(base64Encoded: field.value),
          append(Array(name), Array(value))
        else { return nil }
      }
      return headers
    }
    if let method = members.method, !append(Array(":method".utf8), TokenRedaction.stored(method)) { return nil }
    if let path = members.path, !append(Array(":path".utf8), TokenRedaction.stored(path)) { return nil }
    for (name, value) in members.fields {
      // Restore a zero in place of a removed signature, as in the original record.
      let ellipsis = TokenRedaction.ellipsis
      let isBlanked = name == "authorization" && value.hasSuffix(ellipsis)
      let bytes = isBlanked ? Array(value.utf8.dropLast(ellipsis.utf8.count)) + [0] : TokenRedaction.stored(value)
      guard append(Array(name.utf8), bytes) else { return nil }
    }
    return headers
  }

  // MARK: - Verdict

  private mutating func verdict(_ imported: ImportedRecord, _ facts: PushFacts) -> Verdict? {
    guard let verdict = imported.verdict else { return nil }
    let credential = Verdict.Credential(name: imported.auth.kind ?? "")
    return Verdict(
      facts: facts, credential: credential, token: token(imported.auth), acceptedStatus: verdict.status,
      passed: verdict.passed,
      failed: verdict.failed.map { ($0.check, verdict.reason, $0.detail) })
  }

  private mutating func token(_ auth: ImportedRecord.AuthMembers) -> ProviderToken? {
    guard let signature = auth.signature else { return nil }
    let key = Token(teamID: auth.teamID, keyID: auth.keyID, issuedAt: auth.issuedAt, signature: signature)
    if let known = tokens[key] { return known }
    if tokens.count == Self.capacity { tokens.removeAll() }
    let token = ProviderToken(
      keyID: auth.keyID, teamID: auth.teamID, issuedAt: auth.issuedAt, signature: signature)
    tokens[key] = token
    return token
  }

  // MARK: - Connection

  private mutating func connection(_ imported: ImportedRecord, _ facts: PushFacts) -> ConnectionFacts {
    let (members, listener, environment) = (imported.connection, imported.listener ?? 0, imported.environment)
    var certificate = imported.auth.certificate
    if certificate == nil, facts.topic == nil, let topic = imported.apns.topic {
      // An incomplete request has no verdict; its topic is all that is known about the certificate.
      certificate = ProviderCertificate(
        subjectUID: nil, topics: [topic], development: false, production: false, commonName: nil, fingerprint: "")
    }
    if let known = connections[members.id], known.listener == listener, known.environment == environment,
      known.client == members.client,
      known.sni == members.sni, known.tls == members.tls, known.http == members.http,
      known.certificate == certificate
    {
      return known
    }
    if connections.count == Self.capacity { connections.removeAll() }
    let facts = ConnectionFacts(
      id: connectionPrefix + members.id, listener: listener, environment: environment, client: members.client,
      sni: members.sni,
      tls: members.tls, http: members.http, certificate: certificate)
    connections[members.id] = facts
    return facts
  }

  // MARK: - Response

  private func sentResponse(of imported: ImportedRecord) -> Record.SentResponse {
    Record.SentResponse(
      status: imported.served.status.map(Int.init), reason: imported.served.reason.flatMap(Reason.init(text:)),
      latencyNanoseconds: imported.served.latency)
  }
}

/// Parsing of the value types in a record.
extension JSONReader {
  /// Returns the error for an invalid value of the member `name`.
  func unknown(_ name: String, _ value: String) -> JSONText.Problem {
    problem("\(name) cannot be \"\(value.prefix(80))\" before here,")
  }

  /// Parses a value of an enumeration, or null.
  mutating func choice<Choice: RawRepresentable<String>>(_ name: String) throws(JSONText.Problem) -> Choice? {
    guard let text = try text() else { return nil }
    guard let choice = Choice(rawValue: text) else { throw unknown(name, text) }
    return choice
  }

  /// Parses a time, or null.
  mutating func time(_ name: String) throws(JSONText.Problem) -> Int64? {
    guard let text = try text() else { return nil }
    guard let time = TimestampFormat.milliseconds(text) else { throw unknown(name, text) }
    return time
  }

  /// Parses an integer, or null.
  mutating func wholeOrNull<Number: FixedWidthInteger>() throws(JSONText.Problem) -> Number? {
    try unlessNull { json throws(JSONText.Problem) in try json.whole() }
  }

  /// Parses a number, or null.
  /// Reads the `seq` of another push; nil for null, and for a text such as `load_1:4711`, because an export of a view of several
  /// servers numbers its pushes itself.
  mutating func otherSeq() throws(JSONText.Problem) -> Int? {
    var rest = self
    guard (try? rest.string()) != nil else { return try wholeOrNull() }
    self = rest
    return nil
  }

  mutating func numberOrNull() throws(JSONText.Problem) -> Double? {
    try unlessNull { json throws(JSONText.Problem) in try json.number() }
  }

  /// Parses a list of strings.
  mutating func strings() throws(JSONText.Problem) -> [String] {
    var strings: [String] = []
    try list { json throws(JSONText.Problem) in strings.append(try json.string()) }
    return strings
  }

  /// Parses a list of pairs of strings.
  mutating func pairs() throws(JSONText.Problem) -> [(name: String, value: String)] {
    var pairs: [(name: String, value: String)] = []
    try list { json throws(JSONText.Problem) in
      let strings = try json.strings()
      guard strings.count == 2 else { throw json.problem("a header field must be a name and a value") }
      pairs.append((strings[0], strings[1]))
    }
    return pairs
  }
}

extension Action.Name {
  /// An action of this name with placeholder parameters, because records contain only the name.
  var bare: Action {
    switch self {
    case .respond: .respond(Action.Response(status: 0, reason: nil))
    case .delay: .delay(.fixed(.zero))
    case .hang: .hang(for: nil, endWith: .nothing)
    case .resetStream: .resetStream(code: 0)
    case .resetConnection: .resetConnection(afterAccepting: false)
    case .goAway: .goAway(Action.GoAwayParameters())
    case .close: .close
    case .respondThenShutDown: .respondThenShutDown(for: .zero, respond: Action.Response(status: 0, reason: nil))
    case .loseResponse: .loseResponse(endWith: .nothing)
    case .dribble: .dribble(chunks: 0, over: .zero)
    case .splitBody: .splitBody
    case .truncateBody: .truncateBody
    case .garbleBody: .garbleBody
    case .dropHeader: .dropHeader(name: "")
    case .emptyErrorBody: .emptyErrorBody
    case .changeID: .changeID(.upperCase)
    case .starveWindow: .starveWindow(for: nil)
    case .settings: .settings(Action.SettingsParameters())
    case .ignorePings: .ignorePings(for: nil)
    case .refuse: .refuse
    case .silence: .silence(for: nil)
    case .stall: .stall(for: nil, endWith: .nothing)
    case .alert: .alert(code: 0)
    case .certificate: .certificate(.expired)
    case .pass: .pass
    case .choose: .choose([])
    case .sequence: .sequence(key: .rule, steps: [], onEnd: .stay)
    }
  }
}
