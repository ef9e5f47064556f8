import APNSRules
import HTTPMessage
import Testing

/// CONTRACT.md, findings: what APNs accepts and a device drops, and a missing push type.
struct FindingsTests {
  private func findings(_ push: TestPush) -> [String] {
    var push = push
    let facts = push.judge().facts
    return push.request.headers.bytes.withUnsafeBytes {
      push.rulebook.findings(facts, headers: $0, body: push.body)
    }
  }

  @Test(arguments: [
    ("alert", #"{"aps":{"alert":"x"}}"#, false), ("alert", #"{"aps":{"badge":0}}"#, false),
    ("alert", #"{"aps":{"sound":"default"}}"#, false), ("alert", #"{"aps":{}}"#, true),
    ("alert", "{}", true),
    ("alert", #"{"aps":"x"}"#, true), ("alert", #"{"aps":{"content-available":1}}"#, true),
    ("alert", #"{"aps":{"mutable-content":1}}"#, true), ("alert", "[]", true), ("alert", "7", true),
    ("alert", "not JSON", true), ("alert", #"{"aps":{"alert":"x"}"#, true),
    ("alert", #"{"alert":"x"}"#, true),
    ("background", #"{"aps":{"content-available":1}}"#, false),
    ("background", #"{"aps":{"content-available":1},"n":1}"#, false),
    ("background", #"{"aps":{"content-available":1,"alert":"x"}}"#, true),
    ("background", #"{"aps":{"content-available":1,"sound":""}}"#, true),
    ("background", #"{"aps":{}}"#, true),
    ("background", #"{"aps":{"content-available":0}}"#, true), ("background", "{}", true),
    ("liveactivity", #"{"aps":{"timestamp":1,"event":"update","content-state":{}}}"#, false),
    ("liveactivity", #"{"aps":{"timestamp":1,"event":"end","content-state":{}}}"#, false),
    ("liveactivity", #"{"aps":{"event":"update","content-state":{}}}"#, true),
    ("liveactivity", #"{"aps":{"timestamp":"1","event":"update","content-state":{}}}"#, true),
    ("liveactivity", #"{"aps":{"timestamp":1,"content-state":{}}}"#, true),
    ("liveactivity", #"{"aps":{"timestamp":1,"event":"update"}}"#, true),
    ("liveactivity", #"{"aps":{"timestamp":1,"event":"start","content-state":{}}}"#, true),
    (
      "liveactivity",
      #"{"aps":{"timestamp":1,"event":"start","content-state":{},"attributes-type":"T","attributes":{},"alert":{}}}"#,
      false
    ),
    ("widgets", #"{"aps":{"content-changed":true}}"#, false),
    ("widgets", #"{"aps":{"content-changed":false}}"#, true),
    ("controls", #"{"aps":{"content-changed":true}}"#, false), ("controls", "{}", true),
    ("voip", "{}", false), ("complication", "{}", false), ("fileprovider", "{}", false),
    ("pushtotalk", "{}", false),
    ("location", "{}", false), ("mdm", #"{"mdm":"magic"}"#, false), ("mdm", "{}", true),
  ])
  func wouldNotShow(_ type: String, _ body: String, _ isFinding: Bool) throws {
    var push = TestPush()
    push.use(try #require(type.withBytes { PushType($0) }))
    push.body = Array(body.utf8)
    #expect(findings(push) == (isFinding ? ["would-not-show"] : []))
  }

  /// Without a type: the finding, and a silent push does not arrive.
  @Test(arguments: [
    (#"{"aps":{"alert":"x"}}"#, ["missing-push-type"]),
    (#"{"aps":{"content-available":1}}"#, ["missing-push-type", "would-not-show"]),
    (#"{"mdm":"magic"}"#, ["missing-push-type"]),
  ])
  func missingType(_ body: String, _ expected: [String]) {
    var push = TestPush()
    push["apns-push-type"] = nil
    push.body = Array(body.utf8)
    #expect(findings(push) == expected)
  }

  /// What the modes table calls a finding is one in `apple` alone.
  @Test(arguments: RuleMode.allCases) func byMode(_ mode: RuleMode) {
    var background = TestPush(mode: mode)
    background.use(.background)
    background["apns-priority"] = nil
    background.body = Array(#"{"aps":{"content-available":1}}"#.utf8)
    #expect(findings(background) == (mode == .apple ? ["would-not-show"] : []))
    var garbage = TestPush(mode: mode)
    garbage.body = [0x78]
    #expect(findings(garbage) == (mode == .apple ? ["would-not-show"] : []))
    var untyped = TestPush(mode: mode)
    untyped["apns-push-type"] = nil
    #expect(findings(untyped) == (mode == .apple ? ["missing-push-type"] : []))
  }

  /// A Wallet pass is told to update by an empty object.
  @Test func wallet() {
    var push = TestPush()
    push["apns-topic"] = "pass.com.example.card"
    push.body = Array("{}".utf8)
    #expect(findings(push) == [])
    push["apns-topic"] = nil
    push.useCertificate(subject: "pass.com.example.card", topics: [])
    #expect(findings(push) == [])
  }
}
