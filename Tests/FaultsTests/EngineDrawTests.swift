import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import Foundation
import APNSMockHTTPMessage
import Testing

/// Random draws: the same seed results in the same decisions, in any order and on any thread.
@Suite struct EngineDrawTests {
  static let pushes = (0..<2000).map { number in
    EngineFixture {
      $0.deviceToken = EngineFixture.deviceToken(number / 2)
      $0.body = #"{"aps":{"alert":"\#(number / 2)"}}"#
      $0.attempt = number % 2 + 1
    }.traffic
  }

  static func plan(seed: UInt64 = 1, _ name: String = "rule", p: Double = 0.3, _ key: Trigger.Key = .attempt)
    -> FaultPlan
  {
    FaultPlan([.unavailable(name, trigger: Trigger(probability: .fixed(p), drawKey: key))], seed: seed)
  }

  static func fired(_ plan: FaultPlan, _ order: some Sequence<Int> = pushes.indices) -> Set<Int> {
    Set(order.filter { !plan.decide(pushes[$0], at: .request, now: 0).isEmpty })
  }

  @Test func orderDoesNotMatter() {
    let inOrder = Self.fired(Self.plan())
    #expect(inOrder == Self.fired(Self.plan()))
    #expect(inOrder == Self.fired(Self.plan(), Self.pushes.indices.reversed()))
    var generator = SystemRandomNumberGenerator()
    #expect(inOrder == Self.fired(Self.plan(), Self.pushes.indices.shuffled(using: &generator)))
    // Earlier draws of a plan do not matter either.
    let used = Self.plan()
    _ = Self.fired(used, 0..<777)
    #expect(inOrder == Self.fired(used))
  }

  @Test func threadsDoNotMatter() async {
    let plan = Self.plan()
    let parts = await withTaskGroup { group in
      for part in 0..<8 {
        group.addTask { Self.fired(plan, stride(from: part, to: Self.pushes.count, by: 8)) }
      }
      return await group.reduce(into: Set<Int>()) { $0.formUnion($1) }
    }
    #expect(parts == Self.fired(Self.plan()))
    #expect(plan.ruleCounters.explain("rule")?.evaluations == 2000)
    #expect(plan.ruleCounters.explain("rule")?.fired == parts.count)
  }

  /// Draws with a different seed or rule differ as much as independent ones: in about 2000 × 2 × 0.3 × 0.7 pushes.
  @Test(arguments: [plan(seed: 2), plan("other"), plan(seed: 1 << 63)])
  func otherDraws(plan: FaultPlan) {
    #expect((740...940).contains(Self.fired(plan).symmetricDifference(Self.fired(Self.plan())).count))
  }

  /// Rules of the same name in two profiles, and an added rule of that name, draw independently.
  @Test func profilesDrawIndependently() {
    let rule = Rule.unavailable(trigger: Trigger(probability: .fixed(0.3)))
    let plans = [
      FaultPlan(
        profile: Profile(name: "other", rules: [rule]), seed: 1, magicTokens: false, activatedAt: 0,
        ruleCounters: RuleCounters()),
      FaultPlan([], addedRules: [rule]),
    ]
    for plan in plans {
      #expect((740...940).contains(Self.fired(plan).symmetricDifference(Self.fired(Self.plan())).count))
    }
  }

  @Test(arguments: [0.001, 0.2, 0.5, 0.8, 0.999])
  func rate(p: Double) {
    let plan = Self.plan(p: p)
    let count = 5000
    var traffic = EngineFixture().traffic
    let fired = (0..<count).count { number in
      traffic.push?.key = PushKey(number: UInt64(number))
      return !plan.decide(traffic, at: .request, now: 0).isEmpty
    }
    // Five standard deviations: correct draws exceed this once in two million runs, and the seed is fixed.
    let deviation = 5 * (p * (1 - p) * Double(count)).squareRoot()
    #expect(abs(Double(fired) - p * Double(count)) < deviation)
  }

  /// Probabilities 0 and 1 are exact and make no draw; for others, the record shows the drawn number.
  @Test(arguments: [(0, false, false), (1, true, false), (0.999_999_999, true, true)])
  func exact(p: Double, fires: Bool, draws: Bool) throws {
    let decision = Self.plan(p: p).decide(Self.pushes[1], at: .request, now: 0)
    #expect(decision.isEmpty != fires)
    guard let injection = decision.decidingInjection else { return }
    #expect(injection.probability == p)
    #expect((injection.draw != nil) == draws)
    if draws { #expect(injection.ordinal == 2) }
  }

  /// Known values, so that a seed in a bug report has the same meaning in later versions. With a, b, c and d as the
  /// numbers in the SHA-256 of seed, profile and rule, one per line, a draw is the first 53 bits of fold(fold(a ^
  /// key, b ^ ordinal) ^ c, d). Computed by another program.
  @Test(
    arguments: [
      (.deviceToken, 3862001044700647, 0), (.topic, 6992478998392893, 0), (.connection, 8810793315183168, 0),
      (.rule, 562003843219406, 0), (.push, 5106048821347779, 0), (.attempt, 1791069313571147, 3),
    ] as [(Trigger.Key, UInt64, Int)])
  func isAsDocumented(key: Trigger.Key, bits: UInt64, ordinal: Int) throws {
    let plan = Self.plan(seed: 42, p: 0.999_999, key)
    let decision = plan.decide(EngineFixture { $0.attempt = 3 }.traffic, at: .request, now: 0)
    let injection = try #require(decision.decidingInjection)
    #expect(injection.draw == Double(bits) / 9_007_199_254_740_992)
    #expect(injection.ordinal == ordinal)
  }

  /// Whether one attempt fires is independent of the next attempt and of other rules.
  @Test(arguments: [(plan(p: 0.2), plan(p: 0.2), 1), (plan(p: 0.2), plan("other", p: 0.2), 0)])
  func drawsAreIndependent(one: FaultPlan, other: FaultPlan, later: Int) {
    func fires(_ plan: FaultPlan, _ key: Int, attempt: Int) -> Bool {
      var traffic = Self.pushes[0]
      traffic.push?.key = PushKey(number: UInt64(key))
      traffic.push?.attempt = attempt
      return !plan.decide(traffic, at: .request, now: 0).isEmpty
    }
    let both = (0..<5000).count { fires(one, $0, attempt: 1) && fires(other, $0, attempt: 1 + later) }
    #expect((130...270).contains(both), "one in 25 of 5000, give or take five standard deviations")
  }

  /// A draw by any key other than the attempt is made once and stays the same.
  @Test(arguments: [Trigger.Key.push, .deviceToken, .topic, .connection, .rule])
  func sticky(key: Trigger.Key) {
    let plan = Self.plan(p: 0.5, key)
    func fires(_ number: Int, attempt: Int) -> Bool {
      plan.fires(
        EngineFixture {
          $0.deviceToken = EngineFixture.deviceToken(number)
          $0.fields[0].1 = "com.acme.app\(number)"
          $0.connection.number = UInt64(number)
          $0.attempt = attempt
        })
    }
    let first = (0..<200).map { fires($0, attempt: 1) }
    for attempt in 2...4 { #expect((0..<200).map { fires($0, attempt: attempt) } == first) }
    if key == .rule { #expect(Set(first).count == 1) } else { #expect((60...140).contains(first.count { $0 })) }
  }

  /// A draw by attempt is made again for each attempt.
  @Test func notSticky() {
    let plan = Self.plan(p: 0.5)
    let attempts = (1...200).map { attempt in plan.fires(EngineFixture { $0.attempt = attempt }) }
    #expect((60...140).contains(attempts.count { $0 }))
  }

  @Test(arguments: [(15.0, 0.125), (30, 0.25), (45, 0.375), (60, 0.5), (600, 0.5)])
  func ramp(at: Double, p: Double) {
    let plan = FaultPlan([
      .unavailable(trigger: Trigger(probability: .ramp(from: 0, to: 0.5, over: .seconds(60)), drawKey: .attempt))
    ])
    let decisions = Self.pushes.map { plan.decide($0, at: .request, now: .seconds(at)) }
    #expect(decisions.compactMap(\.decidingInjection?.probability).allSatisfy { $0 == p })
    #expect(abs(Double(decisions.count { !$0.isEmpty }) - 2000 * p) < 5 * (2000 * p * (1 - p)).squareRoot())
  }

  // MARK: - Choices and delays

  @Test func weights() {
    let choices: [Action.Choice] = [
      .init(weight: 40, action: .answer(503)), .init(weight: 50, action: .answer(500)),
      .init(weight: 10, action: .resetStream(code: 2)), .init(weight: 0, action: .close),
    ]
    let plan = FaultPlan([Rule(name: "menu", action: .choose(choices))])
    let actions = Self.pushes.compactMap { plan.decide($0, at: .request, now: 0).decidingInjection?.action }
    #expect(actions.count == 2000)
    for (choice, expected) in zip(choices, [800, 1000, 200, 0]) {
      #expect(abs(actions.count { $0 == choice.action } - expected) <= expected / 5)
    }
    let again = FaultPlan([Rule(name: "menu", action: .choose(choices))])
    #expect(
      actions.reversed()
        == Self.pushes.reversed().compactMap { again.decide($0, at: .request, now: 0).decidingInjection?.action }
    )
  }

  /// The choice does not depend on the draw that decides whether the rule fires.
  @Test func choiceHasItsOwnDraw() {
    let choices = [Action.Choice(weight: 1, action: .answer(500)), Action.Choice(weight: 1, action: .answer(503))]
    let plan = FaultPlan([Rule(name: "menu", trigger: Trigger(probability: .fixed(0.5)), action: .choose(choices))])
    let outcomes = Self.pushes.compactMap { plan.decide($0, at: .request, now: 0).decidingInjection }
    #expect((400...600).contains(outcomes.count { $0.action == .answer(500) }))
    #expect(outcomes.allSatisfy { ($0.draw ?? 1) < 0.5 })
  }

  @Test func choiceInAChoice() {
    let inner = Action.choose([.init(weight: 1, action: .answer(500)), .init(weight: 1, action: .answer(503))])
    let plan = FaultPlan([
      Rule(name: "menu", action: .choose([.init(weight: 1, action: inner), .init(weight: 1, action: .close)]))
    ])
    let actions = Self.pushes.compactMap { plan.decide($0, at: .request, now: 0).decidingInjection?.action }
    for (action, expected) in [(Action.answer(500), 500), (.answer(503), 500), (.close, 1000)] {
      #expect(abs(actions.count { $0 == action } - expected) < 120)
    }
  }

  static func delays(_ delay: Action.Delay, limits: Profile.Limits = Profile.Limits()) -> [Duration] {
    let plan = FaultPlan([Rule(name: "slow", action: .delay(delay))], limits: limits)
    return pushes.compactMap { push in
      guard let injection = plan.decide(push, at: .request, now: 0).additions.first else { return nil }
      plan.ruleCounters.release(injection)
      if case .delay(.fixed(let duration)) = injection.action { return duration }
      return nil
    }
  }

  @Test func uniformDelay() {
    let delays = Self.delays(.uniform(min: .seconds(1), max: .seconds(3)))
    #expect(delays.count == 2000)
    #expect(delays.allSatisfy { $0 >= .seconds(1) && $0 < .seconds(3) })
    #expect(abs(delays.reduce(.zero, +) / .seconds(2000) - 2) < 0.1)
    #expect((850...1150).contains(delays.count { $0 < .seconds(2) }))
    #expect(delays == Self.delays(.uniform(min: .seconds(1), max: .seconds(3))))
  }

  @Test func lognormalDelay() {
    let delays = Self.delays(.lognormal(median: .milliseconds(40), sigma: 0.6, max: .seconds(2))).sorted()
    #expect(delays.count == 2000)
    #expect(abs(delays[1000] / .milliseconds(40) - 1) < 0.1)
    // The 84th percentile is one sigma above the median.
    #expect(abs(delays[1683] / .milliseconds(40) - exp(0.6)) < 0.2)
    #expect(delays.allSatisfy { $0 > .zero && $0 <= .seconds(2) })
  }

  @Test(
    arguments: [
      (.fixed(.seconds(9)), .seconds(9)), (.fixed(.seconds(90)), .seconds(60)), (.fixed(.zero - .seconds(1)), .zero),
      (.uniform(min: .seconds(5), max: .seconds(5)), .seconds(5)),
      (.uniform(min: .seconds(5), max: .seconds(1)), .seconds(5)),
      (.lognormal(median: .seconds(3), sigma: 0, max: .seconds(10)), .seconds(3)),
      (.lognormal(median: .seconds(3), sigma: 1e9, max: .seconds(70)), nil),
      (.lognormal(median: .seconds(3), sigma: .nan, max: .seconds(7)), .seconds(7)),
    ] as [(Action.Delay, Duration?)])
  func delayWithinLimits(delay: Action.Delay, expected: Duration?) {
    let delays = Set(Self.delays(delay, limits: Profile.Limits(maxDelay: .seconds(60))))
    if let expected { #expect(delays == [expected]) } else { #expect(delays.isSubset(of: [.zero, .seconds(60)])) }
  }
}
