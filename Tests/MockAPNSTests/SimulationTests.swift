@testable import MockAPNS
import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import APNSMockNotation
import Testing

@Suite struct SimulationTests {
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
      ([at(.request, .hang(for: nil, endWith: .close))], ["hang": 500], [:], ["hang": 10]),
      ([at(.response, .loseResponse(endWith: .nothing), Trigger(first: 3))], ["200": 497, "lose_answer": 3], [:], [:]),
      ([at(.response, .splitBody)], ["200": 500], ["split_body": 500], [:]),
      (
        [at(.request, .goAway(.init()), Trigger(every: 50))], ["200": 490, "goaway": 10], [:], ["goaway": 10]
      ),
      (
        [at(.request, .goAway(.init(lastStream: .this)), Trigger(every: 50))], ["200": 500], [:], ["goaway": 10]
      ),
      (
        [at(.request, .resetConnection(afterAccepting: true), Trigger(every: 50))],
        ["200": 490, "reset_connection": 10], [:], ["reset_connection": 10]
      ),
      // A delay or a stall that ends with the answer is not an outcome.
      ([at(.request, .hang(for: .seconds(1), endWith: .answer))], ["200": 500], ["hang": 500], [:]),
      ([at(.tls, .stall(for: .seconds(1), endWith: .answer))], ["200": 500], ["stall": 10], [:]),
      ([at(.tls, .stall(for: .seconds(1), endWith: .nothing))], ["stall": 10, "unsent": 490], [:], [:]),
      (
        [at(.settings, .settings(.init(maxConcurrentStreams: 0)))], ["idle_timeout": 500], ["settings": 500],
        ["idle_timeout": 500]
      ),
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

  /// Three hours: the provider token expires twice, and each time on one connection, which is then used no more.
  @Test func renewsTokensForHours() {
    let result = Self.run([]) { ($0.pushes, $0.rate) = (10_000, 1) }
    #expect(Self.counts(result.outcomes) == ["200": 9998, "403 ExpiredProviderToken": 2])
    #expect(Self.counts(result.connectionEnds) == ["ExpiredProviderToken": 2])
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
        profile test, seed 7: 500 pushes, 10 connections
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
        == #"{"profile":"test","seed":7,"pushes":500,"connections":10,"outcomes":{"200":375,"503 ServiceUnavailable":125},"#
        + #""additions":{"delay":375},"connection_ends":{},"rules":{"down":125,"rule":375}}"#)
  }

  /// A row of the table of actions that last: one connection, ten pushes a second.
  struct Lasting: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var rules: [Rule]
    var settings: [APNSSetting: String] = [:]
    var pushes = 40
    var outcomes: [String: Int]
    var ends: [String: Int] = [:]
    var connections = 1
  }

  static let late = at(.response, .delay(.fixed(.milliseconds(250))))

  /// Rejects every tenth push of a connection, before the others that are delayed.
  static let tenth = Rule(
    name: "tenth", trigger: Trigger(every: 10, countKey: .connection), action: .answer(429))

  @Test(
    arguments: [
      Lasting(
        testDescription: "a connection drains for a second: pushes 0 to 9; the next ones are on connections that drain",
        rules: [
          at(
            .connection, .respondThenShutDown(for: .milliseconds(950), respond: .init(status: 503, reason: "Shutdown")))
        ],
        outcomes: ["503 Shutdown": 40], ends: ["drain": 3], connections: 4),
      Lasting(
        testDescription: "one that drains once, from 1 s to 1.95 s",
        rules: [
          at(
            .connection, .respondThenShutDown(for: .milliseconds(950), respond: .init(status: 503, reason: "Shutdown")),
            Trigger(window: .init(after: .milliseconds(1050), length: .milliseconds(500))))
        ], outcomes: ["200": 31, "503 Shutdown": 9], ends: ["drain": 1], connections: 2),
      Lasting(
        testDescription: "delayed pushes of a connection that closes have no response",
        rules: [at(.connection, .close, Trigger(afterStreams: 10)), late],
        outcomes: ["200": 28, "close": 12], ends: ["close": 4], connections: 4),
      Lasting(
        testDescription: "delayed pushes of a connection with GOAWAY do",
        rules: [at(.connection, .goAway(.init(lastStream: .this)), Trigger(afterStreams: 10)), late],
        outcomes: ["200": 40], ends: ["goaway": 4], connections: 4),
      Lasting(
        testDescription: "unless it closes before",
        rules: [
          at(
            .connection, .goAway(.init(lastStream: .this, closeAfter: .milliseconds(100))), Trigger(afterStreams: 10)),
          late,
        ], outcomes: ["200": 32, "goaway": 8], ends: ["goaway": 4], connections: 4),
      Lasting(
        testDescription:
          "a rejection refuses the other streams, and the next ones follow one by one until one is accepted",
        rules: [tenth, late], settings: [.throttleOn4xx: "true"],
        outcomes: ["200": 30, "429": 4, "REFUSED_STREAM": 6]),
      Lasting(
        testDescription: "a limit of one stream: each push waits for the last one",
        rules: [at(.settings, .settings(.init(maxConcurrentStreams: 1))), late], outcomes: ["200": 40]),
      Lasting(
        testDescription: "the delay of another rule lasts until `max_active` allows the next",
        rules: [
          Rule(
            name: "held", trigger: Trigger(maxActive: 3),
            action: .hang(for: .milliseconds(950), endWith: .resetStream))
        ], outcomes: ["200": 28, "hang": 12]),
      Lasting(
        testDescription: "GOAWAY after five errors", rules: [at(.request, .answer(500))],
        settings: [.errorsBeforeGoaway: "5"], outcomes: ["500": 40], ends: ["errors_before_goaway": 8], connections: 8),
      Lasting(
        testDescription: "an idle connection",
        rules: [], settings: [.idleTimeout: "30ms"], outcomes: ["200": 40], ends: ["idle_timeout": 39], connections: 40),
      Lasting(
        testDescription: "connections that close at once: each costs the push for which it was opened",
        rules: [at(.connection, .close)], outcomes: ["close": 40], ends: ["close": 40], connections: 40),
      Lasting(
        testDescription: "a silent connection, until it is closed",
        rules: [at(.connection, .silence(for: .milliseconds(450)), Trigger(afterStreams: 10))],
        outcomes: ["200": 30, "silence": 10], ends: ["silence": 3], connections: 3),
    ] as [Lasting])
  func lastingActions(row: Lasting) {
    var load = Simulation.Load()
    (load.pushes, load.connections, load.rate) = (row.pushes, 1, 10)
    let profile = Profile(name: "test", settings: row.settings, rules: row.rules)
    let result = Simulation(profile: profile, seed: 1, load: load).run()
    #expect(Self.counts(result.outcomes) == row.outcomes)
    #expect(Self.counts(result.connectionEnds) == row.ends)
    #expect(result.connections == row.connections)
  }

  /// One push a minute on one connection, which a rule silences after 30 seconds without a push.
  @Test(
    arguments: [
      (Duration.seconds(20), ["200": 10], 9), (nil, ["200": 1, "silence": 9], 1),
    ] as [(Duration?, [String: Int], Int)])
  func idleConnections(time: Duration?, outcomes: [String: Int], ends: Int) {
    let rule = Rule(
      name: "idle", injectionPoint: .connection, condition: Condition([.init(.idle, .between(above: 30, below: nil))]),
      action: .silence(for: time))
    var load = Simulation.Load()
    (load.pushes, load.connections, load.rate) = (10, 1, 1 / 60.0)
    let result = Simulation(profile: Profile(name: "test", rules: [rule]), seed: 1, load: load).run()
    #expect(Self.counts(result.outcomes) == outcomes)
    #expect(result.connectionEnds.map(\.count) == [ends])
    #expect(result.rules.map(\.count) == [ends])
  }

  /// Rules that name an instant in each nanosecond end the simulation all the same.
  @Test func endlessEvaluations() {
    let rule = Self.at(
      .connection, .ignorePings(for: .zero), Trigger(window: .init(length: .nanoseconds(1), every: .nanoseconds(1))))
    let stall = Self.at(.request, .hang(for: nil, endWith: .nothing))
    let result = Self.run([rule, stall]) { ($0.pushes, $0.connections) = (5, 1) }
    #expect(Self.counts(result.outcomes) == ["hang": 5])
  }
}

extension Action {
  fileprivate static func answer(_ status: Int) -> Action { .respond(Response(status: status, reason: nil)) }
}

extension Rule {
  /// Returns a rule that responds with 503.
  fileprivate static func unavailable(
    _ name: String = "rule", when tests: [Condition.Test] = [], trigger: Trigger = Trigger()
  ) -> Rule {
    Rule(
      name: name, condition: Condition(tests), trigger: trigger,
      action: .respond(Action.Response(status: 503, reason: "ServiceUnavailable")))
  }
}
