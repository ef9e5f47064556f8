import APNSMockRules
import APNSMockHTTPMessage
import Testing

@testable import APNSMockFaultModel
@testable import APNSMockFaults

/// Rule counters: what is counted, how long counters are kept, and that they are bounded.
@Suite struct RuleCountersTests {
  static let twice = Rule.unavailable("a", trigger: Trigger(first: 2))

  /// Counters of unchanged rules survive a new plan; those of changed rules restart.
  @Test(arguments: [
    ([twice], true), ([.unavailable("b"), twice], true), ([.unavailable("a", trigger: Trigger(first: 3))], false),
    ([.unavailable("a", when: [Condition.Test(.pushType, .equals("alert"))], trigger: Trigger(first: 2))], false),
  ])
  func survival(rules: [Rule], survives: Bool) {
    let ruleCounters = RuleCounters()
    let one = FaultPlan([Self.twice], ruleCounters: ruleCounters)
    #expect((0..<3).map { _ in one.fires() } == [true, true, false])
    // First in the plan, so that it is evaluated in any case.
    let other = FaultPlan(rules.filter { $0.name == "a" } + rules.filter { $0.name != "a" }, ruleCounters: ruleCounters)
    _ = other.fires()
    #expect(ruleCounters.explain("a")?.evaluations == (survives ? 4 : 1))
    #expect(ruleCounters.explain("a")?.fired == (survives ? 2 : 1))
  }

  /// A copy of a plan continues with the counts, and counts for itself.
  @Test(arguments: [Trigger(first: 2), Trigger(times: 2), Trigger(every: 1, times: 2)])
  func copiesCountSeparately(trigger: Trigger) {
    let plan = FaultPlan([
      .unavailable("a", trigger: trigger), .unavailable("b", when: [Condition.Test(.pushType, .equals("voip"))]),
    ])
    #expect(plan.fires())
    let copy = plan.copy()
    #expect((0..<2).map { _ in copy.fires() } == [true, false])
    #expect(copy.ruleCounters.explain("a")?.fired == 2)
    #expect(plan.ruleCounters.explain("a")?.fired == 1)
    #expect(plan.ruleCounters.explain("a")?.evaluations == 1)
    #expect((0..<2).map { _ in plan.fires() } == [true, false])
  }

  /// Counters restart for a rule that is removed and added again, and for a rule of another profile.
  @Test func droppedCounters() {
    let ruleCounters = RuleCounters()
    func plan(_ profile: String, _ rules: [Rule]) -> FaultPlan {
      FaultPlan(
        profile: Profile(name: profile, rules: rules), seed: 1, magicTokens: false, activatedAt: 0,
        ruleCounters: ruleCounters)
    }
    _ = plan("one", [Self.twice]).fires()
    #expect(plan("two", [Self.twice]).ruleCounters.explain("a")?.evaluations == 0)
    _ = plan("one", [])
    #expect(ruleCounters.explain("a") == nil)
    #expect(plan("one", [Self.twice]).ruleCounters.explain("a")?.evaluations == 0)
  }

  /// A plan that has been replaced, which a connection may still hold briefly, has no effect.
  @Test func oldPlan() {
    let ruleCounters = RuleCounters()
    let old = FaultPlan([Self.twice], ruleCounters: ruleCounters)
    _ = FaultPlan([.unavailable("b")], ruleCounters: ruleCounters)
    #expect(!old.fires())
    #expect(ruleCounters.explanations.map(\.rule) == ["b"])
  }

  /// The totals of injections survive resets and removed rules, and are bounded.
  @Test func lastInjectionIsRemembered() {
    let ruleCounters = RuleCounters()
    let one = FaultPlan([Self.twice], ruleCounters: ruleCounters)
    #expect((0..<3).map { _ in one.fires() } == [true, true, false])
    ruleCounters.reset()
    #expect(one.fires())
    for number in 0..<300 { _ = FaultPlan([.unavailable("rule-\(number)")], ruleCounters: ruleCounters).fires() }
    let injections = ruleCounters.injections
    #expect(injections.count == 201)
    #expect(injections.first { $0.rule == "a" }?.count == 3)
    #expect(injections.first { $0.rule == "other" }?.count == 101)
    #expect(injections.allSatisfy { $0.action == .respond })
    #expect(injections.map(\.rule) == injections.map(\.rule).sorted())
  }

  /// The counts of rules that count are rows of a store, from which other counters continue.
  ///
  /// - Parameter profile: The name of the profile with the rule; empty for an added rule.
  @Test(arguments: ["test", "a/b.yaml", ""])
  func storedCounts(profile: String) {
    let rule = Rule.unavailable("a", trigger: Trigger(after: 1, times: 1))
    let former = RuleCounters(areStored: true)
    func plan(_ ruleCounters: RuleCounters) -> FaultPlan {
      FaultPlan(
        profile: Profile(name: profile.isEmpty ? "test" : profile, rules: profile.isEmpty ? [] : [rule]),
        addedRules: profile.isEmpty ? [rule] : [], seed: 1, magicTokens: false, activatedAt: 0,
        ruleCounters: ruleCounters)
    }
    let one = plan(former)
    #expect((0..<2).map { _ in one.fires() } == [false, true])
    let rows = former.takeChangedRows()
    #expect(rows.count == 4 && rows.values.allSatisfy { $0 != nil })
    #expect(former.takeChangedRows().isEmpty)

    let next = RuleCounters(areStored: true)
    let other = plan(next)
    next.restore(rows.compactMapValues(\.self).merging(["count/gone/x/0/matched/1": "3", "clock": "{}"]) { $1 })
    #expect(next.takeChangedRows() == ["count/gone/x/0/matched/1": String?.none], "no rule is known by this name")
    #expect(next.explain("a")?.evaluations == 2 && next.explain("a")?.fired == 1)
    #expect(!other.fires(), "the rule has fired once")
    #expect(next.takeChangedRows().keys.allSatisfy(rows.keys.contains))
    next.reset()
    #expect(next.takeChangedRows() == rows.mapValues { _ in String?.none })
    #expect((0..<2).map { _ in other.fires() } == [false, true])
    _ = next.takeChangedRows()
    _ = FaultPlan([], ruleCounters: next)
    #expect(next.takeChangedRows() == rows.mapValues { _ in String?.none })
  }

  /// Rules that do not count have no rows: these would be written with each batch.
  @Test func rulesThatDoNotCountAreNotStored() {
    let ruleCounters = RuleCounters(areStored: true)
    let plan = FaultPlan(
      [.unavailable(when: [Condition.Test(.pushType, .equals("alert"))])], ruleCounters: ruleCounters)
    #expect(plan.fires() && ruleCounters.takeChangedRows().isEmpty)
  }

  @Test func sameNames() {
    let ruleCounters = RuleCounters()
    let plan = FaultPlan([Self.twice, Self.twice], addedRules: [Self.twice], ruleCounters: ruleCounters)
    #expect((0..<7).map { _ in plan.fires() } == [true, true, true, true, true, true, false])
    #expect(ruleCounters.explain("a")?.profile == nil)
    #expect(ruleCounters.explanations.map(\.fired) == [2, 2, 2])
  }

  @Test func reset() throws {
    let hang = Rule(name: "hang", trigger: Trigger(times: 1), action: .hang(for: nil, endWith: .close))
    let plan = FaultPlan([Self.twice, hang], magicTokens: true)
    let token = MagicToken.make(code: .unavailableAtFirst, argument: 1).text
    let held = (0..<3).compactMap { _ in plan.decide(EngineFixture().traffic, at: .request, now: 0).decidingInjection }
    #expect(held.map(\.rule) == ["a", "a", "hang"])
    #expect(plan.fires(EngineFixture { $0.deviceToken = token }))
    #expect(!plan.fires(EngineFixture { $0.deviceToken = token }))
    plan.ruleCounters.reset()
    #expect(plan.ruleCounters.explain("a")?.evaluations == 0)
    // Delayed pushes are still counted.
    #expect(plan.ruleCounters.delayedPushes == 1)
    #expect(plan.ruleCounters.explain("hang")?.active == 1)
    plan.ruleCounters.release(try #require(held.last))
    #expect(plan.ruleCounters.delayedPushes == 0)
    #expect((0..<4).map { _ in plan.fires(EngineFixture { $0.deviceToken = token }) } == [true, true, true, true])
    #expect(!plan.fires(EngineFixture { $0.deviceToken = token }))
  }

  /// Releasing too often, or for a removed rule, does not raise the limit.
  @Test func releasesTooOften() throws {
    let rules = [Rule(name: "hang", action: .hang(for: nil, endWith: .close))]
    let plan = FaultPlan(rules, limits: .init(maxActive: 1))
    let injection = try #require(plan.decide(EngineFixture().traffic, at: .request, now: 0).decidingInjection)
    for _ in 0..<3 { plan.ruleCounters.release(injection) }
    #expect(plan.ruleCounters.delayedPushes == 0)
    #expect(plan.fires())
    #expect(!plan.fires())
    let ruleCounters = plan.ruleCounters
    _ = FaultPlan([], ruleCounters: ruleCounters)
    ruleCounters.release(injection)
    #expect(ruleCounters.delayedPushes == 0)
  }

  /// The tables are bounded for any traffic.
  @Test func tablesAreBounded() {
    let triggers = [
      Trigger(first: 1, countKey: .deviceToken), Trigger(times: 1, countKey: .deviceToken),
      Trigger(overLimit: .init(limit: 1, per: .seconds(1), burst: 1, key: .deviceToken)), Trigger(),
    ]
    let sequence = Action.sequence(key: .deviceToken, steps: [.dropHeader(name: "apns-id")], onEnd: .stay)
    let plan = FaultPlan(
      triggers.enumerated().map { number, trigger in
        Rule(name: "rule\(number)", trigger: trigger, action: number == 3 ? sequence : .splitBody)
      })
    var traffic = EngineFixture().traffic
    for number in 0..<3 * RuleCounter.keyLimit {
      // Replaces only the token in the path: validating a new push each time would take too long.
      traffic.push?.request.headers.setDeviceToken(EngineFixture.deviceToken(number))
      _ = plan.decide(traffic, at: .request, now: 0)
    }
    let limit = RuleCounter.keyLimit
    #expect((4 * limit...8 * limit).contains(plan.ruleCounters.keyCount))
  }

  @Test func tablesOfConnectionsAreBounded() {
    let plan = FaultPlan([
      Rule(name: "rule", injectionPoint: .connection, trigger: Trigger(first: 1, countKey: .connection), action: .close)
    ])
    var traffic = EngineFixture().connecting
    for number in 0..<3 * RuleCounter.keyLimit {
      traffic.connection.number = UInt64(number)
      _ = plan.decide(traffic, at: .connection, now: 0)
    }
    let limit = RuleCounter.keyLimit
    #expect((2 * limit...4 * limit).contains(plan.ruleCounters.keyCount))
  }

  @Test func keyedTable() {
    let limit = RuleCounter.keyLimit
    var table = GenerationalCache<Int, Int>(limit: limit)
    for key in 0..<10 * limit {
      table[key] = key
      // Used in each round, so never dropped.
      table[-1] = (table[-1] ?? 0) + 1
    }
    #expect(table.count <= 2 * limit)
    #expect(table[-1] == 10 * limit)
    #expect(table[10 * limit - 1] == 10 * limit - 1)
    #expect(table[0] == nil)
    table[-1] = nil
    #expect(table[-1] == nil)
  }
}
