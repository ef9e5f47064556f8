import APNSMockRules
import Testing

/// Payload size limits (Protocol.md, section 6.1); a body of exactly the limit is accepted.
struct PayloadRulesTests {
  @Test(arguments: PushType.allCases) func limit(_ type: PushType) {
    for mode in RuleMode.allCases {
      var push = TestPush(mode: mode)
      if type == .mdm { push.useCertificate() }
      push.use(type)
      push.body = body(of: type.payloadLimit)
      let accepted = push.validate()
      expect(accepted, nil)
      #expect(accepted.facts.payloadLimit == type.payloadLimit)
      push.body = body(of: type.payloadLimit + 1)
      expect(push.validate(), .payloadTooLarge)
      push.body = []
      expect(push.validate(), .payloadEmpty)
    }
  }

  /// Without a push type, the topic's suffix determines the limit.
  @Test(arguments: PushType.allCases) func limitByTopic(_ type: PushType) {
    var push = TestPush()
    push.use(type)
    push["apns-push-type"] = nil
    push.body = body(of: type.payloadLimit)
    expect(push.validate(), nil)
    push.body.append(0x20)
    expect(push.validate(), .payloadTooLarge)
  }

  @Test func farTooLarge() {
    var push = TestPush()
    push.body = body(of: 1 << 20)
    let verdict = push.validate()
    expect(verdict, .payloadTooLarge)
    #expect(push.explanation(of: verdict).contains("1048576 bytes"))
  }

  /// One byte is enough for a body; APNs does not check its meaning (section 6.2).
  @Test(arguments: ["0", "{}", "[]", #"{"aps":"wrong"}"#, #"{"aps":{"alert":7,"badge":"x"}}"#])
  func meaning(_ text: String) {
    for mode in RuleMode.allCases {
      var push = TestPush(mode: mode)
      push.body = Array(text.utf8)
      expect(push.validate(), nil)
    }
  }

  private func body(of size: Int) -> [UInt8] {
    let frame = Array(#"{"aps":{"alert":""}}"#.utf8)
    return frame.dropLast(3) + [UInt8](repeating: 0x78, count: size - frame.count) + frame.suffix(3)
  }
}
