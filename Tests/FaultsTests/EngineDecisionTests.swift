import APNSMockRules
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

/// The order in which rules are evaluated, which actions are combined, and what ends the evaluation.
@Suite struct EngineDecisionTests {
  static let slow = Rule(name: "slow", action: .delay(.fixed(.seconds(1))))
  static let slower = Rule(name: "slower", action: .delay(.fixed(.seconds(2))))
  static let down = Rule.unavailable("down")
  static let gone = Rule(name: "gone", action: .answer(410))
  static let pass = Rule(name: "pass", action: .pass)
  static let never = Rule.unavailable("never", trigger: Trigger(probability: .fixed(0)))

  static func with(_ rule: Rule, continues: Bool) -> Rule {
    var rule = rule
    rule.then = continues ? .continueEvaluation : .stop
    return rule
  }

  /// Returns the names of the rules that fired: those that add to a response, then the one that ended the evaluation.
  static func names(_ decision: Injections) -> [String] {
    decision.additions.map(\.rule) + ["|"] + (decision.decidingInjection.map { [$0.rule] } ?? [])
  }

  @Test(
    arguments: [
      ([], [], ["|"]), ([down], [], ["|", "down"]), ([down, gone], [], ["|", "down"]),
      ([slow, down], [], ["slow", "|", "down"]),
      ([down, slow], [], ["|", "down"]), ([slow, slower], [], ["slow", "slower", "|"]),
      ([slow, never, slower, gone, down], [], ["slow", "slower", "|", "gone"]),
      ([gone], [down], ["|", "down"]), ([gone], [never, slow, down], ["slow", "|", "down"]),
      ([gone], [slow], ["slow", "|", "gone"]),
      ([slow, down], [slower], ["slower", "slow", "|", "down"]), ([pass, down], [], ["|", "pass"]),
      ([down], [pass], ["|", "pass"]), ([slow, pass, slower], [], ["slow", "|", "pass"]),
      ([with(slow, continues: false), down], [], ["|", "slow"]),
      ([with(down, continues: true), gone], [], ["down", "|", "gone"]),
    ] as [([Rule], [Rule], [String])])
  func order(rules: [Rule], addedRules: [Rule], names: [String]) {
    let decision = FaultPlan(rules, addedRules: addedRules).decide(EngineFixture().traffic, at: .request, now: 0)
    #expect(Self.names(decision) == names)
    #expect(decision.additions.allSatisfy { $0.continues })
    #expect(decision.decidingInjection?.continues != true)
  }

  @Test func decisionNamesItsOrigin() {
    let decision = FaultPlan([Self.down], addedRules: [Self.slow]).decide(EngineFixture().traffic, at: .request, now: 0)
    #expect(decision.additions.map(\.profile) == [nil])
    #expect(decision.decidingInjection?.profile == "test")
  }

  /// Rules after the one that ended the evaluation count nothing.
  @Test func rulesAfterAnOutcomeAreNotCounted() {
    let plan = FaultPlan([.unavailable("a", trigger: Trigger(every: 2)), .unavailable("b", trigger: Trigger(first: 1))])
    let fired = (0..<4).map { _ in plan.decide(EngineFixture().traffic, at: .request, now: 0).decidingInjection?.rule }
    #expect(fired == ["b", "a", nil, "a"])
    #expect(plan.ruleCounters.explain("b")?.evaluations == 2)
  }

  // MARK: - Injection points

  @Test(arguments: InjectionPoint.allCases)
  func activeAtItsInjectionPoint(injectionPoint: InjectionPoint) {
    let rule = Rule(name: "rule", injectionPoint: injectionPoint, action: .delay(.fixed(.seconds(1))))
    let plan = FaultPlan([rule])
    for other in InjectionPoint.allCases {
      #expect(plan.mayInject(at: other) == (other == injectionPoint))
      #expect(plan.fires(at: other) == (other == injectionPoint))
    }
    #expect(FaultPlan([], addedRules: [rule]).mayInject(at: injectionPoint))
    let isPaused = FaultPlan([rule], addedRules: [rule], magicTokens: true, isPaused: true)
    for other in InjectionPoint.allCases {
      #expect(!isPaused.mayInject(at: other))
      #expect(!isPaused.fires(at: other))
    }
  }

  @Test func inactiveWithoutRules() {
    for injectionPoint in InjectionPoint.allCases {
      #expect(!FaultPlan([]).mayInject(at: injectionPoint))
      #expect(FaultPlan([], magicTokens: true).mayInject(at: injectionPoint) == (injectionPoint == .request))
    }
  }

  // MARK: - Stage

  static let rejected = EngineFixture { $0.fields[0].1 = "" }

  /// A push that APNs rejects keeps its rejection, unless the rule is evaluated before validation.
  @Test(
    arguments: [
      (.request, .unavailable, .afterValidation, false), (.request, .unavailable, .beforeValidation, true),
      (.request, .delay(.fixed(.seconds(1))), .afterValidation, false),
      (.request, .delay(.fixed(.seconds(1))), .beforeValidation, true),
      (.response, .resetStream(code: 2), .afterValidation, false),
      (.response, .resetStream(code: 2), .beforeValidation, true),
      (.response, .delay(.fixed(.seconds(1))), .afterValidation, true), (.response, .splitBody, .afterValidation, true),
      (.response, .choose([.init(weight: 1, action: .splitBody)]), .afterValidation, true),
      (.response, .choose([.init(weight: 1, action: .close)]), .afterValidation, false),
    ] as [(InjectionPoint, Action, Rule.Stage, Bool)])
  func stage(injectionPoint: InjectionPoint, action: Action, stage: Rule.Stage, fires: Bool) {
    let plan = FaultPlan([Rule(name: "rule", injectionPoint: injectionPoint, action: action, stage: stage)])
    #expect(!Self.rejected.push.verdict.isAccepted)
    #expect(plan.fires(Self.rejected, at: injectionPoint) == fires)
    #expect(plan.fires(EngineFixture(), at: injectionPoint))
    #expect(plan.ruleCounters.explain("rule")?.rejectedByAPNs == (fires ? 0 : 1))
  }

  /// After an outcome has been injected, only actions that add to it are applied.
  @Test func atMostOneOutcome() {
    let rules = [
      Rule(name: "split", action: .splitBody), Self.gone, Rule(name: "late", action: .delay(.fixed(.seconds(1)))),
    ]
    let plan = FaultPlan(
      rules.map { rule in
        var rule = rule
        rule.injectionPoint = .response
        return rule
      })
    let traffic = EngineFixture { $0.response = Traffic.Response(status: 503) }.traffic
    #expect(Self.names(plan.decide(traffic, at: .response, now: 0)) == ["split", "|", "gone"])
    #expect(Self.names(plan.decide(traffic, at: .response, now: 0, additionsOnly: true)) == ["split", "late", "|"])
  }

  // MARK: - Sequences

  static func sequence(_ key: Trigger.Key, _ onEnd: Action.SequenceEnd) -> FaultPlan {
    FaultPlan([
      Rule(name: "script", action: .sequence(key: key, steps: [.answer(503), .answer(429), .pass], onEnd: onEnd)), gone,
    ])
  }

  /// Returns the status of the responses to pushes to these devices, in order; 200 for `pass`.
  static func answers(_ plan: FaultPlan, to devices: [Int]) -> [Int] {
    devices.map { device in
      let fixture = EngineFixture { $0.deviceToken = EngineFixture.deviceToken(device) }
      switch plan.decide(fixture.traffic, at: .request, now: 0).decidingInjection?.action {
      case .respond(let answer): return answer.status
      case .pass: return 200
      default: return 0
      }
    }
  }

  @Test(
    arguments: [
      (.rule, .stay, [1, 2, 1, 2, 1], [503, 429, 200, 200, 200]),
      (.rule, .cycle, [1, 1, 1, 1, 1, 1, 1], [503, 429, 200, 503, 429, 200, 503]),
      (.rule, .pass, [1, 1, 1, 1, 1], [503, 429, 200, 410, 410]),
      (.deviceToken, .stay, [1, 2, 1, 2, 1, 3], [503, 503, 429, 429, 200, 503]),
      (.deviceToken, .pass, [1, 1, 1, 1, 2], [503, 429, 200, 410, 503]),
      (.deviceToken, .cycle, [1, 1, 1, 2, 1], [503, 429, 200, 503, 503]),
    ] as [(Trigger.Key, Action.SequenceEnd, [Int], [Int])])
  func steps(key: Trigger.Key, onEnd: Action.SequenceEnd, devices: [Int], answers: [Int]) {
    #expect(Self.answers(Self.sequence(key, onEnd), to: devices) == answers)
  }

  /// A sequence advances when the rule fires, not when it is evaluated.
  @Test func stepsWhenItFires() {
    let plan = FaultPlan([
      Rule(
        name: "script", trigger: Trigger(every: 2),
        action: .sequence(key: .rule, steps: [.answer(503), .answer(429)], onEnd: .stay))
    ])
    #expect(Self.answers(plan, to: [1, 1, 1, 1, 1, 1]) == [0, 503, 0, 429, 0, 429])
  }

  /// Two sequences in one rule advance independently.
  @Test func sequencesInAChoice() {
    func part(_ first: Int) -> Action.Choice {
      .init(weight: 1, action: .sequence(key: .rule, steps: [.answer(first), .answer(first + 1)], onEnd: .cycle))
    }
    let plan = FaultPlan([
      Rule(name: "menu", trigger: Trigger(drawKey: .deviceToken), action: .choose([part(500), part(300)]))
    ])
    let answers = Self.answers(plan, to: Array(0..<100))
    for first in [500, 300] {
      let own = answers.filter { $0 / 100 == first / 100 }
      #expect(own == own.indices.map { first + $0 % 2 })
      #expect(own.count > 20)
    }
  }

  @Test func emptySequenceAndChoice() {
    for action in [Action.sequence(key: .rule, steps: [], onEnd: .cycle), .choose([])] {
      #expect(Self.answers(FaultPlan([Rule(name: "rule", action: action)]), to: [1, 1]) == [200, 200])
    }
  }

  // MARK: - Delayed pushes

  static let hang = Action.hang(for: nil, endWith: .resetStream)

  @Test func holdsWithinTheRulesLimit() throws {
    let plan = FaultPlan([Rule(name: "hang", trigger: Trigger(maxActive: 2), action: Self.hang)])
    let held = (0..<4).map { _ in plan.decide(EngineFixture().traffic, at: .request, now: 0).decidingInjection }
    #expect(held.map { $0 != nil } == [true, true, false, false])
    #expect(plan.ruleCounters.delayedPushes == 2)
    #expect(plan.ruleCounters.explain("hang")?.active == 2)
    plan.ruleCounters.release(try #require(held[0]))
    #expect(plan.ruleCounters.delayedPushes == 1)
    #expect(plan.fires())
    #expect(!plan.fires())
    #expect(plan.ruleCounters.explain("hang")?.stops == [.init(part: "max_active", count: 3)])
  }

  @Test func holdsWithinTheProfilesLimit() throws {
    let rules = [Rule(name: "slow", action: .delay(.fixed(.seconds(1)))), Rule(name: "hang", action: Self.hang)]
    let plan = FaultPlan(rules, limits: .init(maxActive: 3))
    let first = plan.decide(EngineFixture().traffic, at: .request, now: 0)
    #expect(Self.names(first) == ["slow", "|", "hang"])
    #expect(Self.names(plan.decide(EngineFixture().traffic, at: .request, now: 0)) == ["slow", "|"])
    #expect(!plan.fires())
    #expect(plan.ruleCounters.explain("hang")?.stops == [.init(part: "limits.max_active", count: 2)])
    // Releasing any of them frees a place, whichever rule holds it.
    plan.ruleCounters.release(try #require(first.additions.first))
    #expect(plan.fires())
  }

  /// Actions that do not hold a push are not limited, and releasing them changes nothing.
  @Test func otherActionsAreNotLimited() throws {
    let plan = FaultPlan([.unavailable(trigger: Trigger(maxActive: 0))], limits: .init(maxActive: 0))
    let injection = try #require(plan.decide(EngineFixture().traffic, at: .request, now: 0).decidingInjection)
    plan.ruleCounters.release(injection)
    #expect(plan.ruleCounters.delayedPushes == 0)
    #expect(plan.fires())
  }

  @Test(
    arguments: [
      (nil, .seconds(60)), (.seconds(5), .seconds(5)), (.seconds(90), .seconds(60)), (.zero, .zero),
    ] as [(Duration?, Duration)])
  func hangWithinLimits(length: Duration?, expected: Duration) {
    let plan = FaultPlan(
      [Rule(name: "hang", action: .hang(for: length, endWith: .close))], limits: .init(maxDelay: .seconds(60)))
    let action = plan.decide(EngineFixture().traffic, at: .request, now: 0).decidingInjection?.action
    #expect(action == .hang(for: expected, endWith: .close))
  }

  /// A step that is skipped because of the limit is used next time.
  @Test func limitKeepsTheStep() throws {
    let plan = FaultPlan([
      Rule(
        name: "script", trigger: Trigger(maxActive: 1),
        action: .sequence(key: .rule, steps: [Self.hang, Self.hang, .answer(503)], onEnd: .stay))
    ])
    let first = try #require(plan.decide(EngineFixture().traffic, at: .request, now: 0).decidingInjection)
    #expect(Self.answers(plan, to: [1, 1]) == [0, 0])
    plan.ruleCounters.release(first)
    #expect(plan.decide(EngineFixture().traffic, at: .request, now: 0).decidingInjection?.action.name == .hang)
    #expect(Self.answers(plan, to: [1]) == [503])
  }
}
