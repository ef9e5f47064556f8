import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
internal import APNSMockNotation

/// The state of a running simulation.
struct SimulationRun {
  /// What happens on a connection at a later time.
  enum Event {
    case evaluateRules(number: Int)
    case checkIdleTime
    case elapsed(ConnectionStateMachine.FaultTimer, cause: String)
    case closeDraining
  }

  /// One of the provider's connections, which is opened again after it has ended.
  struct Lane {
    var connection: SimulatedConnection?
    /// The pushes that wait for a stream, by number, in order from `firstWaiting`.
    var waiting: [Int] = []
    var firstWaiting = 0
  }

  let profile: Profile
  let load: Simulation.Load
  let plan: FaultPlan
  let ruleCounters = RuleCounters()
  let settings: APNSSettings
  let rulebook: Rulebook
  var deviceRate: DeviceRateLimiter?
  let keys = TrustedKeySet(
    version: 1, keys: [TrustedKey(keyID: "MOCKKEY001", teamID: "MOCKTEAM01", verifies: { _, _, _ in true })])
  let teamUpdates = TeamTokenUpdates()
  var authorization = ""

  var now: MonotonicTime = 0
  var events = SimulatedEvents<(connection: UInt64, event: Event)>()
  var connections: [UInt64: SimulatedConnection] = [:]
  var lanes: [Lane]
  /// The lanes whose waiting pushes may be sent.
  var readyLanes: [Int] = []
  var attempted: UInt64 = 0
  /// The number of pushes without an outcome.
  var unresolved: Int
  /// The number of times for which rules can still be evaluated without a push. A profile may name a window of a
  /// nanosecond.
  var evaluationsLeft = 200_000

  var outcomes: [String: Int] = [:]
  var additions: [String: Int] = [:]
  var connectionEnds: [String: Int] = [:]
  var opened = 0

  /// 2026-01-01T00:00:00Z, in milliseconds since 1970.
  static let startTime: ServerTime = 1_767_225_600_000
  static let client = "127.0.0.1"
  static let serverName = "api.sandbox.push.apple.com"
  init(profile: Profile, seed: UInt64, load: Simulation.Load) {
    self.profile = profile
    self.load = load
    plan = FaultPlan(profile: profile, seed: seed, activatedAt: 0, ruleCounters: ruleCounters)
    var settings = APNSSettings()
    // Invalid settings were rejected when the profile was read.
    for (setting, value) in profile.settings { try? settings.set(setting, to: value) }
    self.settings = settings
    rulebook = Rulebook(settings: settings)
    deviceRate = settings.deviceRate.map { DeviceRateLimiter(rate: $0) }
    lanes = Array(repeating: Lane(), count: min(max(load.connections, 1), 100_000))
    unresolved = max(load.pushes, 0)
    renewToken()
  }

  /// Runs the simulation to its end.
  mutating func result() -> SimulationResult {
    let pushes = unresolved
    for number in 0..<pushes {
      advance(to: Int64(clamping: Duration.seconds(Double(number) / max(load.rate, 0.001)).nanoseconds))
      lanes[number % lanes.count].waiting.append(number)
      readyLanes.append(number % lanes.count)
      sendWaiting()
    }
    while unresolved > 0, events.nextTime != nil { advance() }
    countUnresolved()
    return SimulationResult(
      profile: profile.name, seed: plan.seed, pushes: pushes,
      outcomes: SimulationResult.sorted(outcomes), additions: SimulationResult.sorted(additions),
      connections: opened, connectionEnds: SimulationResult.sorted(connectionEnds),
      rules: ruleCounters.explanations.map { SimulationResult.Count(name: $0.rule, count: $0.fired) })
  }

  // MARK: - Time

  /// Handles all events up to `time`.
  mutating func advance(to time: MonotonicTime) {
    while let next = events.nextTime, next <= time { advance() }
    now = time
  }

  /// Handles the next event.
  mutating func advance() {
    guard let (entry, time) = events.removeFirst() else { return }
    now = time
    guard let connection = connections[entry.connection] else { return }
    handle(entry.event, on: connection)
    sendWaiting()
  }

  mutating func handle(_ event: Event, on connection: SimulatedConnection) {
    switch event {
    case .evaluateRules(let number):
      guard number == connection.evaluation, evaluationsLeft > 0 else { return }
      evaluationsLeft -= 1
      evaluateRules(of: connection)
    case .checkIdleTime:
      guard connection.stateMachine.state == .open(.serving) else { return }
      if now - connection.lastActivity >= settings.idleTimeout.nanoseconds {
        perform(.sendGoAwayAndClose(.idle), on: connection, cause: APNSSetting.idleTimeout.rawValue)
      } else {
        scheduleIdleCheck(of: connection)
      }
    case .elapsed(let timer, let cause): perform(connection.stateMachine.elapsed(timer), on: connection, cause: cause)
    case .closeDraining: end(connection, cause: "goaway")
    }
    performPendingActions(on: connection)
    settle(connection)
  }

  mutating func schedule(_ event: Event, after time: Duration, on connection: SimulatedConnection) {
    events.insert((connection.traffic.number, event), at: now.addingClamped(max(time, .zero).nanoseconds))
  }

  mutating func scheduleIdleCheck(of connection: SimulatedConnection) {
    let idle = Duration.nanoseconds(now - connection.lastActivity)
    schedule(.checkIdleTime, after: settings.idleTimeout - idle, on: connection)
  }

  // MARK: - The provider

  /// Sends the pushes that wait on the lanes that have become ready, as far as the connections allow.
  mutating func sendWaiting() {
    while let index = readyLanes.popLast() {
      while lanes[index].firstWaiting < lanes[index].waiting.count {
        guard let connection = lanes[index].connection ?? open(lane: index) else { continue }
        guard connection.isOpened, connection.streams.count < connection.streamLimit.limit else { break }
        send(removeWaiting(from: index), on: connection)
      }
    }
  }

  mutating func removeWaiting(from index: Int) -> Int {
    let number = lanes[index].waiting[lanes[index].firstWaiting]
    lanes[index].firstWaiting += 1
    if lanes[index].firstWaiting == lanes[index].waiting.count {
      lanes[index].waiting.removeAll(keepingCapacity: true)
      lanes[index].firstWaiting = 0
    }
    return number
  }

  mutating func count(_ outcome: String) {
    outcomes[outcome, default: 0] += 1
    unresolved -= 1
  }

  /// Counts the outcome of a push and ends its stream.
  mutating func resolve(_ stream: Int32, _ outcome: String, on connection: SimulatedConnection) {
    let isCounted = connection.streams.removeValue(forKey: stream)?.hasOutcome ?? false
    if !isCounted { count(outcome) }
    readyLanes.append(connection.lane)
  }

  /// Counts the pushes that wait for ever.
  mutating func countUnresolved() {
    for connection in connections.values {
      for stream in connection.streams.values where !stream.hasOutcome {
        count(connection.obstacle ?? stream.exchange?.decidingAction.name.rawValue ?? "unsent")
      }
      if !connection.isOpened, let obstacle = connection.obstacle { failFirstWaiting(of: connection.lane, obstacle) }
    }
    if unresolved > 0 { outcomes["unsent", default: 0] += unresolved }
  }

  /// Counts the push for which a connection was opened in vain.
  mutating func failFirstWaiting(of lane: Int, _ outcome: String) {
    _ = removeWaiting(from: lane)
    count(outcome)
  }

  /// The provider stops using a connection.
  mutating func leave(_ connection: SimulatedConnection, cause: String) {
    guard connection.isUsed else { return }
    connection.isUsed = false
    lanes[connection.lane].connection = nil
    readyLanes.append(connection.lane)
    if connection.isOpened { connectionEnds[cause, default: 0] += 1 }
    if connection.lastStream < 0 { failFirstWaiting(of: connection.lane, cause) }
  }

  /// Both sides have closed the connection.
  mutating func end(_ connection: SimulatedConnection, cause: String) {
    guard connections.removeValue(forKey: connection.traffic.number) != nil else { return }
    leave(connection, cause: cause)
    for stream in connection.streams.values {
      release(stream.exchange)
      if !stream.hasOutcome { count(cause) }
    }
    connection.streams = [:]
  }

  /// Closes the connection if nothing more happens on it: the server after its last response, or the provider after the
  /// last stream.
  mutating func settle(_ connection: SimulatedConnection) {
    write(on: connection, cause: "goaway")
    if !connection.isUsed, connection.streams.isEmpty { end(connection, cause: "goaway") }
  }

  // MARK: - Opening

  /// Begins to open a connection; returns nil if that failed, which is then the outcome of the first waiting push.
  mutating func open(lane: Int) -> SimulatedConnection? {
    attempted += 1
    let connection = SimulatedConnection(
      Traffic.Connection(number: attempted, client: Self.client), lane: lane, settings: settings,
      teamUpdates: teamUpdates, at: now)
    connections[attempted] = connection
    lanes[lane].connection = connection
    switch decide(at: .accept, of: connection)?.action {
    case .refuse: end(connection, cause: Action.Name.refuse.rawValue)
    case .silence(let time): silenceHandshake(of: connection, for: time, cause: .silence)
    default: beginTLS(on: connection)
    }
    return lanes[lane].connection
  }

  mutating func beginTLS(on connection: SimulatedConnection) {
    connection.traffic.serverName = Self.serverName
    let injection = decide(at: .tls, of: connection)
    switch injection?.action {
    case .stall(let time?, .answer):
      // The handshake is only late.
      additions[Action.Name.stall.rawValue, default: 0] += 1
      connection.stateMachine.faultDelaysHandshake()
      perform([.wait(time, .handshake(nil))], on: connection, cause: Action.Name.stall.rawValue)
    case .stall(let time, let ending):
      silenceHandshake(of: connection, for: ending == .close ? time : nil, cause: .stall)
    case .alert: end(connection, cause: Action.Name.alert.rawValue)
    default: openHTTP2(connection)
    }
  }

  mutating func openHTTP2(_ connection: SimulatedConnection) {
    let decision = plan.decide(Traffic(connection: connection.traffic), at: .settings, now: now)
    count(decision)
    let faulted = FaultedSettings(decision)
    for (parameters, time) in faulted.following {
      schedule(.elapsed(.announcement(parameters), cause: Action.Name.settings.rawValue), after: time, on: connection)
    }
    if let limit = faulted.first?.maxConcurrentStreams { connection.streamLimit.pin(limit) }
    let delay = faulted.first?.delay ?? .zero
    connection.stateMachine.handshakeCompleted(delaysSettings: delay > .zero)
    guard delay > .zero else { return receiveSettings(on: connection) }
    perform([.wait(delay, .settings(isUsable: true))], on: connection, cause: Action.Name.settings.rawValue)
  }

  mutating func receiveSettings(on connection: SimulatedConnection) {
    connection.isOpened = true
    connection.lastActivity = now
    opened += 1
    readyLanes.append(connection.lane)
    scheduleIdleCheck(of: connection)
    evaluateRules(of: connection)
    settle(connection)
  }

  /// Evaluates the rules at an injection point of a connection and returns the injection that decides, if any.
  mutating func decide(at injectionPoint: InjectionPoint, of connection: SimulatedConnection) -> Injection? {
    let decision = plan.decide(Traffic(connection: connection.traffic), at: injectionPoint, now: now)
    count(decision)
    return decision.decidingInjection
  }

  mutating func count(_ decision: Injections) {
    for injection in decision.additions { additions[injection.action.name.rawValue, default: 0] += 1 }
  }
}
