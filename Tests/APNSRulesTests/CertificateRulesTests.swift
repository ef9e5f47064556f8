import APNSMockRules
import APNSMockDevices
import APNSMockTestSupport
import Testing

/// Provider certificates (Protocol.md, section 4.2), as far as they affect a request.
struct CertificateRulesTests {
  @Test(arguments: rows) func certificate(_ row: Row) {
    let verdict = row.validate()
    expect(verdict, row.reason)
    #expect(verdict.credential == .certificate)
    #expect(verdict.token == nil)
    #expect(!verdict.checks.contains { $0.check == .providerToken })
  }

  static let several = ["com.example.app", "com.example.app.voip", "com.example.app.complication"]

  static let rows: [Row] = [
    Row.always("one topic", nil) { $0.useCertificate() },
    Row.always("one topic, no apns-topic", nil) {
      $0.useCertificate()
      $0["apns-topic"] = nil
    },
    Row.always("no list, the subject is the topic", nil) { $0.useCertificate(topics: []) },
    Row.always("no list, no apns-topic", nil) {
      $0.useCertificate(topics: [])
      $0["apns-topic"] = nil
    },
    Row.always("no list, another topic", .topicDisallowed) {
      $0.useCertificate(topics: [])
      $0["apns-topic"] = "com.example.other"
    },
    Row.always("no list, no subject", .topicDisallowed) {
      $0.useCertificate(subject: nil, topics: [])
    },
    Row.always("no list, no subject, no apns-topic", .missingTopic) {
      $0.useCertificate(subject: nil, topics: [])
      $0["apns-topic"] = nil
    },
    Row.always("one topic, empty apns-topic", .missingTopic) {
      $0.useCertificate()
      $0["apns-topic"] = ""
    },
    Row.always("several topics", nil) { $0.useCertificate(topics: several) },
    Row.always("several topics, no apns-topic", .missingTopic) {
      $0.useCertificate(topics: several)
      $0["apns-topic"] = nil
    },
    Row.always("a topic not in the list", .topicDisallowed) {
      $0.useCertificate(topics: several)
      $0["apns-topic"] = "com.example.other"
    },
    Row.always("a topic in another case", .topicDisallowed) {
      $0.useCertificate()
      $0["apns-topic"] = "com.example.App"
    },
    Row.always("a VoIP topic that is listed", nil) {
      $0.useCertificate(topics: several)
      $0.use(.voip)
    },
    Row.always("a VoIP topic that is not listed", .topicDisallowed) {
      $0.useCertificate()
      $0.use(.voip)
    },
    Row.always("a Live Activity topic that is listed", nil) {
      $0.useCertificate(topics: several + ["com.example.app.push-type.liveactivity"])
      $0.use(.liveactivity)
    },
    Row.always("authorization beside it: ignored", nil) {
      $0.useCertificate()
      $0.token.signature = FakeSignature.wrong
    },
    Row.always("rubbish in authorization beside it: ignored", nil) {
      $0.useCertificate()
      $0["authorization"] = "rubbish"
    },
    Row.always("development only", nil) { $0.useCertificate(production: false) },
    Row.always("production only", nil) { $0.useCertificate(development: false) },
    Row.always("no push extension", .badCertificate) {
      $0.useCertificate(development: false, production: false)
    },
    Row.always("MDM", nil) {
      let topic = "com.apple.mgmt.External.8d4e5f60"
      $0.useCertificate(subject: topic, topics: [])
      $0["apns-topic"] = topic
      $0["apns-push-type"] = "mdm"
      $0.body = Array(#"{"mdm":"magic"}"#.utf8)
    },
    Row.always("Wallet", nil) {
      $0.useCertificate(subject: "pass.com.example.card", topics: [])
      $0["apns-topic"] = "pass.com.example.card"
      $0.body = Array("{}".utf8)
    },
    Row.always("Wallet without a body", .payloadEmpty) {
      $0.useCertificate(subject: "pass.com.example.card", topics: [])
      $0["apns-topic"] = "pass.com.example.card"
      $0.body = []
    },
  ].flatMap { $0 }

  /// Invalid provider tokens sent with a certificate do not block token updates, and valid ones do not open the stream
  /// allowance.
  @Test func tokensSentWithACertificateAreIgnored() {
    var push = TestPush()
    push.useCertificate()
    for age: Int64 in 0..<10 {
      push.token = TestToken(iat: "\(TestPush.nowSeconds - age)")
      expect(push.validate(), nil)
    }
    #expect(!push.authentication.providerTokenAccepted)
  }

  /// Without an `apns-topic` header, the facts say that the topic comes from the certificate, and the payload limit
  /// follows that topic.
  @Test func defaultTopic() {
    var push = TestPush()
    push.useCertificate(subject: "com.example.app.voip", topics: [])
    push["apns-topic"] = nil
    push["apns-push-type"] = nil
    push.body = [UInt8](repeating: 0x20, count: 5120)
    let verdict = push.validate()
    expect(verdict, nil)
    #expect(verdict.facts.topic == nil)
    #expect(verdict.facts.topicIsFromCertificate)
    #expect(push.authentication.certificate?.defaultTopic == "com.example.app.voip")
    #expect(verdict.facts.payloadLimit == 5120)
    push["apns-topic"] = "com.example.app.voip"
    #expect(!push.validate().facts.topicIsFromCertificate)
  }

  /// The device's topic is compared with the certificate's own topic as well.
  @Test func defaultTopicAndDevice() {
    var push = TestPush()
    push.useCertificate()
    push["apns-topic"] = nil
    push.tokens.append(SingleToken(token: TestPush.deviceToken, topic: "com.example.other", since: 0))
    expect(push.validate(), .deviceTokenNotForTopic)
    push.tokens.append(SingleToken(token: TestPush.deviceToken, topic: TestPush.topic, since: 0))
    expect(push.validate(), nil)
  }

  /// A certificate that is set after the connection was made.
  @Test func certificateSetLater() {
    var push = TestPush()
    push["authorization"] = nil
    expect(push.validate(), .missingProviderToken)
    push.useCertificate()
    push["apns-topic"] = nil
    expect(push.validate(), nil)
    push.authentication.certificate = nil
    expect(push.validate(), .missingProviderToken)
  }
}
