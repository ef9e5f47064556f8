import APNSMockNotation
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

/// Conditions in the inbox's query language: `when: {q: "…"}`.
@Suite struct ProfileQueryTests {
  static let push = EngineFixture {
    $0.fields.append(("x-tenant", "blue"))
    $0.body = #"{"aps":{"alert":"Order shipped","badge":4}}"#
    $0.attempt = 2
  }

  static func fires(_ when: String, at injectionPoint: InjectionPoint = .request) throws -> Bool {
    let condition = try ProfileFixture.condition(when, at: injectionPoint)
    return FaultPlan([Rule(name: "x", condition: condition, action: .unavailable)]).fires(push)
  }

  @Test(
    arguments: [
      ("q: 'topic:com.acme.*'", true), ("q: 'topic:com.other.*'", false), ("q: '!type:background'", true),
      ("q: '!type:alert'", false), ("q: 'type:voip type:alert'", true), ("q: 'type:voip topic:com.acme.shop'", false),
      ("q: 'attempt:>1'", true), ("q: 'attempt:3..9'", false), ("q: 'payload./aps/badge:>3'", true),
      ("q: 'payload./aps/badge:>4'", false), ("q: 'larger:10 smaller:1K'", true), ("q: 'larger:3.5K'", false),
      (#"q: 'text:"order shipped" header.x-tenant:blue'"#, true), ("q: 'text:gone'", false),
      ("q: 'connection:c7 listener:0'", true), ("q: 'connection:c8'", false), ("q: 'key_id:MOCK*'", true),
      ("q: 'token:AB12*'", true), ("q: 'apns_id:*'", false), ("q: '!id:*'", true),
      // Combined with other conditions, and in an exception.
      ("q: 'type:alert', priority: 10", true), ("q: 'type:alert', priority: 5", false),
      ("not: {q: 'type:alert'}", false), ("not: [{q: 'type:voip'}]", true),
    ])
  func firesFor(when: String, expected: Bool) throws {
    #expect(try Self.fires(when) == expected)
  }

  /// The text after `q: `, the error, and the hint.
  @Test(
    arguments: [
      (
        "'status:410'", "status is not available to rules (column 1 of the query: status:410)", "status: …"
      ),
      ("'type:alert reason:x'", "reason is not available to rules (column 12", "at: response"),
      ("'outcome:accepted'", "outcome is not available to rules", "The fields are device_token, topic,"),
      ("'accepted:true'", "accepted is not available", "header.name."),
      ("'rule:x'", "rule is not available", "header.name."),
      ("'finding:x'", "finding is not available", "device_token"),
      ("'since:-5m'", "since is not available", "device_token"),
      ("'after:3'", "after is not available", "device_token"),
      ("'is:retry'", "is is not available", "attempt:>1"),
      ("'push_key:x'", "push_key is not available", "device_token"),
      ("'topik:x'", "unknown field \"topik\" (column 1 of the query: topik:x)", "did you mean topic?"),
      ("'colour:red'", "unknown field \"colour\"", "The fields are device_token"),
      ("order", "\"order\" is not a condition", "text:order"),
      ("'attempt:x'", "attempt cannot be \"x\"", "a whole number"),
      ("'topic:'", "topic cannot be \"\"", "!topic=*"), ("'larger:3X'", "larger cannot be \"3X\"", "3.5KiB"),
      ("'attempt:>3 attempt:<8'", "attempt cannot be \"<8\"", "written 4..7"),
      ("'payload./a:>x'", "payload./a cannot be \">x\"", "a bound such as >3"),
      ("'payload.aps:1'", "\"aps\" is not a JSON pointer", "payload./aps/alert/title"),
      ("' '", "the query is empty", "FIELD:VALUE"), (#"'text:"a'"#, "no second one", "Close it"),
    ])
  func refuses(query: String, message: String, hint: String) throws {
    let problems = ProfileLibrary().problems(
      in: ProfileFixture.source("rules: [{when: {q: \(query)}, do: {close: {}}}]"))
    #expect(problems.count == 1)
    let problem = try #require(problems.first)
    #expect(problem.severity == .error)
    #expect(problem.path == "rules[0].when.q")
    #expect(problem.line == 1)
    #expect(problem.column == 20)
    #expect(problem.message.contains(message), "\(problem.message)")
    #expect(problem.hint?.contains(hint) == true, "\(problem.hint ?? "")")
  }

  @Test func injectionPointMustKnowTheField() throws {
    #expect(
      ProfileFixture.lint("rules: [{at: accept, when: {q: 'listener:0 topic:x'}, do: {refuse: {}}}]") == [
        "p.yaml:1:32: rules[0].when.q: q topic is not available at accept, use at: request or response"
      ])
    #expect(ProfileFixture.lint("rules: [{at: accept, when: {q: 'listener:0'}, do: {refuse: {}}}]").isEmpty)
  }

  @Test func queryRoundTrips() throws {
    let fields = #""topic":"a","q":"type:alert  !topic:\"x*\"","not":[{"q":"attempt:3"}]"#
    let condition = try ProfileFixture.condition(fields)
    #expect(ProfileFixture.json { condition.write(to: &$0) } == "{\(fields)}")
    #expect(condition.query == #"type:alert  !topic:"x*""#)
    #expect(condition.tests.count == 3)
    #expect(try ProfileFixture.condition("q: 'topic:a*'") != ProfileFixture.condition(#"q: 'topic:"a\*"'"#))
  }

  @Test func explanationNamesTheTerms() throws {
    let condition = try ProfileFixture.condition("q: 'type:voip type:complication !topic:a'")
    let plan = FaultPlan([Rule(name: "x", condition: condition, action: .unavailable)])
    #expect(!plan.fires(Self.push))
    let tests = try #require(plan.ruleCounters.explain("x")?.tests)
    #expect(tests.map(\.name) == ["q type", "q topic"])
    #expect(tests.map(\.wanted) == [#""voip" or "complication""#, #"not "a""#])
    #expect(tests.first?.seen.map(\.value) == ["alert"])
  }
}
