import APNSMockRules
import APNSMockDevices
import APNSMockHTTPMessage
import APNSMockTestSupport
import Testing

/// A push that APNs accepts, with its connection, keys and settings; tests change one part of it.
struct TestPush {
  /// 14 November 2023, 22:13:20 UTC, the time of all tests that do not move the clock.
  static let nowSeconds = TestToken.issuedAt
  static let deviceToken = String(repeating: "0123456789abcdef", count: 4)
  static let topic = "com.example.app"
  /// A channel that stores the newest broadcast, and one that stores nothing.
  static let storingChannel = "dHN0LXNyY2gtY2hubA=="
  static let otherChannel = "aMs2y8fFEe8AAPIAM4gHog=="

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
  var keys = TrustedKeySet(version: 1, keys: [FakeSignature.key()])
  /// The registered device tokens.
  var tokens: [SingleToken] = []
  /// The known apps, and whether topics of others are rejected.
  var apps = AppTable()
  var requiresKnownTopics = false
  /// The channels of the app `com.example.app`, by id.
  var channels = [storingChannel: StoragePolicy.newest, otherChannel: .none]
  /// The server's time in milliseconds since 1970.
  var now = nowSeconds * 1000
  /// How far `now` is ahead of the provider's clock, in milliseconds.
  var clockOffset: Int64 = 0
  var authentication = ConnectionAuthentication()
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

  /// The provider token; setting it sets the `authorization` header.
  var token = TestToken() { didSet { self["authorization"] = token.authorization } }

  var trustedKeys: [TrustedKey] {
    get { Array(keys.keys.values) }
    set { keys = TrustedKeySet(version: keys.version + 1, keys: newValue) }
  }

  /// Replaces the provider token by a client certificate.
  mutating func useCertificate(
    subject: String? = Self.topic, topics: [String] = [Self.topic], development: Bool = true,
    production: Bool = true
  ) {
    self["authorization"] = nil
    authentication.certificate = ProviderCertificate(
      subjectUID: subject, topics: topics, development: development, production: production,
      commonName: "Apple Push Services: \(Self.topic)", fingerprint: "00")
  }

  /// Sets `apns-push-type`, its topic, and a priority that every type accepts.
  mutating func use(_ type: PushType) {
    self["apns-push-type"] = type.text
    self["apns-topic"] = Self.topic + type.topicSuffix
    self["apns-priority"] = "5"
  }

  /// Makes it a broadcast.
  mutating func useBroadcast(to channel: String = Self.storingChannel) {
    self[":path"] = "/4/broadcasts/apps/\(Self.topic)"
    self["apns-topic"] = nil
    self["apns-push-type"] = "liveactivity"
    self["apns-channel-id"] = channel
    body = Array(#"{"aps":{"timestamp":1700000000,"event":"update","content-state":{}}}"#.utf8)
  }

  /// Makes it a request to create a channel (`POST`), or to read or delete one.
  mutating func useChannels(
    _ method: String, _ json: String = #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#
  ) {
    for name in ["apns-topic", "apns-push-type", "apns-priority", "apns-expiration"] { self[name] = nil }
    self[":method"] = method
    self[":path"] = "/1/apps/\(Self.topic)/channels"
    self["apns-channel-id"] = method == "POST" ? nil : Self.storingChannel
    body = method == "POST" ? Array(json.utf8) : []
  }

  /// Makes it a request for all channels of the app.
  mutating func useChannelList() {
    useChannels("GET")
    self[":path"] = "/1/apps/\(Self.topic)/all-channels"
    self["apns-channel-id"] = nil
  }

  var request: HTTPRequest {
    var request = HTTPRequest(headers: HeaderList(fields), body: body)
    request.headersTooLarge = headersTooLarge
    return request
  }

  var rulebook: Rulebook {
    var rulebook = Rulebook(
      mode: mode, environment: environment, settings: settings, requiresKnownTopics: requiresKnownTopics)
    rulebook.apps = apps
    rulebook.clockOffset = clockOffset
    return rulebook
  }

  /// Returns the verdict of the rules and updates the connection's state.
  mutating func validate() -> Verdict {
    let devices = DeviceRegistry()
    for token in tokens { _ = try? devices.set(token) }
    var verdict = rulebook.validate(
      request, authentication: &authentication, keys: keys, now: now,
      isRegistered: { devices.match($0, now: 0) != nil },
      findChannel: { app, id in app == Self.topic ? channels[id] : nil })
    let path = Array((self[":path"] ?? "").utf8.dropFirst("/3/device/".utf8.count))
    let match = path.withUnsafeBytes { devices.match($0, now: now) }
    rulebook.checkDevice(
      match?.token, of: request, certificate: authentication.certificate, now: now, verdict: &verdict)
    return verdict
  }

  /// Calls `read` with the push's header fields, topic and body.
  func withContent<Result>(
    _ read: (UnsafeRawBufferPointer, _ topic: UnsafeRawBufferPointer?, _ body: UnsafeRawBufferPointer) -> Result
  ) -> Result {
    var topic = self["apns-topic"] ?? authentication.certificate?.defaultTopic ?? ""
    return request.headers.bytes.withUnsafeBytes { headers in
      topic.withUTF8 { topic in body.withUnsafeBytes { read(headers, UnsafeRawBufferPointer(topic), $0) } }
    }
  }

  /// Returns why a device would not show the push; nil if it would.
  func displayProblem() -> DisplayProblem? {
    var push = self
    let facts = push.validate().facts
    return withContent { rulebook.displayProblem(facts, headers: $0, topic: $1, body: $2, at: now) }
  }

  /// Returns whether the push lacks a push type.
  func lacksPushType() -> Bool {
    var push = self
    let facts = push.validate().facts
    return withContent { _, topic, _ in rulebook.lacksPushType(facts, topic: topic) }
  }

  /// Returns the explanation of the push's verdict.
  mutating func explain() -> String { explanation(of: validate()) }

  /// Returns the explanation of a verdict, from the header fields as a record keeps them.
  func explanation(of verdict: Verdict) -> String {
    var kept = request.headers.bytes
    kept.withUnsafeMutableBytes { verdict.facts.blankSignatures(in: $0) }
    return kept.withUnsafeBytes { verdict.detail(headers: $0, bodySize: request.bodySize) }
  }
}

/// One row of a table: a change to the valid push, and the result expected from APNs.
struct Row: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var mode: RuleMode
  /// The expected reason; nil if the push is accepted.
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

  /// Returns the same row for each mode.
  static func always(
    _ name: String, _ reason: Reason?, _ change: @escaping @Sendable (inout TestPush) -> Void
  ) -> [Row] {
    RuleMode.allCases.map { Row(name, reason, mode: $0, change) }
  }

  /// Returns rows for each of several values, in each mode.
  static func each(
    _ values: [String], _ name: String, _ reason: Reason?,
    _ change: @escaping @Sendable (inout TestPush, String) -> Void
  ) -> [Row] {
    values.flatMap { value in
      always("\(name) \(value.debugDescription)", reason) { change(&$0, value) }
    }
  }

  func validate() -> Verdict {
    var push = TestPush(mode: mode)
    change(&push)
    return push.validate()
  }
}
