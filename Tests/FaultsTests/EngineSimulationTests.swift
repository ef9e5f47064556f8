import APNSRules
import FaultModel
import Faults
import Notation
import Testing

@Suite struct EngineSimulationTests {
  static func run(
    _ rules: [Rule], seed: UInt64 = 7, _ change: (inout Simulation.Load) -> Void = { _ in }
  ) -> SimulationResult {
    var load = Simulation.Load()
    load.pushes = 500
    change(&load)
    return Simulation(profile: Profile(name: "test", rules: rules), seed: seed, load: load).run()
  }

  static func counts(_ counts: [SimulationResult.Count]) -> [String: Int] {
    Dictionary(uniqueKeysWithValues: counts.map { ($0.name, $0.count) })
  }

  static func at(_ injectionPoint: InjectionPoint, _ action: Action, _ trigger: Trigger = Trigger()) -> Rule {
    Rule(name: "rule", injectionPoint: injectionPoint, trigger: trigger, action: action)
  }

  @Test(
    arguments: [
      ([], ["200": 500], [:], [:]),
      ([.unavailable("rule")], ["503 ServiceUnavailable": 500], [:], [:]),
      ([.unavailable("rule", trigger: Trigger(every: 5))], ["200": 400, "503 ServiceUnavailable": 100], [:], [:]),
      ([at(.request, .answer(418))], ["418": 500], [:], [:]), ([at(.request, .pass)], ["200": 500], [:], [:]),
      ([at(.request, .delay(.fixed(.seconds(1))))], ["200": 500], ["delay": 500], [:]),
      ([at(.request, .hang(for: nil, endWith: .close))], ["hang": 500], [:], [:]),
      ([at(.response, .loseResponse(endWith: .nothing), Trigger(first: 3))], ["200": 497, "lose_answer": 3], [:], [:]),
      ([at(.response, .splitBody)], ["200": 500], ["split_body": 500], [:]),
      ([at(.request, .goAway(.init()), Trigger(every: 50))], ["200": 490, "goaway": 10], [:], [:]),
      ([at(.accept, .refuse, Trigger(first: 4))], ["200": 496, "refuse": 4], [:], [:]),
      ([at(.tls, .stall(for: nil, endWith: .close), Trigger(first: 4))], ["200": 496, "stall": 4], [:], [:]),
      ([at(.tls, .certificate(.expired))], ["200": 500], ["certificate": 10], [:]),
      ([at(.connection, .close, Trigger(afterStreams: 10))], ["200": 500], [:], ["close": 50]),
    ] as [([Rule], [String: Int], [String: Int], [String: Int])])
  func outcomes(rules: [Rule], outcomes: [String: Int], additions: [String: Int], ends: [String: Int]) {
    let result = Self.run(rules)
    #expect(Self.counts(result.outcomes) == outcomes)
    #expect(Self.counts(result.additions) == additions)
    #expect(Self.counts(result.connectionEnds) == ends)
    #expect(result.rules.map(\.name) == rules.map(\.name))
    #expect(result.pushes == 500)
  }

  static let menu = Rule(
    name: "menu", trigger: Trigger(probability: .fixed(0.3)),
    action: .choose([.init(weight: 1, action: .answer(500)), .init(weight: 1, action: .resetStream(code: 2))]))

  @Test func seedDecides() {
    let result = Self.run([Self.menu])
    #expect(result == Self.run([Self.menu]))
    #expect(result.outcomes != Self.run([Self.menu], seed: 8).outcomes)
    #expect(result.outcomes.reduce(0) { $0 + $1.count } == 500)
    #expect(result.outcomes.first?.name == "200")
    #expect(Set(result.outcomes.map(\.name)) == ["200", "500", "reset_stream"])
  }

  /// Simulated time advances, and device tokens and connections alternate.
  @Test func traffic() {
    let late = Rule.unavailable("rule", trigger: Trigger(window: .init(after: .seconds(4))))
    #expect(Self.counts(Self.run([late]).outcomes) == ["200": 400, "503 ServiceUnavailable": 100])
    let sticky = Rule.unavailable("rule", trigger: Trigger(first: 1, countKey: .deviceToken))
    #expect(Self.run([sticky]) { $0.devices = 20 }.rules.map(\.count) == [20])
    #expect(Self.run([Self.at(.settings, .settings(.init()))]) { $0.connections = 3 }.rules.map(\.count) == [3])
    let shop = Rule.unavailable("rule", when: [Condition.Test(.topic, .equals("com.acme.shop"))])
    #expect(Self.run([shop]).rules.map(\.count) == [0])
    #expect(Self.run([shop]) { $0.topic = "com.acme.shop" }.rules.map(\.count) == [500])
    let badge = Rule.unavailable("rule", when: [Condition.Test(.payload(pointer: "/aps/badge"), .equals("3"))])
    #expect(Self.run([badge]) { $0.payloadMembers = #""aps":{"badge":3}"# }.rules.map(\.count) == [500])
  }

  /// A simulated provider that renews its token on demand has one rejection per renewal.
  @Test func renewsTokens() {
    var load = Simulation.Load()
    load.pushes = 1000
    load.connections = 1
    load.rate = 10
    let stale = Rule(
      name: "stale", condition: Condition([Condition.Test(.tokenAge, .between(above: 30, below: nil))]),
      action: .respond(.init(status: 403, reason: "ExpiredProviderToken")))
    let profile = Profile(name: "test", settings: [.tokenUpdateInterval: "30s"], rules: [stale])
    let result = Simulation(profile: profile, seed: 1, load: load).run()
    #expect(Self.counts(result.outcomes) == ["200": 997, "403 ExpiredProviderToken": 3])
  }

  @Test func settingsOfTheProfile() {
    var load = Simulation.Load()
    load.pushes = 100
    load.devices = 1
    let profile = Profile(name: "test", settings: [.deviceRate: "5/100s", .tokenMaxAge: "nonsense"])
    let result = Simulation(profile: profile, seed: 1, load: load).run()
    #expect(Self.counts(result.outcomes) == ["200": 5, "429 TooManyRequests": 95])
  }

  @Test(arguments: [0, -5, 1])
  func extremeNumbers(number: Int) {
    let result = Self.run([Self.menu]) {
      ($0.pushes, $0.devices, $0.connections, $0.rate) = (number, number, number, Double(number))
    }
    #expect(result.outcomes.reduce(0) { $0 + $1.count } == max(0, number))
  }

  @Test func textAndJSON() {
    let result = Self.run([.unavailable("down", trigger: Trigger(every: 4)), Self.at(.request, .delay(.fixed(.zero)))])
    #expect(
      result.text == """
        profile test, seed 7: 500 pushes
        outcomes
          200                     375  75.0%
          503 ServiceUnavailable  125  25.0%
        added
          delay                   375
        rules fired
          down                    125
          rule                    375
        """)
    var writer = JSONWriter()
    result.write(to: &writer)
    #expect(
      String(decoding: writer.bytes, as: UTF8.self)
        == #"{"profile":"test","seed":7,"pushes":500,"outcomes":{"200":375,"503 ServiceUnavailable":125},"#
        + #""additions":{"delay":375},"connection_ends":{},"rules":{"down":125,"rule":375}}"#)
  }

  /// One push a minute on one connection, which a rule ends after 30 seconds without a push.
  @Test func idleConnections() {
    let rule = Rule(
      name: "idle", injectionPoint: .connection, condition: Condition([.init(.idle, .between(above: 30, below: nil))]),
      action: .silence(for: nil))
    var load = Simulation.Load()
    (load.pushes, load.connections, load.rate) = (10, 1, 1 / 60.0)
    let result = Simulation(profile: Profile(name: "test", rules: [rule]), seed: 1, load: load).run()
    #expect(result.connectionEnds.map(\.count) == [9])
    #expect(result.rules.map(\.count) == [9])
  }
}
