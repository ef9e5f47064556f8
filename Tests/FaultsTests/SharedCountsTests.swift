import FaultModel
import HTTPMessage
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
  private static func pass(from one: FaultPlan, to other: FaultPlan, startedAfter start: Int = 0) throws {
    let counts = try #require(one.ruleCounters.takeUnannounced(startedAfter: start))
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
    #expect(one.ruleCounters.takeUnannounced(startedAfter: 0) == nil, "what was taken is not taken again")
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
  @Test(arguments: [
    (executed: [4], counts: false), (executed: [4, 5], counts: true), (executed: [5, 6], counts: true),
  ])
  func reset(executed: [Int], counts: Bool) throws {
    let rule = Rule.unavailable("a", trigger: Trigger(first: 1))
    let (one, other) = (Self.plan([rule]), Self.plan([rule]))
    other.ruleCounters.setRequest(5)
    other.ruleCounters.reset()
    for request in executed {
      one.ruleCounters.setRequest(request)
      if request == 5 { one.ruleCounters.reset() }
    }
    let magic = EngineFixture { $0.deviceToken = Self.token }
    #expect(one.fires() && one.fires(magic))
    try Self.pass(from: one, to: other)
    #expect(other.fires() == !counts)
    #expect(other.fires(magic) == !counts)
  }

  /// What a server counts that was started after a reset, which it did not execute.
  @Test func laterServer() throws {
    let (one, other) = (Self.plan(), Self.plan())
    other.ruleCounters.setRequest(5)
    other.ruleCounters.reset()
    #expect((0..<2).allSatisfy { _ in one.fires() })
    try Self.pass(from: one, to: other, startedAfter: 7)
    #expect(!other.fires())
    try Self.pass(from: other, to: one)
    #expect(!one.fires())
  }

  /// The number of a connection means nothing to another server.
  @Test func countsOfConnectionsAreNotAnnounced() {
    let sequence = Action.sequence(key: .connection, steps: [.dropHeader(name: "apns-id")], onEnd: .stay)
    let plan = Self.plan([
      .unavailable("a", trigger: Trigger(first: 1, countKey: .connection)), Rule(name: "b", action: sequence),
    ])
    for _ in 0..<2 { _ = plan.fires() }
    #expect(plan.ruleCounters.takeUnannounced(startedAfter: 0) == nil)
  }

  /// What was counted before a reset or a change of the rule is not announced.
  @Test func outdatedCountsAreNotAnnounced() {
    let plan = Self.plan()
    #expect(plan.fires())
    plan.ruleCounters.reset()
    #expect(plan.ruleCounters.takeUnannounced(startedAfter: 0) == nil)
    #expect(plan.fires())
    _ = FaultPlan([.unavailable("b")], ruleCounters: plan.ruleCounters)
    #expect(plan.ruleCounters.takeUnannounced(startedAfter: 0) == nil)
  }

  /// A rule that this server does not have, and counts of a rule that was added by a later request.
  @Test func unknownAndNewerRules() throws {
    let (one, other) = (Self.plan(), Self.plan([]))
    #expect(one.fires())
    try Self.pass(from: one, to: other)
    other.ruleCounters.setRequest(7)
    let added = FaultPlan([Self.twice], ruleCounters: other.ruleCounters)
    #expect(one.fires())
    try Self.pass(from: one, to: added)
    #expect((0..<3).map { _ in added.fires() } == [true, true, false])
  }

  /// A server alone collects nothing, and a server whose store fails not without limit.
  @Test func collectingIsBounded() throws {
    let alone = Self.plan(isShared: false)
    #expect(alone.fires())
    #expect(alone.ruleCounters.takeUnannounced(startedAfter: 0) == nil)
    let plan = Self.plan([.unavailable("a", trigger: Trigger(first: 1, countKey: .deviceToken))])
    var traffic = EngineFixture().traffic
    for number in 0..<(RuleCounter.keyLimit + 10) {
      traffic.push?.request.headers.setDeviceToken(EngineFixture.deviceToken(number))
      _ = plan.decide(traffic, at: .request, now: 0)
    }
    #expect(
      try #require(plan.ruleCounters.takeUnannounced(startedAfter: 0)).rules.first?.counts.count == RuleCounter.keyLimit
    )
  }

  @Test(arguments: [
    "", "{", "{}", "[1]", "[{}]", #"[{"rule":null,"profile":null,"occurrence":0,"since":1}]"#,
    list(rule: "5", matched: "[1,1]"), list(matched: "[1]"), list(matched: "[1,0]"), list(matched: "[1,-5]"),
    list(matched: "[1,9223372036854775807]"), list(matched: #"["1",1]"#),
  ])
  func invalidText(text: String) { #expect(SharedCounts(json: text) == nil) }

  @Test func validText() {
    #expect(SharedCounts(json: Self.list(matched: "[-1,1,2,2]"))?.rules.first?.counts.count == 2)
  }

  private static func list(rule: String = #""a""#, matched: String) -> String {
    #"[{"rule":\#(rule),"profile":null,"occurrence":0,"since":1,"matched":\#(matched),"injected":[],"steps":[]}]"#
  }
}
