import APNSMockRules
import APNSMockHTTPMessage
import APNSMockTestSupport
import Testing

/// The facts about a request that a record shows, whether it was accepted or not.
struct PushFactsTests {
  @Test func allFields() {
    var push = TestPush()
    push["apns-collapse-id"] = "c1"
    let facts = push.validate().facts
    let headers = push.request.headers
    func text(_ range: ByteRange?) -> String? { range.map(headers.string) }
    #expect(text(facts.method) == "POST")
    #expect(text(facts.path) == "/3/device/" + TestPush.deviceToken)
    #expect(text(facts.deviceToken) == TestPush.deviceToken)
    #expect(text(facts.authorization) == TestToken().authorization)
    #expect(text(facts.topic) == TestPush.topic)
    #expect(text(facts.apnsID) == "12345678-90ab-cdef-1234-567890abcdef")
    #expect(facts.apnsIDIsUUID)
    #expect(text(facts.collapseID) == "c1")
    #expect(text(facts.expirationText) == "0")
    #expect(text(facts.priorityText) == "10")
    #expect(text(facts.pushTypeText) == "alert")
    #expect(facts.pushType == .alert)
    #expect(facts.priority == 10)
    #expect(facts.expiration == 0)
    #expect(facts.payloadLimit == 4096)
    #expect(
      text(facts.signatureRange) == TestToken().text.split(separator: ".").last.map(String.init))
  }

  @Test func emptyRequestHasNoFacts() {
    var push = TestPush()
    push.fields = []
    let facts = push.validate().facts
    #expect(
      facts.method == nil && facts.path == nil && facts.deviceToken == nil && facts.topic == nil)
    #expect(
      facts.apnsID == nil && !facts.apnsIDIsUUID && facts.expiration == nil && facts.pushType == nil
    )
    #expect(facts.priority == 10)
    #expect(facts.signatureRange == nil)
  }

  /// Each ASCII character at each position of an `apns-id`: hyphens at four positions, hexadecimal digits elsewhere.
  @Test func everyCharacterOfAnID() {
    let good = Array("12345678-90ab-CDEF-1234-567890abcdef".utf8)
    for index in good.indices {
      for byte in UInt8(1)...127 {
        var id = good
        id[index] = byte
        var push = TestPush()
        push["apns-id"] = String(decoding: id, as: UTF8.self)
        let isGood = [8, 13, 18, 23].contains(index) ? byte == 0x2d : Character(Unicode.Scalar(byte)).isHexDigit
        #expect(push.validate().facts.apnsIDIsUUID == isGood, "\(byte) at \(index)")
      }
    }
  }

  /// The facts are complete although the first check fails.
  @Test func factsOfARejectedPush() {
    var push = TestPush()
    push[":method"] = "GET"
    push["apns-push-type"] = "voip"
    push["apns-priority"] = "9"
    push["apns-id"] = "x"
    let verdict = push.validate()
    expect(verdict, .methodNotAllowed)
    #expect(verdict.facts.pushType == .voip)
    #expect(verdict.facts.payloadLimit == 5120)
    #expect(verdict.facts.priority == 0)
    #expect(!verdict.facts.apnsIDIsUUID)
    #expect(verdict.credential == .token)
  }

  /// An `authorization` value, and what a record keeps of it.
  @Test(arguments: [
    ("bearer aaa.bbb.ccc", "bearer aaa.bbb."), ("bearer aaa.bbb.ccc.ddd", "bearer aaa.bbb."),
    ("bearer aaa.bbb.", "bearer aaa.bbb."), ("bearer aaa.bbb", "bearer "),
    ("Basic dXNlcg==", "Basic "),
    ("aaa.bbb.ccc", "aaa.bbb."), ("secret", ""), ("bearer ", "bearer "),
    ("bearer aaa.bbb.ccc ", "bearer aaa.bbb."),
  ])
  func signaturesAreBlanked(_ value: String, _ left: String) {
    for name in ["with a certificate", "with a wrong method", "alone"] {
      var push = TestPush()
      if name == "with a certificate" { push.useCertificate() }
      if name == "with a wrong method" { push[":method"] = "GET" }
      push["authorization"] = value
      #expect(
        blank(&push) == [left + String(repeating: "\0", count: value.utf8.count - left.utf8.count)])
    }
  }

  /// Signatures are removed from repeated headers and from header lists that are too large as well.
  @Test(arguments: [false, true]) func blankingIsIdempotent(_ isTooLarge: Bool) {
    var push = TestPush()
    push["authorization"] = "bearer aaa.bbb.ccc"
    push.fields.append(("authorization", "bearer ddd.eee.fff"))
    push.fields.append(("authorization", "open sesame"))
    push.headersTooLarge = isTooLarge
    #expect(
      blank(&push) == ["bearer aaa.bbb.\0\0\0", "bearer ddd.eee.\0\0\0", "open \0\0\0\0\0\0"])
  }

  private func blank(_ push: inout TestPush) -> [String] {
    let facts = push.validate().facts
    var packed = push.request.headers.bytes
    packed.withUnsafeMutableBytes { facts.blankSignatures(in: $0) }
    var values: [String] = []
    packed.withUnsafeBytes { bytes in
      HeaderList.forEachField(in: bytes) { name, value in
        if String(decoding: bytes[name.indices], as: UTF8.self) == "authorization" {
          values.append(String(decoding: bytes[value.indices], as: UTF8.self))
        }
      }
    }
    return values
  }

  /// The checks that a record lists, by credential and mode.
  @Test func listOfChecks() {
    var push = TestPush()
    push.settings.deviceRate = DeviceRate(count: 1, per: .seconds(1))
    #expect(
      push.validate().checks.map(\.check.name) == [
        "method", "path", "duplicate_headers", "credential", "token_update_latch", "provider_token",
        "provider_token_age", "key_environment", "connection_team", "related_key", "token_updates",
        "apns_id",
        "expiration", "priority", "collapse_id", "push_type", "device_token", "topic_present",
        "topic_form",
        "topic_permitted", "topic_for_type", "priority_for_type", "payload_present", "payload_size",
        "device_environment", "device_topic", "device_expired", "device_unregistered",
        "device_rate",
      ])
    push.mode = .strict
    #expect(push.validate().checks.contains { $0.check == .payloadSyntax })
    push.mode = .lenient
    #expect(!push.validate().checks.contains { $0.check == .tokenUpdates })
    push["authorization"] = nil
    #expect(
      push.validate().checks.map { "\($0.check.name) \($0.ok)" }.suffix(2) == [
        "duplicate_headers true", "credential false",
      ])
    push.useCertificate()
    #expect(
      push.validate().checks.map(\.check.name).prefix(6).suffix(3) == [
        "credential", "certificate", "apns_id",
      ])
  }

  /// The rate per device token, which the owner of the rate buckets performs.
  @Test func overTheRate() {
    var push = TestPush()
    let rate = DeviceRate(count: 2, per: .seconds(60))
    push.settings.deviceRate = rate
    var verdict = push.validate()
    verdict.reject(over: rate)
    expect(verdict, .tooManyRequests)
    #expect(verdict.failed == .deviceRate)
  }
}
