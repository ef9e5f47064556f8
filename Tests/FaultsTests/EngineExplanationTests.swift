import APNSMockNotation
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

@Suite struct EngineExplanationTests {
  static func json(_ explanation: RuleExplanation) -> String {
    var writer = JSONWriter()
    explanation.write(to: &writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  static func plan(_ tests: [Condition.Test], trigger: Trigger = Trigger()) -> FaultPlan {
    FaultPlan([.unavailable("topic-down", when: tests, trigger: trigger)])
  }

  /// The example in the documentation.
  @Test func isAsDocumented() throws {
    let plan = Self.plan([Condition.Test(.topic, .equals("com.acme.app"))])
    for (topic, count) in [("com.acme.app.voip", 200), ("com.acme.App", 14)] {
      for _ in 0..<count { #expect(!plan.fires(EngineFixture { $0.fields = [("apns-topic", topic)] })) }
    }
    let explanation = try #require(plan.ruleCounters.explain("topic-down"))
    #expect(
      explanation.text == """
        rule "topic-down": 214 pushes evaluated, 0 fired
          topic    0 of 214 match   wanted "com.acme.app"   most common values: "com.acme.app.voip" (200), "com.acme.App" (14, differs by case)
          trigger  not reached
        """)
    #expect(plan.ruleCounters.explain("other") == nil)
  }

  @Test func explanationCoversEveryPart() throws {
    let rule = Rule(
      name: "rule",
      condition: Condition(
        [
          Condition.Test(.pushType, .oneOf(["alert", "mdm"])),
          Condition.Test(.payload(pointer: "/n"), .between(above: 3, below: nil)),
        ], exceptions: [Condition([Condition.Test(.topic, .equals("com.acme.not"))])]),
      trigger: Trigger(probability: .fixed(0), after: 1), action: .unavailable)
    let plan = FaultPlan([rule])
    let bodies = [
      #"{"n":3}"#, #"{"n":3}"#, #"{}"#, #"{"n":"4"}"#, #"{"n":4}"#, #"{"n":5}"#, #"{"n":6}"#, #"{"n":7}"#,
    ]
    for (number, body) in bodies.enumerated() {
      let topic = number == 7 ? "com.acme.not" : "com.acme.app"
      #expect(!plan.fires(EngineFixture { ($0.body, $0.fields[0].1) = (body, topic) }))
    }
    #expect(!plan.fires(EngineFixture { $0.fields[1].1 = "background" }))
    #expect(!plan.fires(EngineFixture { $0.fields[0].1 = "" }))
    let explanation = try #require(plan.ruleCounters.explain("rule"))
    #expect(
      explanation.text == """
        rule "rule": 10 pushes evaluated, 0 fired
          verdict     9 of 10 match   APNs rejects the others; use stage before_validation
          push_type   8 of 9 match   wanted one of "alert", "mdm"   most common values: "background" (1)
          payload /n  4 of 8 match   wanted > 3   most common values: "3" (2), nothing (1), "4" (1)
          not         3 of 4 match   1 excluded
          trigger     0 of 3 fired   stopped by first, after, every (1), probability (2)
        """)
    let expected = [
      #"{"rule":"rule","profile":"test","at":"request","looked_at":10,"fired":0,"active":0,"rejected_by_apns":1,"#,
      #""when":[{"test":"push_type","wanted":"one of \"alert\", \"mdm\"","reached":9,"matched":8,"#,
      #""seen":[{"value":"background","count":1,"hint":null}],"others":0},"#,
      #"{"test":"payload /n","wanted":"> 3","reached":8,"matched":4,"seen":[{"value":"3","count":2,"hint":null},"#,
      #"{"value":null,"count":1,"hint":null},{"value":"4","count":1,"hint":null}],"others":0}],"excepted":1,"#,
      #""trigger":{"reached":3,"fired":0,"stopped":{"first, after, every":1,"probability":2}},"text":"rule "#,
    ]
    #expect(Self.json(explanation).hasPrefix(expected.joined()))
  }

  @Test func explanationOfAFiringRule() throws {
    let plan = FaultPlan([], addedRules: [.unavailable("mine", trigger: Trigger(first: 2))])
    for _ in 0..<3 { _ = plan.fires() }
    let explanation = try #require(plan.ruleCounters.explain("mine"))
    #expect(
      explanation.text
        == "rule \"mine\": 3 pushes evaluated, 2 fired\n  trigger  2 of 3 fired   stopped by first, after, every (1)")
    #expect(explanation.profile == nil)
    #expect(plan.ruleCounters.explanations == [explanation])
  }

  @Test func explanationOfUnevaluatedRule() throws {
    let plan = Self.plan([Condition.Test(.topic, .equals("a")), Condition.Test(.pushType, .equals("b"))])
    #expect(
      plan.ruleCounters.explain("topic-down")?.text == """
        rule "topic-down": 0 pushes evaluated, 0 fired
          topic      not reached
          push_type  not reached
          trigger    not reached
        """)
  }

  @Test(
    arguments: [
      (.request, "0 pushes evaluated"), (.response, "0 pushes evaluated"), (.tls, "0 connections evaluated"),
      (.connection, "0 evaluations of connections"),
    ] as [(InjectionPoint, String)])
  func explanationNamesComparedFields(injectionPoint: InjectionPoint, words: String) throws {
    let plan = FaultPlan([Rule(name: "rule", injectionPoint: injectionPoint, action: .close)])
    #expect(try #require(plan.ruleCounters.explain("rule")).text.hasPrefix("rule \"rule\": \(words), 0 fired\n"))
  }

  @Test(
    arguments: [
      (.equals("com.acme.app"), "wanted \"com.acme.app\""), (.prefix("org."), "wanted prefix \"org.\""),
      (.glob(TextPattern("com.*.app", foldsCase: false)), "wanted glob \"com.*.app\""),
      (.present(false), "wanted no value"),
      (.oneOf(["f", "e", "d", "c", "b", "a"]), "wanted one of \"a\", \"b\", \"c\", \"d\", \"e\" and 1 more"),
      (.between(above: 1, below: 2.5), "wanted > 1 and < 2.5"),
    ] as [(Condition.Match, String)])
  func wanted(match: Condition.Match, words: String) throws {
    let plan = Self.plan([Condition.Test(.topic, match)])
    _ = plan.fires()
    #expect(try #require(plan.ruleCounters.explain("topic-down")).text.contains(words))
  }

  @Test func wantedDuration() throws {
    let plan = Self.plan([Condition.Test(.tokenAge, .between(above: 1800, below: nil))])
    _ = plan.fires(EngineFixture { $0.tokenAge = 90 })
    #expect(
      try #require(plan.ruleCounters.explain("topic-down")).text.contains(
        #"jwt.age  0 of 1 match   wanted > 30m   most common values: "1m30s" (1)"#))
  }

  @Test(
    arguments: [
      ("Welcome ", "differs by white space"), (" Wel come", "differs by white space"), ("WELCOME", "differs by case"),
      ("Welcome\r\n", "differs by white space"), ("Goodbye", nil), ("", nil),
    ] as [(String, String?)])
  func hints(value: String, hint: String?) {
    for match in [Condition.Match.equals("Welcome"), .oneOf(["Other", "Welcome"])] {
      #expect(match.hint(for: value) == hint)
    }
    #expect(Condition.Match.prefix("Welcome").hint(for: value) == nil)
  }

  /// The number and the size of the recorded values are bounded.
  @Test func seenValuesAreBounded() throws {
    let plan = Self.plan([Condition.Test(.header(name: "x"), .equals("wanted"))])
    for number in 0..<1000 {
      // A single character of many scalars.
      let value = "\(number)" + String(repeating: "\u{301}", count: 500)
      _ = plan.fires(EngineFixture { $0.fields.append(("x", value)) })
    }
    let test = try #require(plan.ruleCounters.explain("topic-down")?.tests.first)
    #expect(test.seen.count == ObservedValues.limit)
    #expect(test.others == 1000 - ObservedValues.limit)
    #expect(test.seen.allSatisfy { ($0.value?.unicodeScalars.count ?? 0) <= 80 })
  }

  /// Credentials and complete device tokens are not shown.
  @Test func secretsAreNotSeen() throws {
    let plan = Self.plan([
      Condition.Test(.deviceToken, .prefix("ff")), Condition.Test(.header(name: "authorization"), .prefix("x")),
    ])
    let other = Self.plan([Condition.Test(.header(name: "x-token"), .equals("x"))])
    let whole = "f" + String(repeating: "f0", count: 31) + "f"
    for token in [EngineFixture.deviceToken, whole] { _ = plan.fires(EngineFixture { $0.deviceToken = token }) }
    _ = other.fires(EngineFixture { $0.fields.append(("x-token", EngineFixture.authorization(age: 0))) })
    for text in [plan, other].compactMap({ $0.ruleCounters.explain("topic-down") }).flatMap({
      [$0.text, Self.json($0)]
    }) {
      #expect(!text.contains("AAAA"))
      #expect(!text.contains("eyJ"))
      #expect(!text.contains("ab12ab12"))
      #expect(text.contains("not shown"))
    }
    #expect(try #require(plan.ruleCounters.explain("topic-down")).text.contains("ab12…12"))
  }

  /// The text is written to terminals, so control characters are escaped.
  @Test func controlCharactersAreShown() throws {
    let plan = Self.plan([Condition.Test(.payload(pointer: "/n"), .equals("x"))])
    _ = plan.fires(EngineFixture { $0.body = #"{"n":"\u001b[31m\u202e\n\""}"# })
    let text = try #require(plan.ruleCounters.explain("topic-down")).text
    #expect(text.contains(#""\u{1B}[31m\u{202E}\n\"""#))
  }
}
