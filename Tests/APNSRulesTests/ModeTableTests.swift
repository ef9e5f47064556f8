import APNSMockRules
import APNSMockTestSupport
import Testing

/// Results of the three modes where the evidence about APNs is open. Upper-case header names are rejected before the
/// rules run.
struct ModeTableTests {
  @Test(arguments: rows) func mode(_ row: Row) { expect(row.validate(), row.reason) }

  /// Returns one row of the table for each of `apple`, `strict` and `lenient`.
  static func modes(
    _ name: String, apple: Reason?, strict: Reason?, lenient: Reason?,
    _ change: @escaping @Sendable (inout TestPush) -> Void
  ) -> [Row] {
    [
      Row(name, apple, mode: .apple, change), Row(name, strict, mode: .strict, change),
      Row(name, lenient, mode: .lenient, change),
    ]
  }

  /// Bodies that some parsers take for JSON, and others do not, and whether RFC 8259 does.
  private static let bodies: [(text: String, isJSON: Bool)] = [
    (#"{"aps":{"alert":"a"},}"#, false), (#"{"a":[1,2,]}"#, false), ("{,}", false), ("{'a':1}", false),
    ("{a:1}", false),
    (#"{"a":NaN}"#, false), (#"{"a":Infinity}"#, false), (#"{"a":01}"#, false), (#"{"a":+1}"#, false),
    (#"{"a":.5}"#, false),
    (#"{"a":1.}"#, false), (#"{"a":0x10}"#, false), (#"{"a":1} // end"#, false), (#"{"a":1}{"a":1}"#, false),
    ("{\"a\":\"\t\"}", false), (#"{"a":"\x"}"#, false), ("\u{FEFF}{}", false), (" ", false), (#"{"a":True}"#, false),
    (#"{"a":1e400}"#, true), (#"{"a":-1e400}"#, true), (#"{"a":1e-400}"#, true),
    (#"{"a":123456789012345678901234567890}"#, true),
    (#"{"a":-0}"#, true), (#"{"a":1,"a":2}"#, true), (#"{"":0}"#, true), (#""text""#, true), ("null", true),
    (" \r\n{}\t", true),
    (#"{"a":"\ud83d\ude00"}"#, true), ("{\"a\":\"\u{7f}\u{2028}\"}", true),
  ]

  static let rows: [Row] =
    otherRows
    + bodies.flatMap { text, isJSON in
      modes("body \(text)", apple: nil, strict: isJSON ? nil : .payloadEmpty, lenient: nil) {
        $0.body = Array(text.utf8)
      }
    }

  private static let otherRows: [Row] = [
    modes("background with priority 10", apple: nil, strict: .badPriority, lenient: nil) {
      $0.use(.background)
      $0["apns-priority"] = "10"
    },
    modes("background without priority", apple: nil, strict: .badPriority, lenient: nil) {
      $0.use(.background)
      $0["apns-priority"] = nil
    },
    modes("body not JSON", apple: nil, strict: .payloadEmpty, lenient: nil) {
      $0.body = Array("aps=hello".utf8)
    },
    modes("body cut off", apple: nil, strict: .payloadEmpty, lenient: nil) { $0.body.removeLast() },
    modes("body not UTF-8", apple: nil, strict: .payloadEmpty, lenient: nil) {
      $0.body = Array("{\"a\":\"".utf8) + [0xff, 0x22, 0x7d]
    },
    modes("body nested deeply", apple: nil, strict: .payloadEmpty, lenient: nil) {
      $0.body = Array(String(repeating: "[", count: 4000).utf8)
    },
    modes("DER signature", apple: nil, strict: .invalidProviderToken, lenient: nil) {
      $0.token.signature = FakeSignature.der
    },
    modes("iat a float", apple: nil, strict: .invalidProviderToken, lenient: nil) {
      $0.token = TestToken(iat: "1700000000.5")
    },
    modes("iat a string", apple: nil, strict: .invalidProviderToken, lenient: nil) {
      $0.token = TestToken(iat: "\"1700000000\"")
    },
    modes("iat a string with a fraction", apple: nil, strict: .invalidProviderToken, lenient: nil) {
      $0.token = TestToken(iat: "\"1700000000.25\"")
    },
    modes("iat a string of milliseconds", apple: .expiredProviderToken, strict: .invalidProviderToken, lenient: nil) {
      $0.token = TestToken(iat: "\"1700000000000\"")
    },
    modes("iat in nanoseconds", apple: .expiredProviderToken, strict: .expiredProviderToken, lenient: nil) {
      $0.token = TestToken(iat: "9223372036854775807")
    },
    modes("iat in milliseconds", apple: .expiredProviderToken, strict: .expiredProviderToken, lenient: nil) {
      $0.token = TestToken(iat: "1700000000000")
    },
    modes("padding", apple: nil, strict: .invalidProviderToken, lenient: nil) {
      $0.token.isPadded = true
    },
    modes("standard base64", apple: nil, strict: .invalidProviderToken, lenient: nil) {
      $0.token.isStandardAlphabet = true
    },
    modes("Bearer", apple: nil, strict: nil, lenient: nil) {
      $0["authorization"] = "Bearer " + TestToken().text
    },
    modes("extra claims", apple: nil, strict: nil, lenient: nil) {
      $0.token.claims = #"{"iss":"MOCKTEAM01","iat":1700000000,"x":{"y":[1,2]}}"#
    },
    modes("ES512", apple: nil, strict: .invalidProviderToken, lenient: nil) {
      var token = TestToken(alg: "ES512")
      token.signature = FakeSignature.es512
      $0.token = token
    },
    modes("no alg", apple: .invalidProviderToken, strict: .invalidProviderToken, lenient: nil) {
      $0.token.header = #"{"kid":"MOCKKEY001"}"#
    },
    modes(
      "the form of Apple's sample token", apple: .invalidProviderToken, strict: .invalidProviderToken, lenient: nil
    ) {
      $0.token.header = #"{ "kid": "MOCKKEY001" }"#
      $0.token.claims = #"{ "iss": "MOCKTEAM01", "iat": "1700000000000" }"#
      $0.token.signature = FakeSignature.der
    },
    modes(
      "a new token after an expired one", apple: .expiredProviderToken, strict: .expiredProviderToken, lenient: nil
    ) {
      $0.token = TestToken(iat: "1600000000")
      _ = $0.validate()
      $0.token = TestToken()
    },
    // Documented: 10 or 5 for both (Protocol.md, section 5). No published log shows a rejection.
    modes("Live Activity with priority 1", apple: nil, strict: .badPriority, lenient: nil) {
      $0.use(.liveactivity)
      $0["apns-priority"] = "1"
    },
    modes("location with priority 1", apple: nil, strict: .badPriority, lenient: nil) {
      $0.use(.location)
      $0["apns-priority"] = "1"
    },
    modes("device token of 64 zeros", apple: .badDeviceToken, strict: .badDeviceToken, lenient: nil) {
      $0[":path"] = "/3/device/" + String(repeating: "0", count: 64)
    },
    modes("device token of 62 zeros", apple: nil, strict: nil, lenient: nil) {
      $0[":path"] = "/3/device/" + String(repeating: "0", count: 62)
    },
    modes("iat 5 min ahead", apple: nil, strict: nil, lenient: nil) {
      $0.token = TestToken(iat: "1700000300")
    },
    modes("iat over 5 min ahead", apple: nil, strict: .expiredProviderToken, lenient: nil) {
      $0.token = TestToken(iat: "1700000301")
    },
    modes("iat 1 h ahead", apple: nil, strict: .expiredProviderToken, lenient: nil) {
      $0.token = TestToken(iat: "1700003600")
    },
    modes(
      "iat over 1 h ahead", apple: .expiredProviderToken, strict: .expiredProviderToken,
      lenient: nil
    ) {
      $0.token = TestToken(iat: "1700003601")
    },
    modes("type missing", apple: nil, strict: .invalidPushType, lenient: nil) {
      $0["apns-push-type"] = nil
    },
    modes("type empty", apple: nil, strict: .invalidPushType, lenient: nil) {
      $0["apns-push-type"] = ""
    },
    modes(
      "location with a certificate", apple: .topicDisallowed, strict: .topicDisallowed, lenient: nil
    ) {
      $0.useCertificate(topics: ["com.example.app.location-query"])
      $0.use(.location)
    },
    modes("mdm with a token", apple: .topicDisallowed, strict: .topicDisallowed, lenient: nil) {
      $0.use(.mdm)
    },
    Row.each(
      [
        "com.\u{1}app", "com.example app", " com.example.app", "com.example.app\n", "a\u{7f}b",
        String(repeating: "a", count: 256),
      ], "topic", .badTopic
    ) { $0["apns-topic"] = $1 },
    // Observed (Protocol.md, section 5): TopicDisallowed, not BadTopic
    ["<com.example.app>", "MOCKTEAM01.com.example.app", "MOCKTEAM01.app", "A1B2C3D4E5.com.x"].flatMap {
      (topic: String) in
      modes("topic \(topic)", apple: .topicDisallowed, strict: .topicDisallowed, lenient: nil) {
        $0["apns-topic"] = topic
      }
    },
    modes("topic of 255 bytes", apple: nil, strict: nil, lenient: nil) {
      $0["apns-topic"] = String(repeating: "a", count: 255)
    },
    modes(
      "malformed topic, not permitted either", apple: .badTopic, strict: .badTopic,
      lenient: .badTopic
    ) {
      $0.useCertificate()
      $0["apns-topic"] = "com example"
    },
    modes(
      "two quick changes of the token", apple: .tooManyProviderTokenUpdates,
      strict: .tooManyProviderTokenUpdates,
      lenient: nil
    ) {
      for iat in ["1699999990", "1699999991"] {
        $0.token = TestToken(iat: iat)
        _ = $0.validate()
      }
      $0.token = TestToken(iat: "1699999992")
    },
    modes("two quick changes to tokens that do not verify", apple: nil, strict: nil, lenient: nil) {
      for iat in ["1699999990", "1699999991", "1699999992"] {
        $0.token = TestToken(kid: "UNKNOWNKEY", iat: iat)
        _ = $0.validate()
      }
      $0.token = TestToken()
    },
  ].flatMap { $0 }

  /// `token_future` overrides the mode's default.
  @Test(arguments: RuleMode.allCases) func futureBySetting(_ mode: RuleMode) {
    var push = TestPush(mode: mode)
    push.settings.tokenFuture = .seconds(10)
    push.token = TestToken(iat: "1700000010")
    expect(push.validate(), nil)
    push.token = TestToken(iat: "1700000011")
    expect(push.validate(), .expiredProviderToken)
  }
}
