import FaultModel
import Testing

@testable import Faults

/// What rules of several servers count together.
@Suite struct SharedCountsTests {
  private static let twice = Rule.unavailable("\"a\"\n", trigger: Trigger(first: 2))
  private static let token = MagicToken.make(code: .unavailableAtFirst, argument: 1).text

  private static func plan(_ rules: [Rule] = [twice], isShared: Bool = true) -> FaultPlan {
    FaultPlan(rules, magicTokens: true, ruleCounters: RuleCounters(isShared: isShared))
  }

  /// Passes on what `one` has counted, as JSON.
  private static func pass(from one: FaultPlan, to other: FaultPlan, after request: Int = 0) throws {
    let counts = try #require(one.ruleCounters.takeUnannounced(after: request))
    other.ruleCounters.add(try #require(SharedCounts(json: counts.json)))
  }

  @Test func countsContinueOnTheOtherServer() throws {
    let (one, other) = (Self.plan(), Self.plan())
    #expect(one.fires())
    try Self.pass(from: one, to: other)
    #expect((0..<2).map { _ in other.fires() } == [true, false])
    try Self.pass(from: other, to: one)
    #expect(!one.fires())
    try Self.pass(from: one, to: other)
    #expect(one.ruleCounters.takeUnannounced(after: 0) == nil, "what was taken is not taken again")
  }

  @Test func rulesOfTheSameNameCountSeparately() throws {
    let (one, other) = (Self.plan([Self.twice, Self.twice]), Self.plan([Self.twice, Self.twice]))
    #expect((0..<3).allSatisfy { _ in one.fires() })
    try Self.pass(from: one, to: other)
    #expect((0..<2).map { _ in other.fires() } == [true, false])
  }

  @Test func magicDeviceTokens() throws {
    let (one, other) = (Self.plan([]), Self.plan([]))
    #expect(one.fires(EngineFixture { $0.deviceToken = Self.token }))
    try Self.pass(from: one, to: other)
    #expect(!other.fires(EngineFixture { $0.deviceToken = Self.token }))
  }

  /// A reset outdates what another server counted before it executed the reset, not what it counted after it.
  @Test(arguments: [(before: 4, counts: false), (before: 5, counts: true), (before: 6, counts: true)])
  func reset(before: Int, counts: Bool) throws {
    let (one, other) = (Self.plan([.unavailable("a", trigger: Trigger(first: 1))]), Self.plan())
    let plan = FaultPlan(
      [.unavailable("a", trigger: Trigger(first: 1))], magicTokens: true, ruleCounters: other.ruleCounters)
    other.ruleCounters.begin(request: 5)
    other.ruleCounters.reset()
    #expect(one.fires())
    #expect(one.fires(EngineFixture { $0.deviceToken = Self.token }))
    try Self.pass(from: one, to: plan, after: before)
    #expect(plan.fires() == !counts)
    let magic = EngineFixture { $0.deviceToken = Self.token }
    #expect(plan.fires(magic) == !counts)
  }

  /// What was counted before a reset or a change of the rule is not announced.
  @Test func outdatedCountsAreNotAnnounced() {
    let plan = Self.plan()
    #expect(plan.fires())
    plan.ruleCounters.reset()
    #expect(plan.ruleCounters.takeUnannounced(after: 1) == nil)
    #expect(plan.fires())
    _ = FaultPlan([.unavailable("b")], ruleCounters: plan.ruleCounters)
    #expect(plan.ruleCounters.takeUnannounced(after: 1) == nil)
  }

  /// A rule that this server does not have, and counts of a rule that was added by a later request.
  @Test func unknownAndNewerRules() throws {
    let (one, other) = (Self.plan(), Self.plan([]))
    #expect(one.fires())
    try Self.pass(from: one, to: other)
    other.ruleCounters.begin(request: 7)
    let added = FaultPlan([Self.twice], ruleCounters: other.ruleCounters)
    #expect(one.fires())
    try Self.pass(from: one, to: added, after: 6)
    #expect((0..<3).map { _ in added.fires() } == [true, true, false])
  }

  /// A server alone collects nothing, and a server whose store fails not without limit.
  @Test func collectingIsBounded() throws {
    let alone = Self.plan(isShared: false)
    #expect(alone.fires())
    #expect(alone.ruleCounters.takeUnannounced(after: 0) == nil)
    let plan = Self.plan([.unavailable("a", trigger: Trigger(first: 1, countKey: .deviceToken))])
    for number in 0..<(RuleCounter.keyLimit + 10) {
      _ = plan.fires(EngineFixture { $0.deviceToken = EngineFixture.deviceToken(number) })
    }
    #expect(try #require(plan.ruleCounters.takeUnannounced(after: 0)).entries.count == RuleCounter.keyLimit)
  }

  @Test(arguments: ["", "{", "[]", "{}", #"{"request":1}"#, #"{"request":"1","counts":[]}"#])
  func invalidText(text: String) { #expect(SharedCounts(json: text) == nil) }

  @Test func invalidEntriesAreSkipped() throws {
    let text = #"{"request":1,"counts":[1,{},{"kind":"odd","key":1,"count":1},{"kind":"matched","key":1,"count":2}]}"#
    #expect(try #require(SharedCounts(json: text)).entries.count == 1)
  }
}
