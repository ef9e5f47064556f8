internal import APNSRules
internal import HTTPMessage
internal import Notation

/// A value that a condition looks at.
enum SubjectValue: Equatable {
  case text(String)
  /// What may be compared as a number too, as it is written.
  case number(String)
  case duration(Duration)
  /// An array or an object: it is there, and no text.
  case structure(String)

  /// How an explanation shows it.
  var shown: String {
    switch self {
    case .text(let text), .number(let text), .structure(let text): text
    case .duration(let duration): WrittenDuration.text(duration)
    }
  }
}

/// What one decision reads of its traffic: each thing when a rule asks for it, and what takes effort once.
struct Reading {
  let traffic: Traffic
  private let identity: Profile.PushIdentity
  private var deviceToken: String??
  private var topic: String??
  private var key: String?
  private var isJSON: Bool?

  init(_ traffic: Traffic, identity: Profile.PushIdentity) {
    self.traffic = traffic
    self.identity = identity
  }

  /// The value of a subject; nil if the traffic has none.
  mutating func value(of test: PreparedCondition.Test) -> SubjectValue? {
    switch test.subject {
    case .deviceToken: readDeviceToken().map { .text($0) }
    case .topic: readTopic().map { .text($0) }
    case .pushType: text(\.pushTypeText).map { .text($0) }
    case .priority: readPriority().map { .number($0) }
    case .collapseID: text(\.collapseID).map { .text($0) }
    case .apnsID: text(\.apnsID).map { .text($0.lowercased()) }
    case .payload: test.pointer.flatMap { readPayload($0) }
    case .header(let name): readHeader(name).map { .number($0) }
    case .size: number(traffic.push?.request.bodySize)
    case .tokenAge: readTokenAge().map { .duration($0) }
    case .teamID: providerToken?.teamID.map { .text($0) }
    case .keyID: providerToken?.keyID.map { .text($0) }
    case .client: .text(traffic.connection.client)
    case .listener: number(traffic.connection.listener)
    case .serverName: traffic.connection.serverName.map { .text($0.lowercased()) }
    case .certificate: traffic.connection.certificateUID.map { .text($0) }
    case .attempt: number(traffic.push?.attempt)
    case .status: number(traffic.answer?.status)
    case .reason: traffic.answer?.reason.map { .text($0) }
    }
  }

  /// Whose draw or count it is. Before a push is there the connection stands for it.
  mutating func text(of key: Trigger.Key) -> String {
    switch key {
    case .rule: ""
    case .attempt, .push: readPushKey() ?? String(traffic.connection.number)
    case .deviceToken: readDeviceToken() ?? ""
    case .topic: readTopic() ?? ""
    case .connection: String(traffic.connection.number)
    }
  }

  /// The same for a draw.
  mutating func drawKey(of key: Trigger.Key) -> Draw.Key {
    if let push = traffic.push, let key = key.ofContent(push.key, identity) { return key }
    return .text(text(of: key))
  }

  /// The same as a number of its own for tables. Made with the process's own secret, so that nobody can choose keys
  /// that fall together.
  mutating func hash(of key: Trigger.Key) -> Int { key == .rule ? 0 : text(of: key).hashValue }

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

  /// 10 without the header; what is no priority as it came.
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
    let (age, overflow) = push.now.subtractingReportingOverflow(issuedAt)
    return overflow ? nil : .milliseconds(age)
  }

  private mutating func readPayload(_ pointer: JSONPointer) -> SubjectValue? {
    guard let request = traffic.push?.request else { return nil }
    return request.body.withUnsafeBytes { body in
      let isJSON = isJSON ?? (request.bodySize == body.count && JSONText.problem(in: body) == nil)
      self.isJSON = isJSON
      guard isJSON else { return nil }
      return switch pointer.value(in: body) {
      case .string(let text), .word(let text): .text(text)
      case .number(let text): .number(text)
      case .structure(let text): .structure(text)
      case nil: nil
      }
    }
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

extension UnsafeRawBufferPointer {
  /// The bytes of packed header fields at `range`; nil without a range, or with one that is not of these bytes.
  func field(_ range: ByteRange?) -> Slice<UnsafeRawBufferPointer>? {
    guard let range, range.indices.upperBound <= count else { return nil }
    return self[range.indices]
  }
}
