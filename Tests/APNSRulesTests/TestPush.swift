import APNSRules
import HTTPMessage
import Testing

/// One push that APNs accepts, with everything around it; tests break one thing of it.
struct TestPush {
  /// 14 November 2023, 22:13:20 UTC, the time of all tests that do not move the clock.
  static let nowSeconds: Int64 = 1_700_000_000
  static let deviceToken = String(repeating: "0123456789abcdef", count: 4)
  static let topic = "com.example.app"

  var fields: [(name: String, value: String)] = [
    (":method", "POST"), (":scheme", "https"), (":authority", "localhost:2197"),
    (":path", "/3/device/" + deviceToken), ("authorization", TestToken().authorization),
    ("apns-id", "12345678-90ab-cdef-1234-567890abcdef"), ("apns-topic", topic),
    ("apns-push-type", "alert"),
    ("apns-priority", "10"), ("apns-expiration", "0"), ("content-type", "application/json"),
  ]
  var body = Array(#"{"aps":{"alert":"Hello"}}"#.utf8)
  var mode = RuleMode.apple
  var environment = PushEnvironment.sandbox
  var settings = APNSSettings()
  var keys = KeyRing(version: 1, keys: [FakeSignature.key()])
  var devices = DeviceTable()
  /// Milliseconds.
  var now = nowSeconds * 1000
  var standing = ConnectionStanding()
  var headersTooLarge = false

  init(mode: RuleMode = .apple) { self.mode = mode }

  subscript(name: String) -> String? {
    get { fields.first { $0.name == name }?.value }
    set {
      let index = fields.firstIndex { $0.name == name }
      switch (index, newValue) {
      case (let index?, let value?): fields[index].value = value
      case (let index?, nil): fields.remove(at: index)
      case (nil, let value?): fields.append((name, value))
      case (nil, nil): break
      }
    }
  }

  /// The provider token; setting it sets `authorization`.
  var token = TestToken() { didSet { self["authorization"] = token.authorization } }

  var trustedKeys: [TrustedKey] {
    get { Array(keys.keys.values) }
    set { keys = KeyRing(version: keys.version + 1, keys: newValue) }
  }

  /// Shows a client certificate instead of a provider token.
  mutating func useCertificate(
    subject: String? = Self.topic, topics: [String] = [Self.topic], development: Bool = true,
    production: Bool = true
  ) {
    self["authorization"] = nil
    standing.certificate = ProviderCertificate(
      subjectUID: subject, topics: topics, development: development, production: production,
      commonName: "Apple Push Services: \(Self.topic)", fingerprint: "00")
  }

  /// Sets `apns-push-type` and the topic that goes with it, and a priority every type takes.
  mutating func use(_ type: PushType) {
    self["apns-push-type"] = type.text
    self["apns-topic"] = Self.topic + type.topicSuffix
    self["apns-priority"] = "5"
  }

  var request: HTTPRequest {
    var request = HTTPRequest(headers: HeaderList(fields), body: body)
    request.headersTooLarge = headersTooLarge
    return request
  }

  var rulebook: Rulebook { Rulebook(mode: mode, environment: environment, settings: settings) }

  /// Judges it; the connection remembers.
  mutating func judge() -> Verdict {
    rulebook.judge(request, standing: &standing, keys: keys, devices: devices, now: now)
  }

  /// Judges it and gives the explanation.
  mutating func explain() -> String { explanation(of: judge()) }

  /// The words of its verdict, from its header fields as a record keeps them.
  func explanation(of verdict: Verdict) -> String {
    var kept = request.headers.bytes
    kept.withUnsafeMutableBytes { verdict.facts.blankSignatures(in: $0) }
    return kept.withUnsafeBytes { verdict.detail(headers: $0, bodySize: request.bodySize) }
  }
}

/// One row of a table: what is changed about the good push, and what APNs says then.
struct Row: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var mode: RuleMode
  /// `nil`: accepted.
  var reason: Reason?
  var change: @Sendable (inout TestPush) -> Void

  init(
    _ name: String, _ reason: Reason?, mode: RuleMode = .apple,
    _ change: @escaping @Sendable (inout TestPush) -> Void
  ) {
    testDescription = "\(name) → \(reason?.text ?? "200") (\(mode))"
    self.mode = mode
    self.reason = reason
    self.change = change
  }

  /// The same row in all modes.
  static func always(
    _ name: String, _ reason: Reason?, _ change: @escaping @Sendable (inout TestPush) -> Void
  ) -> [Row] {
    RuleMode.allCases.map { Row(name, reason, mode: $0, change) }
  }

  /// The same for each of several values, in all modes.
  static func each(
    _ values: [String], _ name: String, _ reason: Reason?,
    _ change: @escaping @Sendable (inout TestPush, String) -> Void
  ) -> [Row] {
    values.flatMap { value in
      always("\(name) \(value.debugDescription)", reason) { change(&$0, value) }
    }
  }

  func judge() -> Verdict {
    var push = TestPush(mode: mode)
    change(&push)
    return push.judge()
  }
}
