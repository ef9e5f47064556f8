package import FaultModel
internal import APNSRules
internal import HTTPMessage
package import Notation

/// A simulation of a profile with generated pushes and without a network, which shows what its probabilities and
/// counts amount to.
///
/// The pushes are valid and all different. They are distributed over several device tokens and connections and sent
/// at a steady rate on a simulated clock. The simulated provider never retries, reopens a connection that ended, and
/// creates a new provider token after `ExpiredProviderToken`.
package struct Simulation: Sendable {
  /// The pushes to send.
  package struct Load: Sendable {
    /// The number of pushes; a negative number means 0.
    package var pushes = 10_000
    /// The number of device tokens, at least 1.
    package var devices = 1000
    /// The number of connections, at least 1.
    package var connections = 10
    /// Pushes per second, above 0.
    package var rate = 100.0
    /// `apns-topic`.
    package var topic = "com.example.app"
    /// `apns-push-type`.
    package var pushType = "alert"
    /// `apns-priority`.
    package var priority = "10"
    /// Members of the payload, to which a number is added that makes each push different: `"aps":{"alert":"Hello"}`.
    package var payloadMembers = #""aps":{"alert":"Hello"}"#

    /// Creates traffic of ten thousand alerts to a thousand devices in a hundred seconds.
    package init() {}
  }

  private let profile: Profile
  private let seed: UInt64
  private let load: Load

  /// Creates a simulation.
  package init(profile: Profile, seed: UInt64, load: Load = Load()) {
    self.profile = profile
    self.seed = seed
    self.load = load
  }

  /// Sends all pushes. The same seed, profile and traffic give the same result.
  package func run() -> SimulationResult {
    var run = SimulationRun(profile: profile, seed: seed, load: load)
    for number in 0..<max(load.pushes, 0) { run.send(number) }
    return run.result
  }
}

/// The state of a running simulation.
private struct SimulationRun {
  private let profile: Profile
  private let load: Simulation.Load
  private let plan: FaultPlan
  private let ruleCounters = RuleCounters()
  private let rulebook: Rulebook
  private var buckets: DeviceRateLimiter?
  private let keys = TrustedKeySet(
    version: 1, keys: [TrustedKey(keyID: "MOCKKEY001", teamID: "MOCKTEAM01", verifies: { _, _, _ in true })])
  private var connections: [Connection?]
  private var opened: UInt64 = 0
  private var authorization = ""
  private var outcomes: [String: Int] = [:]
  private var additions: [String: Int] = [:]
  private var connectionEnds: [String: Int] = [:]

  private struct Connection {
    var traffic: Traffic.Connection
    var authentication = ConnectionAuthentication()
    let openedAt: MonotonicTime
    var lastPush: MonotonicTime

    /// Returns the connection at `now`, with its age and its idle time since the last push.
    func traffic(at now: MonotonicTime) -> Traffic.Connection {
      var traffic = traffic
      traffic.age = now - openedAt
      traffic.idle = now - lastPush
      return traffic
    }
  }

  /// Whether a rule depends on the age or idle time of a connection.
  private let hasTimedRules: Bool

  /// 2026-01-01T00:00:00Z, in milliseconds since 1970.
  private static let startTime: ServerTime = 1_767_225_600_000
  private static let client = "127.0.0.1"
  private static let serverName = "api.sandbox.push.apple.com"

  init(profile: Profile, seed: UInt64, load: Simulation.Load) {
    self.profile = profile
    self.load = load
    plan = FaultPlan(profile: profile, seed: seed, activatedAt: 0, ruleCounters: ruleCounters)
    hasTimedRules = profile.rules.contains { $0.injectionPoint == .connection && $0.condition.dependsOnTime }
    var settings = APNSSettings()
    // Invalid settings were rejected when the profile was read.
    for (setting, value) in profile.settings { try? settings.set(setting, to: value) }
    rulebook = Rulebook(settings: settings)
    buckets = settings.deviceRate.map { DeviceRateLimiter(rate: $0) }
    connections = Array(repeating: nil, count: min(max(load.connections, 1), 100_000))
    renewToken(at: 0)
  }

  var result: SimulationResult {
    SimulationResult(
      profile: profile.name, seed: plan.seed, pushes: max(load.pushes, 0),
      outcomes: SimulationResult.sorted(outcomes), additions: SimulationResult.sorted(additions),
      connectionEnds: SimulationResult.sorted(connectionEnds),
      rules: ruleCounters.explanations.map { SimulationResult.Count(name: $0.rule, count: $0.fired) })
  }

  mutating func send(_ number: Int) {
    let now = Int64(clamping: Duration.seconds(Double(number) / max(load.rate, 0.001)).nanoseconds)
    let lane = number % connections.count
    if hasTimedRules, let idle = connections[lane], isEndedByRule(idle, at: now) { connections[lane] = nil }
    guard var connection = connections[lane] ?? open(now: now) else { return }
    connection.lastPush = now
    connection.traffic.streamsOpened += 1
    connections[lane] = process(number, on: &connection, now: now) ? connection : nil
  }

  /// Opens a connection; returns nil if a fault prevented it, which is then the outcome of the push.
  private mutating func open(now: MonotonicTime) -> Connection? {
    opened += 1
    var connection = Connection(
      traffic: Traffic.Connection(number: opened, client: Self.client), openedAt: now, lastPush: now)
    for injectionPoint in [InjectionPoint.accept, .tls, .settings] {
      if injectionPoint == .tls { connection.traffic.serverName = Self.serverName }
      let decision = plan.decide(Traffic(connection: connection.traffic), at: injectionPoint, now: now)
      count(decision)
      if let injection = decision.decidingInjection, injection.action != .pass {
        outcomes[injection.action.name.rawValue, default: 0] += 1
        return nil
      }
    }
    return connection
  }

  /// Sends a push and counts its outcome.
  ///
  /// - Returns: Whether the connection is still usable.
  private mutating func process(_ number: Int, on connection: inout Connection, now: MonotonicTime) -> Bool {
    let push = push(number, on: &connection, now: now)
    let decision = plan.decide(Traffic(connection: connection.traffic, push: push), at: .request, now: now)
    count(decision)
    var end = decision.decidingInjection?.action ?? .pass
    if end == .pass || end.isResponse {
      let response = response(to: push.verdict, end)
      let responseDecision = plan.decide(
        Traffic(connection: connection.traffic, push: push, response: response), at: .response, now: now,
        additionsOnly: end != .pass)
      count(responseDecision)
      if let action = responseDecision.decidingInjection?.action { end = action }
      if response.reason == Reason.expiredProviderToken.text { renewToken(at: now) }
      outcomes[end == .pass || end.isResponse ? response.text : end.name.rawValue, default: 0] += 1
    } else {
      outcomes[end.name.rawValue, default: 0] += 1
    }
    if end.endsConnection || decision.decidingInjection?.followedBy != nil { return false }
    return !isEndedByRule(connection, at: now)
  }

  /// Evaluates the rules at `connection` and returns whether one of them connectionEnds the connection.
  private mutating func isEndedByRule(_ connection: Connection, at now: MonotonicTime) -> Bool {
    let decision = plan.decide(Traffic(connection: connection.traffic(at: now)), at: .connection, now: now)
    count(decision)
    guard let injection = decision.decidingInjection, injection.action != .pass else { return false }
    connectionEnds[injection.action.name.rawValue, default: 0] += 1
    return true
  }

  private func response(to verdict: Verdict, _ action: Action) -> Traffic.Response {
    if case .respond(let injected) = action {
      return Traffic.Response(status: injected.status, reason: injected.reason)
    }
    return Traffic.Response(status: verdict.status, reason: verdict.reason?.text)
  }

  /// Counts additions and releases delayed pushes immediately: each is finished before the next push.
  private mutating func count(_ decision: [Injection]) {
    for injection in decision.additions { additions[injection.action.name.rawValue, default: 0] += 1 }
    for injection in decision { ruleCounters.release(injection) }
  }

  // MARK: - Pushes

  private mutating func push(_ number: Int, on connection: inout Connection, now: MonotonicTime) -> Traffic.Push {
    let devices = max(load.devices, 1)
    let index = number / connections.count % devices
    // APNs rejects a device token of 64 zeros, so the first device has the number after the last.
    let token = Hexadecimal.text(UInt64(index == 0 ? devices : index), digits: 64)
    let request = HTTPRequest(
      headers: HeaderList([
        (":method", "POST"), (":scheme", "https"), (":authority", Self.serverName), (":path", "/3/device/\(token)"),
        ("authorization", authorization), ("apns-topic", load.topic), ("apns-push-type", load.pushType),
        ("apns-priority", load.priority),
      ]), body: Array("{\(load.payloadMembers),\"number\":\(number)}".utf8))
    let time = Self.startTime + now / 1_000_000
    var verdict = rulebook.validate(
      request, authentication: &connection.authentication, keys: keys, now: time)
    if verdict.isAccepted, let rate = buckets?.rate {
      let isAdmitted = Array(token.utf8).withUnsafeBytes { buckets?.admit($0, now: now) ?? true }
      if !isAdmitted { verdict.reject(over: rate) }
    }
    return Traffic.Push(
      request: request, verdict: verdict, key: PushKey(request, verdict.facts, defaultTopic: nil), receivedAt: time)
  }

  private mutating func renewToken(at now: MonotonicTime) {
    let issuedAt = Self.startTime / 1000 + now / 1_000_000_000
    authorization =
      "bearer " + Base64URL.text(Array(#"{"alg":"ES256","kid":"MOCKKEY001"}"#.utf8)) + "."
      + Base64URL.text(Array(#"{"iss":"MOCKTEAM01","iat":\#(issuedAt)}"#.utf8)) + "."
      + String(repeating: "A", count: 86)
  }
}

extension Traffic.Response {
  fileprivate var text: String { reason.map { "\(status) \($0)" } ?? String(status) }
}

extension Action {
  fileprivate var isResponse: Bool { name == .respond }

  fileprivate var endsConnection: Bool {
    switch self {
    case .resetConnection, .goAway, .close, .respondThenShutDown: true
    default: false
    }
  }
}

/// The result of a simulation.
package struct SimulationResult: Sendable, Equatable {
  /// A count with a name.
  package struct Count: Sendable, Equatable {
    /// The name of what is counted.
    package let name: String
    /// The number of occurrences.
    package let count: Int
  }

  /// The profile's name.
  package let profile: String
  /// The seed of all draws.
  package let seed: UInt64
  /// The number of pushes sent.
  package let pushes: Int
  /// The outcomes of the pushes, the most frequent first: status and reason of the response, or the name of the
  /// action that prevented one. The counts add up to `pushes`.
  package let outcomes: [Count]
  /// The actions added to outcomes or connections, the most frequent first.
  package let additions: [Count]
  /// The actions that ended connections between pushes, the most frequent first.
  package let connectionEnds: [Count]
  /// The number of times each rule fired, in evaluation order.
  package let rules: [Count]

  static func sorted(_ counts: [String: Int]) -> [Count] {
    counts.map { Count(name: $0.key, count: $0.value) }.sorted { ($1.count, $0.name) < ($0.count, $1.name) }
  }

  /// The result as a table for users.
  package var text: String {
    let parts = [
      ("outcomes", outcomes), ("added", additions), ("connections ended", connectionEnds), ("rules fired", rules),
    ]
    let width = parts.flatMap(\.1).reduce(0) { max($0, $1.name.count) }
    let digits = String(pushes).count
    var text = "profile \(profile), seed \(seed): \(pushes) pushes"
    for (title, counts) in parts where !counts.isEmpty {
      text += "\n\(title)"
      for entry in counts {
        let count = String(entry.count)
        text += "\n  " + entry.name + String(repeating: " ", count: width - entry.name.count) + "  "
        text += String(repeating: " ", count: max(0, digits - count.count)) + count
        if title == "outcomes" { text += "  \(Self.percent(entry.count, of: pushes))" }
      }
    }
    return text
  }

  /// Returns a percentage such as `15.3%`.
  private static func percent(_ part: Int, of whole: Int) -> String {
    let tenths = whole > 0 ? (part * 1000 + whole / 2) / whole : 0
    return "\(tenths / 10).\(tenths % 10)%"
  }

  /// Writes the result to `writer` as a JSON object.
  package func write(to writer: inout JSONWriter) {
    write(to: &writer) { _ in }
  }

  /// Writes the result to `writer` as a JSON object, with additional members at its end.
  package func write(to writer: inout JSONWriter, and members: (inout JSONWriter) -> Void) {
    writer.object { writer in
      writer.member("profile", profile)
      writer.member("seed", seed)
      writer.member("pushes", pushes)
      for (name, counts) in [
        ("outcomes", outcomes), ("additions", additions), ("connection_ends", connectionEnds), ("rules", rules),
      ] {
        writer.objectMember(name) { writer in
          for entry in counts { writer.member(entry.name, entry.count) }
        }
      }
      members(&writer)
    }
  }
}
