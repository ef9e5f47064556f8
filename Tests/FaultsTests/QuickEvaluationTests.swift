import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import Testing

/// A rule that quick evaluation skips has the same effect, and the same counters, as one that is evaluated in full.
@Suite struct QuickEvaluationTests {
  static let rejected = EngineDecisionTests.rejected

  static let triggers: [Trigger] = [
    Trigger(), Trigger(probability: .fixed(0)), Trigger(probability: .fixed(1)),
    Trigger(probability: .fixed(0.3), drawKey: .attempt), Trigger(probability: .fixed(0.3), drawKey: .push),
    Trigger(probability: .fixed(0.3), drawKey: .rule), Trigger(probability: .fixed(0.3), drawKey: .deviceToken),
    Trigger(probability: .ramp(from: 0, to: 1, over: .seconds(10)), drawKey: .push),
    Trigger(probability: .fixed(0.5), drawKey: .push, first: 1, countKey: .push), Trigger(first: 2, countKey: .push),
    Trigger(after: 1, every: 2, countKey: .push), Trigger(first: 30, countKey: .rule), Trigger(every: 3),
    Trigger(probability: .fixed(0.5), times: 20), Trigger(probability: .fixed(0.5), times: 1, countKey: .push),
    Trigger(probability: .fixed(0.5), overLimit: Trigger.Rate(limit: 5, per: .seconds(1), burst: 2, key: .rule)),
    Trigger(probability: .fixed(0.5), window: Trigger.Window(after: .seconds(2), length: .seconds(3))),
    Trigger(probability: .fixed(0.5), afterStreams: 100), Trigger(probability: .fixed(0.5), maxActive: 3),
  ]

  /// Sixty pushes with four attempts each, both accepted and rejected.
  static let pushes: [Traffic] = (0..<240).map { number in
    var traffic = (number % 5 == 0 ? rejected : EngineFixture()).traffic
    traffic.push?.key = PushKey(number: UInt64(number / 4))
    traffic.push?.attempt = number % 4 + 1
    traffic.response = Traffic.Response(status: number % 5 == 0 ? 400 : 200)
    return traffic
  }

  @Test(
    arguments: triggers,
    [(InjectionPoint.request, .unavailable), (.request, .delay(.fixed(.seconds(1)))), (.response, .splitBody)]
      as [(InjectionPoint, Action)])
  func doesTheSame(trigger: Trigger, what: (injectionPoint: InjectionPoint, action: Action)) throws {
    for stage in [Rule.Stage.afterValidation, .beforeValidation] {
      for identity in Profile.PushIdentity.allCases {
        let rule = Rule(
          name: "rule", injectionPoint: what.injectionPoint, trigger: trigger, action: what.action, stage: stage)
        var asked = rule
        asked.condition = Condition([Condition.Test(.client, .present(true))])
        let (plain, full) = (
          FaultPlan([rule], pushIdentity: identity), FaultPlan([asked], pushIdentity: identity)
        )
        for (second, traffic) in Self.pushes.enumerated() {
          for excluding in [false, true] {
            let now = Int64.seconds(Double(second) / 20)
            let decision = plain.decide(traffic, at: what.injectionPoint, now: now, additionsOnly: excluding)
            #expect(decision == full.decide(traffic, at: what.injectionPoint, now: now, additionsOnly: excluding))
          }
        }
        let (one, other) = (
          try #require(plain.ruleCounters.explain("rule")), try #require(full.ruleCounters.explain("rule"))
        )
        #expect(
          one.evaluations == other.evaluations && one.fired == other.fired && one.rejectedByAPNs == other.rejectedByAPNs
        )
        #expect(one.stops == other.stops && one.triggered == other.triggered && one.active == other.active)
        #expect(one.evaluations > 0)
      }
    }
  }

  /// Rules before the one that fires are counted and those after it are not, with either form of evaluation.
  @Test func quickEvaluationEndsAtTheSameRule() {
    let never = Trigger(probability: .fixed(0))
    let here = [Condition.Test(.client, .present(true))]
    let plan = FaultPlan([
      .unavailable("a", trigger: never), .unavailable("b", when: here, trigger: never),
      .unavailable("c", trigger: never), .unavailable("d", trigger: Trigger(every: 2)),
      .unavailable("e", trigger: never), .unavailable("f", when: here),
    ])
    let fired = (0..<4).map { _ in plan.decide(EngineFixture().traffic, at: .request, now: 0).decidingInjection?.rule }
    #expect(fired == ["f", "d", "f", "d"])
    #expect(plan.ruleCounters.explanations.map(\.evaluations) == [4, 4, 4, 4, 2, 2])
    #expect(plan.ruleCounters.explanations.map(\.fired) == [0, 0, 0, 2, 0, 2])
  }

  /// Rules that were skipped are not evaluated again.
  @Test func remainingRulesAreTheLastOnes() throws {
    let plan = FaultPlan([
      .unavailable("a", trigger: Trigger(probability: .fixed(0))), .unavailable("b", trigger: Trigger(every: 2)),
      .unavailable("c", trigger: Trigger(probability: .fixed(0))),
    ])
    let push = try #require(EngineFixture().traffic.push)
    let summary = Traffic.PushSummary(key: push.key, isAccepted: true)
    let remaining = plan.quickResult(at: .request, for: summary, attempt: { 1 }, now: 0)
    #expect(!remaining.isEmpty)
    #expect(plan.fire(remaining) == nil)
    #expect(plan.quickResult(at: .response, for: summary, attempt: { 1 }, now: 0).isEmpty)
    #expect(plan.ruleCounters.explanations.map(\.evaluations) == [1, 0, 0])
    #expect(plan.decide(EngineFixture().traffic, at: .request, now: 0, among: remaining).isEmpty)
    #expect(plan.ruleCounters.explanations.map(\.evaluations) == [1, 1, 1])
  }

  /// Quick evaluation is sufficient for a rule that always does the same: it fires without evaluating the traffic.
  @Test func quickEvaluationFiresConstantResponses() throws {
    let plan = FaultPlan([
      .unavailable("a", trigger: Trigger(probability: .fixed(0))),
      .unavailable("b", trigger: Trigger(probability: .fixed(0.5), drawKey: .push, first: 1, countKey: .push)),
    ])
    let fired = (0..<100 as Range<UInt64>).compactMap { number -> Injection? in
      let summary = Traffic.PushSummary(key: PushKey(number: number), isAccepted: true)
      let remaining = plan.quickResult(at: .request, for: summary, attempt: { 1 }, now: 0)
      let injection = plan.fire(remaining)
      #expect(remaining.isEmpty == (injection == nil))
      return injection
    }
    #expect((30...70).contains(fired.count))
    #expect(fired.allSatisfy { $0.rule == "b" && $0.action == .unavailable })
    #expect(fired.compactMap(\.draw).count { $0 < 0.5 } == fired.count)
    #expect(plan.ruleCounters.explain("b")?.fired == fired.count)
    #expect(plan.ruleCounters.explain("b")?.evaluations == 100)
    #expect(plan.ruleCounters.injections.map(\.count) == [fired.count])
    // A newer plan does not contain the rule.
    let summary = Traffic.PushSummary(key: PushKey(number: 0), isAccepted: true)
    let always = FaultPlan([.unavailable("c")], ruleCounters: plan.ruleCounters)
    let remaining = always.quickResult(at: .request, for: summary, attempt: { 1 }, now: 0)
    _ = FaultPlan([], ruleCounters: plan.ruleCounters)
    #expect(always.fire(remaining) == nil)
  }

  /// A constant response is the same for every push and has no further effects.
  @Test(
    arguments: [
      (Action.Response(status: 503, reason: "ServiceUnavailable"), #"{"reason":"ServiceUnavailable"}"#),
      (Action.Response(status: 500, reason: nil), ""),
      (Action.Response(status: 400, reason: "BadTopic", body: "{}"), "{}"),
      (
        Action.Response(status: 429, reason: "TooManyRequests", timestamp: .absolute(1)),
        #"{"reason":"TooManyRequests"}"#
      ),
      (Action.Response(status: 429, reason: "TooManyProviderTokenUpdates", blocksTokenUpdates: true), nil),
      (Action.Response(status: 503, reason: "ServiceUnavailable", headers: [Action.Field(name: "a", value: "b")]), nil),
      (Action.Response(status: 410, reason: "Unregistered"), nil),
      (Action.Response(status: 400, reason: "Sideways"), nil),
      (Action.Response(status: 200, reason: nil), nil),
      (Action.Response(status: 201, reason: nil), nil),
    ] as [(Action.Response, String?)])
  func constantResponses(answer: Action.Response, body: String?) {
    let summary = Traffic.PushSummary(key: PushKey(number: 0), isAccepted: true)
    func fire(_ rule: Rule) -> (injection: Injection, response: ConstantResponse)? {
      let plan = FaultPlan([rule])
      let fired = plan.fireConstantResponse(plan.quickResult(at: .request, for: summary, attempt: { 1 }, now: 0))
      #expect(plan.ruleCounters.explanations.map(\.fired) == [fired == nil ? 0 : 1])
      return fired
    }
    let fired = fire(Rule(name: "a", action: .respond(answer)))
    #expect(fired.map { String(decoding: $0.response.body, as: UTF8.self) } == body)
    #expect(fired.map(\.response.status) == body.map { _ in answer.status })
    #expect(fired.map(\.response.reason) == body.map { _ in answer.reason.flatMap(Reason.init(text:)) })
    #expect(fired?.injection.rule == (body == nil ? nil : "a"))
    #expect(fire(Rule(name: "a", action: .respond(answer), continues: true)) == nil)
    #expect(fire(Rule(name: "a", trigger: Trigger(times: 1), action: .respond(answer))) == nil)
  }

  /// Counters of skipped rules are kept while the rule does not change, and are cleared by a reset.
  @Test func skippedRulesCountLikeOthers() {
    let rule = Rule.unavailable(trigger: Trigger(probability: .fixed(0)))
    let ruleCounters = RuleCounters()
    let first = FaultPlan([rule], ruleCounters: ruleCounters)
    _ = first.fires()
    let second = FaultPlan(
      [rule], addedRules: [.unavailable("other", trigger: Trigger(every: 9))], ruleCounters: ruleCounters)
    _ = second.fires()
    _ = first.fires()
    #expect(ruleCounters.explain("rule")?.evaluations == 3)
    ruleCounters.reset()
    #expect(ruleCounters.explain("rule")?.evaluations == 0)
    #expect(ruleCounters.explain("rule")?.stops == [])
    _ = second.fires()
    #expect(ruleCounters.explain("rule")?.evaluations == 1)
    var other = rule
    other.trigger.probability = .fixed(1)
    _ = FaultPlan([other], ruleCounters: ruleCounters)
    #expect(ruleCounters.explain("rule")?.evaluations == 0)
  }
}
