import APNSMockFaultModel
import APNSMockFaults
import Testing

/// Conditions on values in payloads.
@Suite struct PayloadConditionTests {
  @Test(
    arguments: [
      (#"{"n":3}"#, .equals("3"), true), (#"{"n":"3"}"#, .equals("3"), true), (#"{"n":3.0}"#, .equals("3"), false),
      (#"{"n":true}"#, .equals("true"), true), (#"{"n":null}"#, .equals("null"), true),
      (#"{"n":null}"#, .present(true), true),
      (#"{"n":[3]}"#, .equals("[3]"), false), (#"{"n":[3]}"#, .present(true), true),
      (#"{"n":{}}"#, .prefix("{"), false),
      (#"{"n":"3"}"#, .between(above: 1, below: nil), false), (#"{"n":3}"#, .between(above: 1, below: nil), true),
      (#"{"n":true}"#, .between(above: 0, below: nil), false), (#"{"n":3"#, .present(true), false),
      (#"{"n":3}x"#, .present(true), false), (#"{"n":1e999}"#, .between(above: 0, below: nil), false),
      ("", .present(true), false),
    ] as [(String, Condition.Match, Bool)])
  func payload(body: String, match: Condition.Match, holds: Bool) {
    let test = Condition.Test(.payload(pointer: "/n"), match)
    let rule = Rule(
      name: "rule", condition: Condition([test]), action: .unavailable, stage: .beforeValidation)
    #expect(FaultPlan([rule]).fires(EngineFixture { $0.body = body }) == holds)
  }

  /// A payload that was not kept completely has no values.
  @Test func cutPayload() {
    let test = Condition.Test(.payload(pointer: ""), .present(true))
    let rule = Rule(name: "rule", condition: Condition([test]), action: .unavailable, stage: .beforeValidation)
    #expect(!FaultPlan([rule]).fires(EngineFixture { $0.bodySize = 9000 }))
  }

  /// Excessive nesting does not count as JSON, and neither nesting nor a long flat document takes stack space.
  @Test(arguments: [String(repeating: "[", count: 5000), String(repeating: "[1],", count: 1200), #"{"a":"#])
  func hostileNesting(body: String) {
    let test = Condition.Test(.payload(pointer: "/0/0/0"), .present(true))
    let rule = Rule(name: "rule", condition: Condition([test]), action: .unavailable, stage: .beforeValidation)
    #expect(!FaultPlan([rule]).fires(EngineFixture { $0.body = body }))
  }
}
