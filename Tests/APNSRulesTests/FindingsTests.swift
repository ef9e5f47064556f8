import APNSMockRules
import APNSMockHTTPMessage
import Testing

/// Findings about single pushes (Findings.md): pushes that APNs accepts and a device drops, and a missing push type.
struct FindingsTests {
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
    #expect(push.displayProblem() == expected)
  }

  /// Malformed payloads are reported as such, and examining them terminates.
  @Test(arguments: [
    "", "{", #"{""#, #"{"aps":{"alert":"\"#, #"{"aps":{"alert":"x"#, "{{{{", String(repeating: "[", count: 4000),
    "\u{0}",
    #"{"aps":{"alert":"\uD800"}}"#,
  ]) func hostile(_ body: String) {
    var push = TestPush()
    push.body = Array(body.utf8)
    let problem = push.displayProblem()
    guard case .notJSON? = problem else {
      Issue.record("not seen as something that is no JSON: \(String(describing: problem))")
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
    #expect(push.lacksPushType())
    #expect(push.displayProblem() == expected)
  }

  /// In `strict` these are rejections, and in `lenient` they are not reported: only `apple` has findings.
  @Test(arguments: RuleMode.allCases) func byMode(_ mode: RuleMode) {
    var background = TestPush(mode: mode)
    background.use(.background)
    background["apns-priority"] = nil
    background.body = Array(#"{"aps":{"content-available":1}}"#.utf8)
    #expect(background.displayProblem() == (mode == .apple ? .backgroundPriority : nil))
    var garbage = TestPush(mode: mode)
    garbage.body = [0x78]
    #expect(garbage.displayProblem() == (mode == .apple ? .notJSON("no JSON value at byte 0") : nil))
    var untyped = TestPush(mode: mode)
    untyped["apns-push-type"] = nil
    #expect(untyped.lacksPushType() == (mode == .apple))
  }

  /// A push asks a Wallet pass to update whatever its payload and type are, so that nothing is reported.
  @Test(arguments: ["{}", #"{"aps":{}}"#, #"{"aps":{"alert":""}}"#], [nil, "alert", "background", "mdm"])
  func wallet(payload: String, type: String?) {
    var push = TestPush()
    push["apns-push-type"] = type
    push.body = Array(payload.utf8)
    for isByCertificate in [false, true] {
      push["apns-topic"] = isByCertificate ? nil : "pass.com.example.card"
      if isByCertificate { push.useCertificate(subject: "pass.com.example.card", topics: []) }
      #expect(push.displayProblem() == nil)
      #expect(!push.lacksPushType())
    }
  }

  /// A managed device needs its PushMagic, in a push of any type or without one.
  @Test(
    arguments: [
      ("{}", .noPushMagic), (#"{"aps":{"alert":"x"}}"#, .noPushMagic), (#"{"mdm":null}"#, .noPushMagic),
      (#"{"mdm":"magic"}"#, nil), ("[]", .notObject),
    ] as [(String, DisplayProblem?)], [nil, "mdm"])
  func management(_ row: (payload: String, expected: DisplayProblem?), type: String?) {
    var push = TestPush()
    push["apns-push-type"] = type
    push.body = Array(row.payload.utf8)
    for isByCertificate in [false, true] {
      push["apns-topic"] = isByCertificate ? nil : "com.apple.mgmt.External.1"
      if isByCertificate { push.useCertificate(subject: "com.apple.mgmt.External.1", topics: []) }
      #expect(push.displayProblem() == row.expected)
      #expect(!push.lacksPushType())
    }
  }

  /// Apple requires the type for apps only; what a website in Safari shows is an alert.
  @Test(arguments: [("web.com.example", false), ("webapp", true), ("passport", true), ("com.apple.mgmt", true)])
  func missingTypeByTopic(topic: String, isReported: Bool) {
    var push = TestPush()
    push["apns-topic"] = topic
    push["apns-push-type"] = nil
    #expect(push.lacksPushType() == isReported)
    #expect(push.displayProblem() == nil)
    push.body = Array("{}".utf8)
    #expect(push.displayProblem() == .missingAPS)
  }

  /// The empty payload of an app's certificate shows nothing.
  @Test func emptyPayload() {
    var push = TestPush()
    push["apns-topic"] = nil
    push.useCertificate()
    push.body = Array("{}".utf8)
    #expect(push.displayProblem() == .missingAPS)
  }
}
