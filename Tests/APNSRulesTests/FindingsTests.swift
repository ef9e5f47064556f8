import APNSRules
import HTTPMessage
import Testing

/// Findings about single pushes (Findings.md): pushes that APNs accepts and a device drops, and a missing push type.
struct FindingsTests {
  private func displayProblem(_ push: TestPush) -> DisplayProblem? {
    var push = push
    let facts = push.validate().facts
    return push.request.headers.bytes.withUnsafeBytes { headers in
      push.body.withUnsafeBytes { push.rulebook.displayProblem(facts, headers: headers, body: $0) }
    }
  }

  private func missesType(_ push: TestPush) -> Bool {
    var push = push
    return push.rulebook.lacksPushType(push.validate().facts)
  }

  /// Whether a device shows a payload, by push type; nil if the push is shown.
  @Test(
    arguments: [
      ("alert", #"{"aps":{"alert":"x"}}"#, nil), ("alert", #"{"aps":{"badge":0}}"#, nil),
      ("alert", #"{"aps":{"badge":1}}"#, nil), ("alert", #" { "aps" : { "sound" : "default" } } "#, nil),
      ("alert", #"{"aps":{"sound":{"critical":1,"name":"x"}}}"#, nil),
      ("alert", #"{"aps":{"alert":{"body":"x"}}}"#, nil), ("alert", #"{"aps":{"alert":{"loc-key":"x"}}}"#, nil),
      ("alert", #"{"x":{"aps":[]},"aps":{"x":["}",{}],"alert":"\"x"}}"#, nil),
      ("alert", #"{"aps":{"alert":"","sound":"default"}}"#, nil), ("alert", #"{"aps":{},"aps":{"alert":"x"}}"#, nil),
      ("alert", #"{"aps":{"alert":"x"},"aps":{}}"#, .nothingToShow), ("alert", #"{"aps":{}}"#, .nothingToShow),
      ("alert", #"{"aps":{"alert":null}}"#, .nothingToShow),
      ("alert", #"{"aps":{"mutable-content":1}}"#, .nothingToShow),
      ("alert", "{}", .missingAPS), ("alert", #"{"alert":"x"}"#, .missingAPS),
      ("alert", #"{"aps":null}"#, .missingAPS), ("alert", #"{"aps":"x"}"#, .apsIsNotObject),
      ("alert", #"{"aps":[{"alert":"x"}]}"#, .apsIsNotObject),
      ("alert", #"{"aps":{"alert":""}}"#, .unusable(member: "alert", problem: "is an empty string")),
      ("alert", #"{"aps":{"alert":7}}"#, .unusable(member: "alert", problem: "is neither a string nor an object")),
      (
        "alert", #"{"aps":{"alert":{"launch-image":"x"}}}"#,
        .unusable(member: "alert", problem: "is an object without title, subtitle and body")
      ),
      ("alert", #"{"aps":{"badge":"1"}}"#, .unusable(member: "badge", problem: "is not a number")),
      ("alert", #"{"aps":{"content-available":1}}"#, .silentWithoutType(hasType: true)),
      ("alert", "[]", .notObject), ("alert", "7", .notObject),
      ("alert", "not JSON", .notJSON("no JSON value at byte 0")),
      ("alert", #"{"aps":{"alert":"x"}"#, .notJSON("neither comma nor closing brace at byte 20")),
      ("background", #"{"aps":{"content-available":1}}"#, nil),
      ("background", #"{"aps":{"content-available":true},"n":1}"#, nil),
      ("background", #"{"aps":{"content-available":1,"alert":"x"}}"#, .backgroundShows(member: "alert")),
      ("background", #"{"aps":{"content-available":1,"sound":""}}"#, .backgroundShows(member: "sound")),
      ("background", #"{"aps":{}}"#, .backgroundNotSilent),
      ("background", #"{"aps":{"content-available":0}}"#, .backgroundNotSilent),
      ("background", #"{"aps":{"content-available":"1"}}"#, .backgroundNotSilent), ("background", "{}", .missingAPS),
      ("liveactivity", #"{"aps":{"timestamp":1,"event":"update","content-state":{}}}"#, nil),
      ("liveactivity", #"{"aps":{"timestamp":1769860800,"event":"end","content-state":{}}}"#, nil),
      (
        "liveactivity", #"{"aps":{"event":"update","content-state":{}}}"#,
        .activityMissingMember(member: "timestamp (a number of seconds)")
      ),
      (
        "liveactivity", #"{"aps":{"timestamp":"1","event":"update","content-state":{}}}"#,
        .activityMissingMember(member: "timestamp (a number of seconds)")
      ),
      (
        "liveactivity", #"{"aps":{"timestamp":1,"content-state":{}}}"#,
        .activityMissingMember(member: "event (start, update or end)")
      ),
      (
        "liveactivity", #"{"aps":{"timestamp":1,"event":"stop","content-state":{}}}"#,
        .activityMissingMember(member: "event (start, update or end)")
      ),
      (
        "liveactivity", #"{"aps":{"timestamp":1,"event":"update"}}"#,
        .activityMissingMember(member: "content-state (for event update)")
      ),
      (
        "liveactivity", #"{"aps":{"timestamp":1,"event":"start","content-state":{}}}"#,
        .activityMissingMember(member: "attributes-type (for event start)")
      ),
      (
        "liveactivity",
        #"{"aps":{"timestamp":1,"event":"start","content-state":{},"attributes-type":"T","attributes":{},"alert":{}}}"#,
        nil
      ),
      ("widgets", #"{"aps":{"content-changed":true}}"#, nil),
      ("widgets", #"{"aps":{"content-changed":false}}"#, .contentNotChanged),
      ("controls", #"{"aps":{"content-changed":true}}"#, nil), ("controls", "{}", .missingAPS),
      ("controls", #"{"aps":{}}"#, .contentNotChanged), ("voip", "{}", nil), ("complication", "{}", nil),
      ("fileprovider", "{}", nil), ("pushtotalk", "{}", nil), ("location", "{}", nil),
      ("mdm", #"{"mdm":"magic"}"#, nil), ("mdm", "{}", .noPushMagic),
    ] as [(String, String, DisplayProblem?)])
  func wouldNotShow(_ type: String, _ body: String, _ expected: DisplayProblem?) throws {
    var push = TestPush()
    push.use(try #require(type.withBytes { PushType($0) }))
    push.body = Array(body.utf8)
    #expect(displayProblem(push) == expected)
  }

  /// Malformed payloads are reported as such, and examining them terminates.
  @Test(arguments: [
    "", "{", #"{""#, #"{"aps":{"alert":"\"#, #"{"aps":{"alert":"x"#, "{{{{", String(repeating: "[", count: 4000),
    "\u{0}",
    #"{"aps":{"alert":"\uD800"}}"#,
  ]) func hostile(_ body: String) {
    var push = TestPush()
    push.body = Array(body.utf8)
    guard case .notJSON? = displayProblem(push) else {
      Issue.record("not seen as something that is no JSON: \(String(describing: displayProblem(push)))")
      return
    }
  }

  /// A push without a type is a finding, and a silent push without a type does not arrive.
  @Test(
    arguments: [
      (#"{"aps":{"alert":"x"}}"#, nil), (#"{"aps":{"content-available":1}}"#, .silentWithoutType(hasType: false)),
      (#"{"mdm":"magic"}"#, nil),
    ] as [(String, DisplayProblem?)])
  func missingType(_ body: String, _ expected: DisplayProblem?) {
    var push = TestPush()
    push["apns-push-type"] = nil
    push.body = Array(body.utf8)
    #expect(missesType(push))
    #expect(displayProblem(push) == expected)
  }

  /// In `strict` these are rejections, and in `lenient` they are not reported: only `apple` has findings.
  @Test(arguments: RuleMode.allCases) func byMode(_ mode: RuleMode) {
    var background = TestPush(mode: mode)
    background.use(.background)
    background["apns-priority"] = nil
    background.body = Array(#"{"aps":{"content-available":1}}"#.utf8)
    #expect(displayProblem(background) == (mode == .apple ? .backgroundPriority : nil))
    var garbage = TestPush(mode: mode)
    garbage.body = [0x78]
    #expect(displayProblem(garbage) == (mode == .apple ? .notJSON("no JSON value at byte 0") : nil))
    var untyped = TestPush(mode: mode)
    untyped["apns-push-type"] = nil
    #expect(missesType(untyped) == (mode == .apple))
  }

  /// A push asks a Wallet pass to update whatever its payload is, so an empty one is not reported.
  @Test(arguments: ["{}", #"{"aps":{}}"#])
  func wallet(payload: String) {
    var push = TestPush()
    push["apns-topic"] = "pass.com.example.card"
    push.body = Array(payload.utf8)
    #expect(displayProblem(push) == nil)
    push.body = Array("{}".utf8)
    push["apns-topic"] = nil
    push.useCertificate(subject: "pass.com.example.card", topics: [])
    #expect(displayProblem(push) == nil)
  }
}
