import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import Testing

/// A rule that is evaluated from the summary of a push has the same effect, and the same counters, as one that needs the
/// traffic.
@Suite struct SummaryEvaluationTests {
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
  @Test func evaluationEndsAtTheSameRule() {
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

  /// The traffic is asked for once, by the first rule that needs it, and the rules before that one are not evaluated
  /// again.
  @Test func trafficIsAskedForOnce() {
    let plan = FaultPlan([
      .unavailable("a", trigger: Trigger(probability: .fixed(0))), .unavailable("b", trigger: Trigger(every: 2)),
      .unavailable("c", trigger: Trigger(probability: .fixed(0))), .unavailable("d", trigger: Trigger(every: 2)),
    ])
    let summary = Traffic.PushSummary(key: PushKey(number: 1), isAccepted: true)
    var isAsked = 0
    func decide(at injectionPoint: InjectionPoint) -> Injections {
      plan.decide(at: injectionPoint, about: summary, now: 0, attempt: { 1 }) {
        isAsked += 1
        return EngineFixture().traffic
      }
    }
    #expect(decide(at: .response).isEmpty)
    #expect(isAsked == 0)
    #expect(decide(at: .request).isEmpty)
    #expect(isAsked == 1)
    #expect(plan.ruleCounters.explanations.map(\.evaluations) == [1, 1, 1, 1])
  }

  /// Decides about an accepted push with a plan whose rules do not need the traffic.
  private static func decide(_ plan: FaultPlan, key: UInt64 = 0) -> Injections {
    let summary = Traffic.PushSummary(key: PushKey(number: key), isAccepted: true)
    return plan.decide(at: .request, about: summary, now: 0, attempt: { 1 }) {
      Issue.record("A rule needs the traffic.")
      return EngineFixture().traffic
    }
  }

  /// A rule that always does the same fires without the traffic.
  @Test func constantEffectsNeedNoTraffic() {
    let plan = FaultPlan([
      .unavailable("a", trigger: Trigger(probability: .fixed(0))),
      .unavailable("b", trigger: Trigger(probability: .fixed(0.5), drawKey: .push, first: 1, countKey: .push)),
    ])
    let fired = (0..<100 as Range<UInt64>).flatMap { Self.decide(plan, key: $0) }
    #expect((30...70).contains(fired.count))
    #expect(fired.allSatisfy { $0.rule == "b" && $0.action == .unavailable })
    #expect(fired.compactMap(\.draw).count { $0 < 0.5 } == fired.count)
    #expect(plan.ruleCounters.explain("b")?.fired == fired.count)
    #expect(plan.ruleCounters.explain("b")?.evaluations == 100)
    #expect(plan.ruleCounters.injections.map(\.count) == [fired.count])
    // A newer plan does not contain the rule.
    let always = FaultPlan([.unavailable("c")], ruleCounters: plan.ruleCounters)
    _ = FaultPlan([], ruleCounters: plan.ruleCounters)
    #expect(Self.decide(always).isEmpty)
  }

  /// A magic device token is found even if no rule needs the traffic.
  @Test(arguments: [true, false])
  func magicTokensNeedTheTraffic(isMagic: Bool) {
    let plan = FaultPlan([.unavailable("a", trigger: Trigger(probability: .fixed(0)))], magicTokens: true)
    let summary = Traffic.PushSummary(key: PushKey(number: 0), isAccepted: true, hasMagicToken: isMagic)
    let decision = plan.decide(at: .request, about: summary, now: 0, attempt: { 1 }) {
      EngineFixture { $0.deviceToken = MagicToken.make(code: .unregistered).text }.traffic
    }
    #expect(decision.map(\.rule) == (isMagic ? ["magic-4100"] : []))
    #expect(plan.ruleCounters.explain("a")?.evaluations == 1)
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
    func fire(_ rule: Rule) -> (injection: Injection, response: ConstantResponse)? {
      FaultPlan([rule]).decide(EngineFixture().traffic, at: .request, now: 0).constantResponse
    }
    let fired = fire(Rule(name: "a", action: .respond(answer)))
    #expect(fired.map { String(decoding: $0.response.body, as: UTF8.self) } == body)
    #expect(fired.map(\.response.status) == body.map { _ in answer.status })
    #expect(fired.map(\.response.reason) == body.map { _ in answer.reason.flatMap(Reason.init(text:)) })
    #expect(fired?.injection.rule == (body == nil ? nil : "a"))
    #expect(fire(Rule(name: "a", action: .respond(answer), continues: true)) == nil)
    // However the rule was evaluated, only its response counts.
    let once = fire(Rule(name: "a", trigger: Trigger(times: 1), action: .respond(answer)))
    #expect(once?.response.body == fired?.response.body)
    #expect((once == nil) == (body == nil))
    let late = FaultPlan([
      Rule(name: "late", action: .delay(.fixed(.zero))), Rule(name: "a", action: .respond(answer)),
    ])
    #expect(late.decide(EngineFixture().traffic, at: .request, now: 0).constantResponse == nil)
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
