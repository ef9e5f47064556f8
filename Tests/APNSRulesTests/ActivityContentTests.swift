import APNSMockRules
import APNSMockHTTPMessage
import Testing

/// Live Activity pushes that APNs accepts and a device ignores (Protocol.md, section 6.3). Each row of the tables changes one
/// member of a valid push.
struct ActivityContentTests {
  private static let now = TestPush.nowSeconds
  private static let hour: Int64 = 3600
  private static let update = ["timestamp": "\(now)", "event": #""update""#, "content-state": "{}"]
  private static let start = update.merging(
    ["event": #""start""#, "attributes-type": #""Ride""#, "attributes": "{}", "alert": #"{"title":"x"}"#]
  ) { $1 }
  private static let end = update.merging(["event": #""end""#]) { $1 }

  /// Returns the explanation of the problem of a push; nil if it is shown.
  private func problem(_ members: [String: String]) -> String? {
    var push = TestPush()
    push.use(.liveactivity)
    push.body = Array("{\"aps\":{\(members.map { "\"\($0)\":\($1)" }.sorted().joined(separator: ","))}}".utf8)
    let content = push.body.withUnsafeBytes { ActivityContent(payload: $0, at: push.now) }
    let problem = push.displayProblem()
    #expect((content == nil) == (problem != nil), "a device and the finding agree")
    return problem?.text
  }

  private func expect(_ members: [String: String], _ name: String, _ value: String?, _ expected: String?) {
    var members = members
    members[name] = value
    let found = problem(members)
    guard let expected else { return #expect(found == nil) }
    #expect(found?.hasPrefix("aps.\(name) \(expected)") == true, "\(found ?? "nothing was found")")
  }

  @Test func validPushes() {
    for members in [Self.start, Self.update, Self.end] { #expect(problem(members) == nil) }
  }

  /// The time of an update or start: seconds, at most eight hours away in either direction.
  @Test(
    arguments: [
      (nil, "is missing"), ("null", "is missing"), ("\"\(now)\"", "is not a number"), ("true", "is not a number"),
      ("{}", "is not a number"), ("\(now)000", "is a time in milliseconds"),
      ("\(now)000000", "is a time in microseconds"),
      ("\(now)000000000", "is a time in nanoseconds"), ("\(now).25", nil), ("1.7e9", nil),
      ("\(now + 8 * hour)", nil),
      ("\(now + 8 * hour + 1)", "is 1700028801 (2023-11-15T06:13:21.000Z), more than 8 hours ahead"),
      ("\(now - 8 * hour)", nil),
      ("\(now - 8 * hour - 1)", "is 1699971199 (2023-11-14T14:13:19.000Z), more than 8 hours ago"),
      ("1", "is 1 (1970-01-01T00:00:01.000Z), which is a duration"), ("0", "is 0 "), ("-1", "is -1 "),
      ("\(now - 978_307_200)", "is 721692800 (1992-11-13T22:13:20.000Z), which counts from 2001"),
      ("1e400", "is inf, more than 8 hours ahead"), ("1e15", "is 1000000000000000, more than 8 hours ahead"),
    ] as [(String?, String?)])
  func timestamp(_ value: String?, _ expected: String?) {
    expect(Self.update, "timestamp", value, expected)
    expect(Self.start, "timestamp", value, expected)
    // The age of an end does not matter.
    let isAge =
      expected?.hasPrefix("is missing") == false && expected?.hasPrefix("is not") == false
      && expected?.hasPrefix("is a time") == false
    expect(Self.end, "timestamp", value, isAge ? nil : expected)
  }

  @Test(
    arguments: [
      (nil, "is missing"), (#""stop""#, #"is "stop", not start"#), (#""Update""#, #"is "Update", not start"#),
      ("1", "is not a string"), (#""""#, "is an empty string"), (#""upd\u0061te""#, nil),
    ] as [(String?, String?)])
  func event(_ value: String?, _ expected: String?) { expect(Self.update, "event", value, expected) }

  @Test(
    arguments: [
      (nil, "is missing, which the event"), ("null", "is missing"), ("[]", "is not an object"),
      (#""x""#, "is not an object"),
      (#"{"score":1}"#, nil),
    ] as [(String?, String?)])
  func objects(_ value: String?, _ expected: String?) {
    for members in [Self.start, Self.update, Self.end] { expect(members, "content-state", value, expected) }
    expect(Self.start, "attributes", value, expected)
    expect(Self.update, "attributes", value, nil)
  }

  @Test(
    arguments: [
      (nil, "is missing, which the event start"), (#""""#, "is an empty string"), ("{}", "is not a string"),
    ] as [(String?, String?)])
  func attributesType(_ value: String?, _ expected: String?) {
    expect(Self.start, "attributes-type", value, expected)
    expect(Self.update, "attributes-type", value, nil)
  }

  /// A start shows an alert; an update may, and a wrong one does not prevent the update.
  @Test(
    arguments: [
      (nil, "is missing", nil), ("null", "is missing", nil), ("{}", "has neither title nor body", nil),
      (#"{"sound":"x"}"#, "has neither title nor body", nil),
      (#"{"title":"","body":null}"#, "has neither title nor body", nil),
      (#"{"title":{}}"#, "has neither title nor body", nil), (#""""#, "is an empty string", nil),
      ("1", "is neither a string nor an object", "is neither a string nor an object"), (#""x""#, nil, nil),
      (#"{"body":"x"}"#, nil, nil), (#"{"title-loc-key":"x"}"#, nil, nil), (#"{"loc-key":"x"}"#, nil, nil),
      (#"{"title":{"loc-key":"x","loc-args":[]}}"#, nil, nil),
    ] as [(String?, String?, String?)])
  func alert(_ value: String?, _ ofStart: String?, _ ofUpdate: String?) {
    expect(Self.start, "alert", value, ofStart)
    expect(Self.update, "alert", value, ofUpdate)
    expect(Self.end, "alert", value, ofUpdate)
  }

  /// Dates that may be absent. A dismissal may lie in the past, which removes the activity at once.
  @Test(
    arguments: [
      (nil, nil, nil), ("null", nil, nil), ("\(now + 60)", nil, nil), ("\(now + 86_400)", nil, nil),
      ("\"\(now)\"", "is not a number", "is not a number"),
      (#""2026-01-31T12:00:00Z""#, "is not a number", "is not a number"),
      ("\(now + 60)000", "is a time in milliseconds", "is a time in milliseconds"), ("\(now - 60)", nil, nil),
      ("\(now - 8 * hour - 1)", "is 1699971199", nil),
      ("300", "is 300 (1970-01-01T00:05:00.000Z), which is a duration", nil),
    ] as [(String?, String?, String?)])
  func optionalDates(_ value: String?, _ stale: String?, _ dismissal: String?) {
    for members in [Self.start, Self.update, Self.end] {
      expect(members, "stale-date", value, stale)
      expect(members, "dismissal-date", value, dismissal)
    }
  }

  @Test(
    arguments: [
      ("relevance-score", "100.5", nil), ("relevance-score", #""1""#, "is not a number"),
      ("input-push-token", "1", nil), ("input-push-token", "true", "is not the number 1"),
      ("input-push-token", "0", "is not the number 1"), ("input-push-channel", #""dHN0""#, nil),
      ("input-push-channel", #""""#, "is not a string"), ("input-push-channel", "7", "is not a string"),
    ] as [(String, String, String?)])
  func types(_ name: String, _ value: String, _ expected: String?) { expect(Self.start, name, value, expected) }

  /// The last of several members with the same name counts.
  @Test func repeatedMembers() {
    var push = TestPush()
    push.use(.liveactivity)
    push.body = Array(
      #"{"aps":{"timestamp":1,"event":"end","content-state":{},"timestamp":1700000000,"event":"update"}}"#.utf8)
    #expect(push.displayProblem() == nil)
  }

  @Test func contents() throws {
    let body = #"{"aps":{"timestamp":1700000000,"event":"end","content-state":{},"dismissal-date":1700000060}}"#
    let content = try #require(body.withBytes { ActivityContent(payload: $0, at: TestPush.nowSeconds * 1000) })
    #expect(content.event == .end && content.timestamp == 1_700_000_000 && content.dismissalDate == 1_700_000_060_000)
    for payload in ["", "[]", "{}", #"{"aps":7}"#, #"{"aps":{}}"#, "not JSON"] {
      #expect(payload.withBytes { ActivityContent(payload: $0, at: 0) } == nil)
    }
  }
}
