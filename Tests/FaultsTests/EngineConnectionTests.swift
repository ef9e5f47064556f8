import APNSMockFaultModel
import APNSMockFaults
import Testing

/// The injection point `connection`: a rule is evaluated once per connection, or once per opening of its window.
@Suite struct EngineConnectionTests {
  static let blips = Trigger.Window(length: .seconds(5), every: .seconds(60))

  @Test(
    arguments: [
      (Trigger(), [(0, 1, 1, true), (1, 1, 5, false), (99, 1, 5, false), (99, 2, 0, true)]),
      (Trigger(afterStreams: 20), [(0, 1, 19, false), (1, 1, 20, true), (2, 1, 40, false), (3, 2, 25, true)]),
      (
        Trigger(window: blips),
        [
          (0, 1, 1, false), (60, 1, 1, true), (61, 1, 1, false), (61, 2, 1, true), (66, 3, 1, false), (120, 1, 1, true),
          (124, 1, 1, false), (185, 1, 1, false), (241, 1, 1, true),
        ]
      ),
      (
        Trigger(window: .init(every: .seconds(10))),
        [(9, 1, 1, false), (10, 1, 1, true), (19, 1, 1, false), (20, 1, 1, true), (45, 1, 1, true)]
      ),
      (Trigger(every: 2), [(0, 1, 1, false), (0, 1, 1, false), (0, 2, 1, true), (0, 3, 1, false), (0, 4, 1, true)]),
      (Trigger(times: 1), [(0, 1, 1, true), (0, 2, 1, false)]),
      (Trigger(probability: .fixed(0)), [(0, 1, 1, false), (1, 1, 1, false)]),
    ] as [(Trigger, [(Double, UInt64, Int, Bool)])])
  func chances(trigger: Trigger, evaluations: [(at: Double, connection: UInt64, streams: Int, fires: Bool)]) {
    let plan = FaultPlan([Rule(name: "rule", injectionPoint: .connection, trigger: trigger, action: .close)])
    for look in evaluations {
      let fixture = EngineFixture {
        ($0.connection.number, $0.connection.streamsOpened) = (look.connection, look.streams)
      }
      #expect(plan.fires(fixture, at: .connection, now: .seconds(look.at)) == look.fires, "at \(look.at)")
    }
  }

  /// A rule that is activated again is evaluated again on open connections.
  @Test func earlierConnectionsDrawAfterActivation() {
    let ruleCounters = RuleCounters()
    let profile = Profile(name: "test", rules: [Rule(name: "rule", injectionPoint: .connection, action: .close)])
    let connection = EngineFixture().connecting
    for activation in [Int64.seconds(1), .seconds(1), .seconds(5)] {
      let plan = FaultPlan(profile: profile, seed: 1, activatedAt: activation, ruleCounters: ruleCounters)
      let isFirst = ruleCounters.explain("rule")?.fired == (activation == .seconds(1) ? 0 : 1)
      #expect(plan.decide(connection, at: .connection, now: .seconds(9)).isEmpty != isFirst)
    }
  }

  /// The random draw belongs to the connection and the opening, so evaluating more often changes nothing.
  @Test func drawsOncePerOpening() {
    let trigger = Trigger(probability: .fixed(0.5), window: Self.blips)
    func fired(looksPerOpening: Int) -> [Bool] {
      let plan = FaultPlan([Rule(name: "rule", injectionPoint: .connection, trigger: trigger, action: .close)])
      return (1...40).flatMap { opening in
        (1...5 as ClosedRange<UInt64>).map { connection in
          (0..<looksPerOpening).contains { look in
            plan.fires(
              EngineFixture { $0.connection.number = connection }, at: .connection,
              now: .seconds(Double(opening) * 60 + Double(look)))
          }
        }
      }
    }
    let once = fired(looksPerOpening: 1)
    #expect(once == fired(looksPerOpening: 4))
    #expect((60...140).contains(once.count { $0 }))
    #expect(Set((0..<5).map { connection in stride(from: connection, to: 200, by: 5).map { once[$0] } }).count == 5)
  }

  @Test(
    arguments: [
      ([], 0, nil), ([nil], 0, nil), ([.init(after: .seconds(30), length: .seconds(10))], 0, 30),
      ([.init(after: .seconds(30), length: .seconds(10))], 30, nil), ([.init(length: .seconds(10))], 0, nil),
      ([blips], 0, 60), ([blips], 59.5, 60), ([blips], 60, 120), ([blips], 61, 120), ([blips], 6000, 6060),
      ([.init(after: .seconds(10), every: .seconds(60))], 0, 10),
      ([.init(after: .seconds(10), every: .seconds(60))], 10, 70),
      ([nil, blips, .init(after: .seconds(30))], 0, 30), ([blips, .init(after: .seconds(30))], 40, 60),
    ] as [([Trigger.Window?], Double, Double?)])
  func nextEvaluation(windows: [Trigger.Window?], after now: Double, expected: Double?) {
    let rules = windows.enumerated().map { number, window in
      Rule(name: "rule\(number)", injectionPoint: .connection, trigger: Trigger(window: window), action: .close)
    }
    #expect(
      FaultPlan(rules).nextEvaluation(after: .seconds(now), for: Self.connection) == expected.map { .seconds($0) })
    #expect(FaultPlan(rules, isPaused: true).nextEvaluation(after: .seconds(now), for: Self.connection) == nil)
    let requests = rules.map { rule in
      var rule = rule
      rule.injectionPoint = .request
      return rule
    }
    #expect(FaultPlan(requests).nextEvaluation(after: .seconds(now), for: Self.connection) == nil)
  }

  static let connection = EngineFixture().connection

  /// The bounds of a rule on age and idle time, the connection's age and idle time in seconds, whether the rule
  /// fires, and the seconds until it must be evaluated again.
  @Test(
    arguments: [
      ([.init(.idle, .between(above: 600, below: nil))], [], 5, 0, false, 600),
      ([.init(.idle, .between(above: 600, below: nil))], [], 1000, 599, false, 1),
      ([.init(.idle, .between(above: 600, below: nil))], [], 1000, 600, false, 0),
      ([.init(.idle, .between(above: 600, below: nil))], [], 1000, 600.001, true, nil),
      ([.init(.age, .between(above: 60, below: 90))], [], 70, 70, true, 20),
      ([.init(.age, .between(above: 60, below: 90))], [], 90, 70, false, 0),
      (
        [.init(.age, .between(above: 60, below: nil)), .init(.idle, .between(above: 2, below: nil))], [], 70, 1, false,
        1
      ),
      ([], [.init(.idle, .between(above: nil, below: 3))], 70, 1, false, 2),
      ([], [.init(.idle, .between(above: nil, below: 3))], 70, 4, true, nil),
      ([.init(.idle, .between(above: 1e300, below: nil))], [], 1, 1, false, Double(Int64.max) / 1e9 - 1),
    ] as [([Condition.Test], [Condition.Test], Double, Double, Bool, Double?)])
  func ageAndIdleTime(
    tests: [Condition.Test], except: [Condition.Test], age: Double, idle: Double, fires: Bool, again: Double?
  ) {
    let condition = Condition(tests, exceptions: except.isEmpty ? [] : [Condition(except)])
    let plan = FaultPlan([Rule(name: "x", injectionPoint: .connection, condition: condition, action: .close)])
    let fixture = EngineFixture {
      $0.connection.age = .seconds(age)
      $0.connection.idle = .seconds(idle)
    }
    #expect(plan.fires(fixture, at: .connection) == fires)
    let next = plan.nextEvaluation(after: 0, for: fixture.connection).map { Double($0) / 1e9 }
    if let again {
      #expect(next.map { $0 >= again && $0 < again + 0.002 } == true)
    } else {
      #expect(next == nil)
    }
  }

  /// Windows of added rules begin with the activation of the rule.
  @Test func activationOfAddedRules() {
    let rule = Rule(
      name: "mine", injectionPoint: .connection,
      trigger: Trigger(window: .init(after: .seconds(10), length: .seconds(5))),
      action: .close)
    let plan = FaultPlan(
      profile: Profile(name: "healthy"), addedRules: [rule], seed: 1, activatedAt: 0,
      addedRulesActivatedAt: ["mine": .seconds(100)], ruleCounters: RuleCounters())
    #expect(!plan.fires(at: .connection, now: .seconds(12)))
    #expect(plan.nextEvaluation(after: .seconds(12), for: Self.connection) == .seconds(110))
    #expect(plan.fires(at: .connection, now: .seconds(110)))
  }
}
