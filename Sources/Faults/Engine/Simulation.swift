internal import APNSRules
internal import Foundation
internal import HTTPMessage
internal import Notation

/// Sends made-up pushes through a profile without a network: what its probabilities and counts come to.
///
/// The pushes are good, all different, go to several device tokens in turn over several connections, and come at a
/// steady rate by a clock of their own. The provider is a simple one: it sends nothing twice, opens a connection anew
/// when it ended, and makes a new provider token when it is told that its own is too old.
public struct Simulation: Sendable {
  /// What is sent.
  public struct Traffic: Sendable {
    /// How many pushes, at least none.
    public var pushes = 10_000
    /// To how many device tokens, at least 1.
    public var devices = 1000
    /// Over how many connections, at least 1.
    public var connections = 10
    /// How many a second, above 0.
    public var rate = 100.0
    /// `apns-topic`.
    public var topic = "com.example.app"
    /// `apns-push-type`.
    public var pushType = "alert"
    /// `apns-priority`.
    public var priority = "10"
    /// Members that stand in the payload beside a number that makes each push another one: `"aps":{"alert":"Hello"}`.
    public var payloadMembers = #""aps":{"alert":"Hello"}"#

    /// Ten thousand alerts to a thousand devices within a hundred seconds.
    public init() {}
  }

  private let profile: Profile
  private let seed: UInt64
  private let traffic: Traffic

  /// A run of a profile.
  public init(profile: Profile, seed: UInt64, traffic: Traffic = Traffic()) {
    self.profile = profile
    self.seed = seed
    self.traffic = traffic
  }

  /// Sends them all. The same seed, profile and traffic give the same result.
  public func run() -> SimulationResult {
    var run = SimulationRun(profile: profile, seed: seed, traffic: traffic)
    for number in 0..<max(traffic.pushes, 0) { run.send(number) }
    return run.result
  }
}

/// One run, half way.
private struct SimulationRun {
  private let profile: Profile
  private let traffic: Simulation.Traffic
  private let plan: FaultPlan
  private let tallies = Tallies()
  private let rulebook: Rulebook
  private var buckets: DeviceRateBuckets?
  private let keys = KeyRing(
    version: 1, keys: [TrustedKey(keyID: "MOCKKEY001", teamID: "MOCKTEAM01", verifies: { _, _, _ in true })])
  private var connections: [Connection?]
  private var opened: UInt64 = 0
  private var authorization = ""
  private var outcomes: [String: Int] = [:]
  private var additions: [String: Int] = [:]
  private var ends: [String: Int] = [:]

  private struct Connection {
    var traffic: Traffic.Connection
    var standing = ConnectionStanding()
    let openedAt: Int64
    var lastPush: Int64

    /// The connection `now`, so long after its last push.
    func traffic(at now: Int64) -> Traffic.Connection {
      var traffic = traffic
      traffic.age = now - openedAt
      traffic.idle = now - lastPush
      return traffic
    }
  }

  /// Whether a rule depends on the age or idle time of a connection.
  private let hasTimedRules: Bool

  /// 2026-01-01T00:00:00Z, in milliseconds.
  private static let beginning: Int64 = 1_767_225_600_000
  private static let client = "127.0.0.1"
  private static let serverName = "api.sandbox.push.apple.com"

  init(profile: Profile, seed: UInt64, traffic: Simulation.Traffic) {
    self.profile = profile
    self.traffic = traffic
    plan = FaultPlan(profile: profile, seed: seed, activatedAt: 0, tallies: tallies)
    hasTimedRules = profile.rules.contains { $0.moment == .connection && $0.condition.dependsOnTime }
    var settings = APNSSettings()
    // What cannot be set was refused when the profile was read.
    for (setting, value) in profile.settings { try? settings.set(setting, to: value) }
    rulebook = Rulebook(settings: settings)
    buckets = settings.deviceRate.map { DeviceRateBuckets(rate: $0) }
    connections = Array(repeating: nil, count: min(max(traffic.connections, 1), 100_000))
    renewToken(at: 0)
  }

  var result: SimulationResult {
    SimulationResult(
      profile: profile.name, seed: plan.seed, pushes: max(traffic.pushes, 0),
      outcomes: SimulationResult.sorted(outcomes), additions: SimulationResult.sorted(additions),
      connectionEnds: SimulationResult.sorted(ends),
      rules: tallies.explanations.map { SimulationResult.Count(name: $0.rule, count: $0.fired) })
  }

  mutating func send(_ number: Int) {
    let now = Int64(clamping: Duration.seconds(Double(number) / max(traffic.rate, 0.001)).nanoseconds)
    let lane = number % connections.count
    if hasTimedRules, let idle = connections[lane], isEndedByRule(idle, at: now) { connections[lane] = nil }
    guard var connection = connections[lane] ?? open(now: now) else { return }
    connection.lastPush = now
    connection.traffic.streamsOpened += 1
    connections[lane] = answer(number, on: &connection, now: now) ? connection : nil
  }

  /// A new connection; nil if a fault was in its way, which is then what became of the push.
  private mutating func open(now: Int64) -> Connection? {
    opened += 1
    var connection = Connection(
      traffic: Traffic.Connection(number: opened, client: Self.client), openedAt: now, lastPush: now)
    for moment in [Moment.accept, .tls, .settings] {
      if moment == .tls { connection.traffic.serverName = Self.serverName }
      let decision = plan.decide(Traffic(connection: connection.traffic), at: moment, now: now)
      note(decision)
      if let outcome = decision.outcome, outcome.action != .pass {
        outcomes[outcome.action.name.rawValue, default: 0] += 1
        return nil
      }
    }
    return connection
  }

  /// - Returns: whether the connection is still good.
  private mutating func answer(_ number: Int, on connection: inout Connection, now: Int64) -> Bool {
    let push = push(number, on: &connection, now: now)
    let decision = plan.decide(Traffic(connection: connection.traffic, push: push), at: .request, now: now)
    note(decision)
    var end = decision.outcome?.action ?? .pass
    if end == .pass || end.isAnswer {
      let answer = answer(of: push.verdict, end)
      let later = plan.decide(
        Traffic(connection: connection.traffic, push: push, answer: answer), at: .response, now: now,
        excludingOutcomes: end != .pass)
      note(later)
      if let action = later.outcome?.action { end = action }
      if answer.reason == Reason.expiredProviderToken.text { renewToken(at: now) }
      outcomes[end == .pass || end.isAnswer ? answer.text : end.name.rawValue, default: 0] += 1
    } else {
      outcomes[end.name.rawValue, default: 0] += 1
    }
    if end.endsConnection || decision.outcome?.followedBy != nil { return false }
    return !isEndedByRule(connection, at: now)
  }

  /// Evaluates the rules of `connection`, and returns whether one of them ends it.
  private mutating func isEndedByRule(_ connection: Connection, at now: Int64) -> Bool {
    let decision = plan.decide(Traffic(connection: connection.traffic(at: now)), at: .connection, now: now)
    note(decision)
    guard let outcome = decision.outcome, outcome.action != .pass else { return false }
    ends[outcome.action.name.rawValue, default: 0] += 1
    return true
  }

  private func answer(of verdict: Verdict, _ action: Action) -> Traffic.Answer {
    if case .respond(let answer) = action { return Traffic.Answer(status: answer.status, reason: answer.reason) }
    return Traffic.Answer(status: verdict.status, reason: verdict.reason?.text)
  }

  /// Counts what is added, and takes no time: each push that is held is finished before the next one comes.
  private mutating func note(_ decision: Decision) {
    for injection in decision.additions { additions[injection.action.name.rawValue, default: 0] += 1 }
    for injection in decision.additions + (decision.outcome.map { [$0] } ?? []) { tallies.release(injection) }
  }

  // MARK: - Pushes

  private mutating func push(_ number: Int, on connection: inout Connection, now: Int64) -> Traffic.Push {
    let devices = max(traffic.devices, 1)
    let index = number / connections.count % devices
    // APNs refuses 64 zeros, so the first device has the number after the last.
    let device = String(index == 0 ? devices : index, radix: 16)
    let token = String(repeating: "0", count: 64 - device.utf8.count) + device
    let request = HTTPRequest(
      headers: HeaderList([
        (":method", "POST"), (":scheme", "https"), (":authority", Self.serverName), (":path", "/3/device/\(token)"),
        ("authorization", authorization), ("apns-topic", traffic.topic), ("apns-push-type", traffic.pushType),
        ("apns-priority", traffic.priority),
      ]), body: Array("{\(traffic.payloadMembers),\"number\":\(number)}".utf8))
    let time = Self.beginning + now / 1_000_000
    var verdict = rulebook.judge(
      request, standing: &connection.standing, keys: keys, devices: DeviceTable(), now: time)
    if verdict.isAccepted, let rate = buckets?.rate {
      let isAdmitted = Array(token.utf8).withUnsafeBytes { buckets?.admit($0, now: now) ?? true }
      if !isAdmitted { verdict.refuse(over: rate) }
    }
    return Traffic.Push(
      request: request, verdict: verdict, key: PushKey(request, verdict.facts, defaultTopic: nil), now: time)
  }

  private mutating func renewToken(at now: Int64) {
    let issuedAt = Self.beginning / 1000 + now / 1_000_000_000
    authorization =
      "bearer " + Self.base64URL(#"{"alg":"ES256","kid":"MOCKKEY001"}"#) + "."
      + Self.base64URL(#"{"iss":"MOCKTEAM01","iat":\#(issuedAt)}"#) + "." + String(repeating: "A", count: 86)
  }

  private static func base64URL(_ text: String) -> String {
    Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }
}

extension Traffic.Answer {
  fileprivate var text: String { reason.map { "\(status) \($0)" } ?? String(status) }
}

extension Action {
  fileprivate var isAnswer: Bool { name == .respond }

  fileprivate var endsConnection: Bool {
    switch self {
    case .resetConnection, .goAway, .close, .drain: true
    default: false
    }
  }
}
