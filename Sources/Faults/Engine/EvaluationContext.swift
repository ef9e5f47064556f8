import APNSMockFaultModel
internal import APNSMockRules
internal import APNSMockHTTPMessage
internal import APNSMockNotation
internal import APNSMockPushQuery

/// A value that a condition examines.
enum SubjectValue: Equatable {
  case text(String)
  /// A value as written, which may also be compared as a number.
  case number(String)
  case duration(Duration)
  /// An array or an object: present, but not comparable as a text.
  case structure(String)

  /// The value as explanations show it.
  var shown: String {
    switch self {
    case .text(let text), .number(let text), .structure(let text): text
    case .duration(let duration): DurationFormat.text(duration)
    }
  }
}

/// The values that the rules of one decision examine. Each is read when a rule needs it; those that are expensive to
/// read are cached.
struct EvaluationContext {
  let traffic: Traffic
  private let identity: Profile.PushIdentity
  private var deviceToken: String??
  private var topic: String??
  private var key: String?
  private var isJSON: Bool?
  /// The packed header fields as records keep them, without signatures; used only by queries.
  private var recordedHeaders: [UInt8]?
  private var unescapedBody: String?

  init(_ traffic: Traffic, identity: Profile.PushIdentity) {
    self.traffic = traffic
    self.identity = identity
  }

  /// Returns the value of a test's subject; nil if the traffic has none.
  mutating func value(of test: PreparedCondition.Test) -> SubjectValue? {
    switch test.subject {
    case .deviceToken: readDeviceToken().map { .text($0) }
    case .topic: readTopic().map { .text($0) }
    case .pushType: text(\.pushTypeText).map { .text($0) }
    case .priority: readPriority().map { .number($0) }
    case .collapseID: text(\.collapseID).map { .text($0) }
    case .apnsID: text(\.apnsID).map { .text($0.lowercased()) }
    case .payload: test.pointer.flatMap { readPayload($0) }.map { SubjectValue($0) }
    case .header(let name): readHeader(name).map { .number($0) }
    case .size: number(traffic.push?.request.bodySize)
    case .tokenAge: readTokenAge().map { .duration($0) }
    case .teamID: providerToken?.teamID.map { .text($0) }
    case .keyID: providerToken?.keyID.map { .text($0) }
    case .client, .address: .text(traffic.connection.client)
    case .age: .duration(.nanoseconds(traffic.connection.age))
    case .idle: .duration(.nanoseconds(traffic.connection.idle))
    case .listener: number(traffic.connection.listener)
    case .environment: .text(traffic.connection.environment.rawValue)
    case .kind: traffic.push.map { .text($0.kind.rawValue) }
    case .connection: .text("c\(traffic.connection.number)")
    // There is no value to show, only all of the push.
    case .text: nil
    case .serverName: traffic.connection.serverName.map { .text($0.lowercased()) }
    case .certificate: traffic.connection.certificateUID.map { .text($0) }
    case .attempt: number(traffic.push?.attempt)
    case .status: number(traffic.response?.status)
    case .reason: traffic.response?.reason.map { .text($0) }
    }
  }

  /// Returns the text of the key of a draw or a count. Without a push, the connection is the key of an attempt or a
  /// push.
  mutating func text(of key: Trigger.Key) -> String {
    switch key {
    case .rule: ""
    case .attempt, .push: readPushKey() ?? String(traffic.connection.number)
    case .deviceToken: readDeviceToken() ?? ""
    case .topic: readTopic() ?? ""
    case .connection: String(traffic.connection.number)
    case .client: traffic.connection.client
    }
  }

  /// Returns the key of a draw.
  mutating func drawKey(of key: Trigger.Key) -> Draw.Key {
    if let push = traffic.push, let key = key.ofContent(push.key, identity) { return key }
    return .text(text(of: key))
  }

  /// Returns the hash of a key, for tables. It is the same on all servers.
  ///
  /// - Parameter path: Distinguishes several sequences of a rule.
  mutating func hash(of key: Trigger.Key, at path: [Int] = []) -> Int {
    if key == .rule, path.isEmpty { return 0 }
    var text = text(of: key)
    for index in path { text += "\n\(index)" }
    return text.withBytes { Int(bitPattern: UInt(PushKey(bytes: $0).number)) }
  }

  private mutating func readPushKey() -> String? {
    if let key { return key }
    guard let push = traffic.push else { return nil }
    let made: String
    if identity == .apnsID, let id = text(\.apnsID) {
      made = "id:" + id.lowercased()
    } else {
      made = push.key.text
    }
    key = made
    return made
  }

  private mutating func readDeviceToken() -> String? {
    if let deviceToken { return deviceToken }
    let made = text(\.deviceToken)?.lowercased()
    deviceToken = .some(made)
    return made
  }

  private mutating func readTopic() -> String? {
    if let topic { return topic }
    let made = text(\.topic) ?? traffic.push?.defaultTopic
    topic = .some(made)
    return made
  }

  /// Returns 10 without the header, and an invalid priority unchanged.
  private func readPriority() -> String? {
    guard let facts = traffic.push?.verdict.facts else { return nil }
    return facts.priority > 0 ? String(facts.priority) : text(\.priorityText)
  }

  private var providerToken: ProviderToken? {
    guard let verdict = traffic.push?.verdict, verdict.credential == .token else { return nil }
    return verdict.token
  }

  private func readTokenAge() -> Duration? {
    guard let push = traffic.push, let issuedAt = providerToken?.issuedAt else { return nil }
    let (age, overflow) = push.receivedAt.subtractingReportingOverflow(issuedAt)
    return overflow ? nil : .milliseconds(age)
  }

  private mutating func readPayload(_ pointer: JSONPointer) -> JSONValue? {
    guard let request = traffic.push?.request else { return nil }
    return request.body.withUnsafeBytes { body in
      let isJSON = isJSON ?? (request.bodySize == body.count && JSONText.problem(in: body) == nil)
      self.isJSON = isJSON
      return isJSON ? pointer.value(in: body) : nil
    }
  }

  // MARK: - Queries

  /// Returns whether the traffic meets the conditions of a query on a subject, with the same result as for a record of
  /// the push.
  mutating func meets(_ query: FieldConditions, _ test: PreparedCondition.Test) -> Bool {
    switch query.subject {
    case .payload(let pointer): return query.hold(payload: readPayload(pointer))
    case .header: return readHeadersAsRecorded().withUnsafeBytes { query.hold(headers: $0) }
    case .field(.text):
      guard let body = traffic.push?.request.body else { return query.matchesMissingValue }
      let headers = readHeadersAsRecorded()
      return body.withUnsafeBytes { body in
        headers.withUnsafeBytes { query.hold(body: body, headers: $0, unescaped: &unescapedBody) }
      }
    // The inbox records no priority for one that APNs does not have.
    case .field(.priority):
      return query.hold(traffic.push.flatMap { $0.verdict.facts.priority }.flatMap { $0 > 0 ? Int64($0) : nil })
    // The inbox also shows the provider token of a connection with a client certificate.
    case .field(.keyID): return query.hold(traffic.push?.verdict.token?.keyID)
    case .field(.teamID): return query.hold(traffic.push?.verdict.token?.teamID)
    case .field:
      return switch value(of: test) {
      case .text(let text): query.hold(text)
      case .number(let text): query.hold(Int64(text))
      case .duration, .structure, nil: query.matchesMissingValue
      }
    }
  }

  private mutating func readHeadersAsRecorded() -> [UInt8] {
    if let recordedHeaders { return recordedHeaders }
    var bytes = traffic.push.map { Array($0.request.headers.bytes) } ?? []
    if let facts = traffic.push?.verdict.facts { bytes.withUnsafeMutableBytes { facts.blankSignatures(in: $0) } }
    recordedHeaders = bytes
    return bytes
  }

  private func readHeader(_ wanted: String) -> String? {
    guard let headers = traffic.push?.request.headers else { return nil }
    var found: ByteRange?
    headers.bytes.withUnsafeBytes { bytes in
      HeaderList.forEachField(in: bytes) { name, value in
        if found == nil, bytes[name.indices].elementsEqual(wanted.utf8) { found = value }
      }
    }
    return found.map { headers.string($0) }
  }

  private func text(_ field: KeyPath<PushFacts, ByteRange?>) -> String? {
    guard let push = traffic.push else { return nil }
    return push.request.headers.bytes.withUnsafeBytes { bytes in
      bytes.field(push.verdict.facts[keyPath: field]).map { String(decoding: $0, as: UTF8.self) }
    }
  }

  private func number(_ value: Int?) -> SubjectValue? { value.map { .number(String($0)) } }
}

extension SubjectValue {
  /// Creates a value from the result of a JSON pointer.
  fileprivate init(_ value: JSONValue) {
    switch value {
    case .text(let text): self = .text(text)
    case .flag(let flag): self = .text(String(flag))
    case .null: self = .text("null")
    case .number(let text): self = .number(text)
    case .list(let structure), .object(let structure):
      self = .structure(String(decoding: structure.json, as: UTF8.self))
    }
  }
}

extension UnsafeRawBufferPointer {
  /// Returns the bytes of packed header fields at `range`; nil without a range or with one that is out of bounds.
  func field(_ range: ByteRange?) -> Slice<UnsafeRawBufferPointer>? {
    guard let range, range.indices.upperBound <= count else { return nil }
    return self[range.indices]
  }
}
