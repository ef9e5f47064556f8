import APNSRules
import FaultModel
import Faults
import HTTPMessage
internal import Notation

/// The state of a running simulation.
struct SimulationRun {
  /// What happens on a connection at a later time.
  private enum Event {
    case continueHandshake
    case sendSettings
    case evaluateRules(number: Int)
    case checkIdleTime
    case elapsed(ConnectionFaults.Timer, cause: String)
    case closeDraining
  }

  /// One of the provider's connections, which is opened again after it has ended.
  private struct Lane {
    var connection: SimulatedConnection?
    /// The pushes that wait for a stream, by number, in order from `firstWaiting`.
    var waiting: [Int] = []
    var firstWaiting = 0
  }

  private let profile: Profile
  private let load: Simulation.Load
  private let plan: FaultPlan
  private let ruleCounters = RuleCounters()
  private let settings: APNSSettings
  private let rulebook: Rulebook
  private var deviceRate: DeviceRateLimiter?
  private let keys = TrustedKeySet(
    version: 1, keys: [TrustedKey(keyID: "MOCKKEY001", teamID: "MOCKTEAM01", verifies: { _, _, _ in true })])
  private let teamUpdates = TeamTokenUpdates()
  private var authorization = ""

  private var now: MonotonicTime = 0
  private var events = SimulatedEvents<(connection: UInt64, event: Event)>()
  private var connections: [UInt64: SimulatedConnection] = [:]
  private var lanes: [Lane]
  /// The lanes whose waiting pushes may be sent.
  private var readyLanes: [Int] = []
  private var attempted: UInt64 = 0
  /// The number of pushes without an outcome.
  private var unresolved: Int
  /// The number of times for which rules can still be evaluated without a push. A profile may name a window of a
  /// nanosecond.
  private var evaluationsLeft = 200_000

  private var outcomes: [String: Int] = [:]
  private var additions: [String: Int] = [:]
  private var connectionEnds: [String: Int] = [:]
  private var opened = 0

  /// 2026-01-01T00:00:00Z, in milliseconds since 1970.
  private static let startTime: ServerTime = 1_767_225_600_000
  private static let client = "127.0.0.1"
  private static let serverName = "api.sandbox.push.apple.com"
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
  private mutating func advance(to time: MonotonicTime) {
    while let next = events.nextTime, next <= time { advance() }
    now = time
  }

  /// Handles the next event.
  private mutating func advance() {
    guard let (entry, time) = events.removeFirst() else { return }
    now = time
    guard let connection = connections[entry.connection] else { return }
    handle(entry.event, on: connection)
    sendWaiting()
  }

  private mutating func handle(_ event: Event, on connection: SimulatedConnection) {
    switch event {
    case .evaluateRules(let number):
      guard number == connection.evaluation, evaluationsLeft > 0 else { return }
      evaluationsLeft -= 1
      evaluateRules(of: connection)
    case .continueHandshake:
      if connection.stateMachine.handshakeDelayElapsed() { openHTTP2(connection) }
    case .sendSettings:
      if connection.stateMachine.settingsDelayElapsed() { receiveSettings(on: connection) }
    case .checkIdleTime:
      guard connection.stateMachine.state == .open(.serving) else { return }
      if now - connection.lastActivity >= settings.idleTimeout.nanoseconds {
        perform(.sendGoAwayAndClose(.idle), on: connection, cause: APNSSetting.idleTimeout.rawValue)
      } else {
        scheduleIdleCheck(of: connection)
      }
    case .elapsed(let timer, let cause): perform(connection.faults.elapsed(timer), on: connection, cause: cause)
    case .closeDraining: end(connection, cause: "goaway")
    }
    performPendingActions(on: connection)
    settle(connection)
  }

  private mutating func schedule(_ event: Event, after time: Duration, on connection: SimulatedConnection) {
    events.insert((connection.traffic.number, event), at: now.addingClamped(max(time, .zero).nanoseconds))
  }

  private mutating func scheduleIdleCheck(of connection: SimulatedConnection) {
    let idle = Duration.nanoseconds(now - connection.lastActivity)
    schedule(.checkIdleTime, after: settings.idleTimeout - idle, on: connection)
  }

  // MARK: - The provider

  /// Sends the pushes that wait on the lanes that have become ready, as far as the connections allow.
  private mutating func sendWaiting() {
    while let index = readyLanes.popLast() {
      while lanes[index].firstWaiting < lanes[index].waiting.count {
        guard let connection = lanes[index].connection ?? open(lane: index) else { continue }
        guard connection.isOpened, connection.streams.count < connection.streamLimit.limit else { break }
        send(removeWaiting(from: index), on: connection)
      }
    }
  }

  private mutating func removeWaiting(from index: Int) -> Int {
    let number = lanes[index].waiting[lanes[index].firstWaiting]
    lanes[index].firstWaiting += 1
    if lanes[index].firstWaiting == lanes[index].waiting.count {
      lanes[index].waiting.removeAll(keepingCapacity: true)
      lanes[index].firstWaiting = 0
    }
    return number
  }

  private mutating func count(_ outcome: String) {
    outcomes[outcome, default: 0] += 1
    unresolved -= 1
  }

  /// Counts the outcome of a push and ends its stream.
  private mutating func resolve(_ stream: Int32, _ outcome: String, on connection: SimulatedConnection) {
    let isCounted = connection.streams.removeValue(forKey: stream)?.hasOutcome ?? false
    if !isCounted { count(outcome) }
    readyLanes.append(connection.lane)
  }

  /// Counts the pushes that wait for ever.
  private mutating func countUnresolved() {
    for connection in connections.values {
      for stream in connection.streams.values where !stream.hasOutcome {
        count(connection.obstacle ?? stream.exchange?.decidingAction.name.rawValue ?? "unsent")
      }
      if !connection.isOpened, let obstacle = connection.obstacle { failFirstWaiting(of: connection.lane, obstacle) }
    }
    if unresolved > 0 { outcomes["unsent", default: 0] += unresolved }
  }

  /// Counts the push for which a connection was opened in vain.
  private mutating func failFirstWaiting(of lane: Int, _ outcome: String) {
    _ = removeWaiting(from: lane)
    count(outcome)
  }

  /// The provider stops using a connection.
  private mutating func leave(_ connection: SimulatedConnection, cause: String) {
    guard connection.isUsed else { return }
    connection.isUsed = false
    lanes[connection.lane].connection = nil
    readyLanes.append(connection.lane)
    if connection.isOpened { connectionEnds[cause, default: 0] += 1 }
    if connection.lastStream < 0 { failFirstWaiting(of: connection.lane, cause) }
  }

  /// Both sides have closed the connection.
  private mutating func end(_ connection: SimulatedConnection, cause: String) {
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
  private mutating func settle(_ connection: SimulatedConnection) {
    if flush(connection) { end(connection, cause: "goaway") }
    if !connection.isUsed, connection.streams.isEmpty { end(connection, cause: "goaway") }
  }

  // MARK: - Opening

  /// Begins to open a connection; returns nil if that failed, which is then the outcome of the first waiting push.
  private mutating func open(lane: Int) -> SimulatedConnection? {
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

  private mutating func beginTLS(on connection: SimulatedConnection) {
    connection.traffic.serverName = Self.serverName
    let injection = decide(at: .tls, of: connection)
    switch injection?.action {
    case .stall(let time?, .answer):
      // The handshake is only late.
      additions[Action.Name.stall.rawValue, default: 0] += 1
      connection.stateMachine.faultDelaysHandshake()
      schedule(.continueHandshake, after: time, on: connection)
    case .stall(let time, let ending):
      silenceHandshake(of: connection, for: ending == .close ? time : nil, cause: .stall)
    case .alert: end(connection, cause: Action.Name.alert.rawValue)
    default: openHTTP2(connection)
    }
  }

  private mutating func openHTTP2(_ connection: SimulatedConnection) {
    let decision = plan.decide(Traffic(connection: connection.traffic), at: .settings, now: now)
    count(decision)
    let faulted = FaultedSettings(decision)
    for (parameters, time) in faulted.later {
      schedule(.elapsed(.announcement(parameters), cause: Action.Name.settings.rawValue), after: time, on: connection)
    }
    if let limit = faulted.first?.maxConcurrentStreams { connection.streamLimit.pin(limit) }
    let delay = faulted.first?.delay ?? .zero
    connection.stateMachine.handshakeCompleted(delaysSettings: delay > .zero)
    if delay > .zero { schedule(.sendSettings, after: delay, on: connection) } else { receiveSettings(on: connection) }
  }

  private mutating func receiveSettings(on connection: SimulatedConnection) {
    connection.isOpened = true
    connection.lastActivity = now
    opened += 1
    readyLanes.append(connection.lane)
    scheduleIdleCheck(of: connection)
    evaluateRules(of: connection)
    settle(connection)
  }

  /// Evaluates the rules at an injection point of a connection and returns the injection that decides, if any.
  private mutating func decide(at injectionPoint: InjectionPoint, of connection: SimulatedConnection) -> Injection? {
    let decision = plan.decide(Traffic(connection: connection.traffic), at: injectionPoint, now: now)
    count(decision)
    return decision.decidingInjection
  }

  private mutating func count(_ decision: [Injection]) {
    for injection in decision.additions { additions[injection.action.name.rawValue, default: 0] += 1 }
  }

  // MARK: - Pushes

  private mutating func send(_ number: Int, on connection: SimulatedConnection) {
    let stream = connection.lastStream + 2
    connection.lastStream = stream
    connection.streams[stream] = SimulatedConnection.Stream()
    guard connection.stateMachine.isOpen else { return }
    connection.lastActivity = now
    guard connection.stateMachine.requestReceived(on: stream) == .process else { return }
    connection.traffic.streamsOpened += 1
    process(push(number, on: connection), of: stream, on: connection)
    performPendingActions(on: connection)
    if plan.mayInject(at: .connection) { evaluateRules(of: connection) }
    settle(connection)
  }

  private mutating func process(_ push: Traffic.Push, of stream: Int32, on connection: SimulatedConnection) {
    guard var exchange = exchange(for: push, on: connection) else {
      let response = FaultedExchange(push.verdict, acceptedBody: []).response
      return respond(with: response, to: stream, on: connection)
    }
    count(exchange)
    if !(exchange.sendsResponse && exchange.response.status == 403) {
      announceStreamLimit(before: nil, on: stream, of: connection)
    }
    if exchange.blocksTokenUpdates { connection.authentication.blockTokenUpdates(now: push.receivedAt) }
    add(exchange.connectionActions, to: connection, cause: exchange.decidingAction)
    guard exchange.takesTime else { return complete(&exchange, of: stream, on: connection) }
    connection.streams[stream]?.exchange = exchange
    add([.continuePush(stream: stream, after: exchange.delay)], to: connection, cause: exchange.decidingAction)
  }

  /// Returns what the rules decide about a push; nil for APNs' own response.
  private func exchange(for push: Traffic.Push, on connection: SimulatedConnection) -> FaultedExchange? {
    var exchange = FaultedExchange(push.verdict, acceptedBody: [])
    if let response = connection.responseUntilShutdown {
      exchange.merge(response, at: .request, serverTime: push.receivedAt)
      return exchange
    }
    let summary = Traffic.PushSummary(key: push.key, isAccepted: push.verdict.isAccepted)
    let hasResponseRules = plan.mayInject(at: .response)
    guard
      let candidates = FaultedExchange.candidateRules(
        for: summary, push.request, push.verdict, in: plan, hasResponseRules: hasResponseRules, attempt: { 1 }, now: now
      )
    else { return nil }
    exchange.apply(
      candidates, in: plan, hasResponseRules: hasResponseRules,
      to: FaultedExchange.EvaluatedPush(
        request: push.request, summary: summary, now: now, serverTime: push.receivedAt),
      push.verdict, connection: { connection.traffic }, defaultTopic: { _ in nil }, attempt: { 1 })
    return exchange.injections.isEmpty ? nil : exchange
  }

  private mutating func count(_ exchange: FaultedExchange) {
    for injection in exchange.injections where injection.continues || injection.action.name.continues == true {
      additions[injection.action.name.rawValue, default: 0] += 1
    }
    // The response is only late.
    if case .hang(_, .answer) = exchange.decidingAction { additions[Action.Name.hang.rawValue, default: 0] += 1 }
  }

  /// Ends an exchange, after its delay.
  private mutating func complete(
    _ exchange: inout FaultedExchange, of stream: Int32, on connection: SimulatedConnection
  ) {
    release(exchange)
    connection.streams[stream]?.exchange = nil
    let processed = connection.stateMachine.processedStreams
    let actions = exchange.endingActions(on: stream, processed)
    let action = exchange.decidingAction
    if exchange.sendsResponse {
      respond(with: exchange, to: stream, on: connection)
    } else if exchange.resetCode(on: stream, processed) != nil {
      resolve(stream, action.name.rawValue, on: connection)
    } else {
      // The stream stays open, unless one of the actions ends the connection.
      connection.streams[stream]?.hasOutcome = true
      count(action.name.rawValue)
    }
    add(actions, to: connection, cause: action)
  }

  private mutating func respond(
    with exchange: FaultedExchange, to stream: Int32, on connection: SimulatedConnection
  ) {
    guard let interval = exchange.mutation.interval else {
      return respond(with: exchange.response, to: stream, on: connection)
    }
    announceStreamLimit(before: exchange.response.status, on: stream, of: connection)
    countRejection(exchange.response.status, on: connection)
    let parts = exchange.mutation.parts(of: exchange.response.body, status: exchange.response.status)
    connection.streams[stream]?.exchange = exchange
    connection.streams[stream]?.remainingParts = max(1, parts.count)
    add([.continuePush(stream: stream, after: interval)], to: connection, cause: exchange.decidingAction)
  }

  private mutating func respond(
    with response: FaultedExchange.Response, to stream: Int32, on connection: SimulatedConnection
  ) {
    announceStreamLimit(before: response.status, on: stream, of: connection)
    countRejection(response.status, on: connection)
    receive(response, on: stream, of: connection)
  }

  /// The provider receives a complete response.
  private mutating func receive(
    _ response: FaultedExchange.Response, on stream: Int32, of connection: SimulatedConnection
  ) {
    if response.reason == .expiredProviderToken { renewToken() }
    resolve(stream, response.reasonText.map { "\(response.status) \($0)" } ?? String(response.status), on: connection)
  }

  private mutating func continuePush(_ stream: Int32, on connection: SimulatedConnection) {
    guard connection.stateMachine.isOpen, var exchange = connection.streams[stream]?.exchange else { return }
    guard let parts = connection.streams[stream]?.remainingParts, parts > 0 else {
      return complete(&exchange, of: stream, on: connection)
    }
    connection.streams[stream]?.remainingParts = parts - 1
    if parts > 1, let interval = exchange.mutation.interval {
      return add([.continuePush(stream: stream, after: interval)], to: connection, cause: exchange.decidingAction)
    }
    receive(exchange.response, on: stream, of: connection)
  }

  private func release(_ exchange: FaultedExchange?) {
    guard let exchange, exchange.isDelayedByRule else { return }
    for injection in exchange.injections { ruleCounters.release(injection) }
  }

  /// Announces the stream limit, if it changes, and refuses the other streams when a rejection reduces it.
  private mutating func announceStreamLimit(
    before status: Int?, on stream: Int32, of connection: SimulatedConnection
  ) {
    let wasThrottled = connection.streamLimit.isThrottled
    let isTrusted = connection.authentication.providerTokenAccepted
    guard connection.streamLimit.change(before: status, isTrusted: isTrusted) != nil else { return }
    readyLanes.append(connection.lane)
    guard connection.streamLimit.isThrottled, !wasThrottled else { return }
    for (other, state) in connection.streams where other != stream && state.remainingParts == 0 {
      release(state.exchange)
      resolve(other, "REFUSED_STREAM", on: connection)
    }
  }

  private mutating func countRejection(_ status: Int, on connection: SimulatedConnection) {
    guard connection.rejections.endsConnection(after: status, limit: settings.errorsBeforeGoaway) else { return }
    connection.pendingActions.append((.sendGoAwayAndClose(.tooManyErrors), APNSSetting.errorsBeforeGoaway.rawValue))
  }

  // MARK: - Actions on the connection

  private func add(_ actions: [ConnectionAction], to connection: SimulatedConnection, cause: Action) {
    connection.pendingActions += actions.map { ($0, cause.name.rawValue) }
  }

  /// Evaluates the rules at `connection`, now and again whenever one of them could fire.
  private mutating func evaluateRules(of connection: SimulatedConnection) {
    connection.evaluation += 1
    guard connection.stateMachine.isOpen, plan.mayInject(at: .connection) else { return }
    let traffic = connection.traffic(at: now)
    let decision = plan.decide(Traffic(connection: traffic), at: .connection, now: now)
    count(decision)
    for injection in decision {
      if let action = ConnectionAction(injection) { add([action], to: connection, cause: injection.action) }
    }
    performPendingActions(on: connection)
    guard connection.stateMachine.isOpen, let next = plan.nextEvaluation(after: now, for: traffic) else { return }
    schedule(
      .evaluateRules(number: connection.evaluation), after: .nanoseconds(max(0, next - now)), on: connection)
  }

  private mutating func performPendingActions(on connection: SimulatedConnection) {
    let actions = connection.pendingActions
    connection.pendingActions = []
    for (action, cause) in actions where connection.stateMachine.isOpen {
      perform(action, on: connection, cause: cause)
    }
  }

  private mutating func perform(_ action: ConnectionAction, on connection: SimulatedConnection, cause: String) {
    let steps = connection.faults.begin(
      action, on: &connection.stateMachine, lastReceivedStream: max(0, connection.lastStream), now: now)
    perform(steps, on: connection, cause: cause)
  }

  private mutating func perform(
    _ steps: [ConnectionFaults.Step], on connection: SimulatedConnection, cause: String
  ) {
    for step in steps {
      switch step {
      case .flush: if flush(connection) { end(connection, cause: cause) }
      case .sendGoAway(_, let lastStream, _): receiveGoAway(on: connection, lastStream: lastStream, cause: cause)
      case .sendGoAwayAndClose(let reason): sendGoAwayAndClose(reason, on: connection, cause: cause)
      case .close, .reset:
        if case .close = connection.stateMachine.closeRequested() { end(connection, cause: cause) }
      case .silence: if connection.stateMachine.isOpen { silence(connection, cause: cause) }
      case .closeSilenced: if connection.stateMachine.state == .silenced { end(connection, cause: cause) }
      case .announce(let parameters):
        guard connection.stateMachine.isOpen, let limit = parameters.maxConcurrentStreams else { continue }
        connection.streamLimit.pin(limit)
        readyLanes.append(connection.lane)
      case .respondUntilShutdown(let injection): connection.responseUntilShutdown = injection
      case .continuePush(let stream): continuePush(stream, on: connection)
      case .wait(let time, let timer): schedule(.elapsed(timer, cause: cause), after: time, on: connection)
      case .withholdWindow, .ignorePings: continue
      }
    }
  }

  private func silence(_ connection: SimulatedConnection, cause: String) {
    connection.obstacle = cause
    connection.stateMachine.faultSilences()
  }

  private mutating func silenceHandshake(of connection: SimulatedConnection, for time: Duration?, cause: Action.Name) {
    silence(connection, cause: cause.rawValue)
    if let time { perform([.wait(time, .silence)], on: connection, cause: cause.rawValue) }
  }

  private mutating func sendGoAwayAndClose(
    _ reason: ConnectionCloseReason, on connection: SimulatedConnection, cause: String
  ) {
    let action = connection.stateMachine.goAwayRequested(
      immediately: reason.closesAtOnce, lastReceivedStream: max(0, connection.lastStream), now: now)
    switch action {
    case .none: return
    case .sendAndDrain(let lastStream), .sendAndClose(let lastStream):
      receiveGoAway(on: connection, lastStream: lastStream, cause: cause)
    }
    if flush(connection) { return end(connection, cause: cause) }
    schedule(.closeDraining, after: Configuration().shutdownTimeout, on: connection)
  }

  /// The provider receives GOAWAY.
  private mutating func receiveGoAway(on connection: SimulatedConnection, lastStream: Int32, cause: String) {
    leave(connection, cause: cause)
    for (stream, state) in connection.streams where stream > lastStream {
      release(state.exchange)
      resolve(stream, cause, on: connection)
    }
  }

  /// Returns whether the server closes the connection after its pending responses.
  private func flush(_ connection: SimulatedConnection) -> Bool {
    guard connection.stateMachine.flushStarted() else { return false }
    let action = connection.stateMachine.flushCompleted(
      isFinished: false, hasPendingWork: !connection.streams.isEmpty)
    return action == .close
  }

  // MARK: - Requests

  private mutating func push(_ number: Int, on connection: SimulatedConnection) -> Traffic.Push {
    let devices = max(load.devices, 1)
    let index = number / lanes.count % devices
    // APNs rejects a device token of 64 zeros, so the first device has the number after the last.
    let token = Hexadecimal.text(UInt64(index == 0 ? devices : index), digits: 64)
    let request = HTTPRequest(
      headers: HeaderList([
        (":method", "POST"), (":scheme", "https"), (":authority", Self.serverName), (":path", "/3/device/\(token)"),
        ("authorization", authorization), ("apns-topic", load.topic), ("apns-push-type", load.pushType),
        ("apns-priority", load.priority),
      ]), body: Array("{\(load.payloadMembers),\"number\":\(number)}".utf8))
    let time = Self.startTime + now / 1_000_000
    var verdict = rulebook.validate(request, authentication: &connection.authentication, keys: keys, now: time)
    if verdict.isAccepted, let rate = deviceRate?.rate {
      let isAdmitted = Array(token.utf8).withUnsafeBytes { deviceRate?.admit($0, now: now) ?? true }
      if !isAdmitted { verdict.reject(over: rate) }
    }
    return Traffic.Push(
      request: request, verdict: verdict, key: PushKey(request, verdict.facts, defaultTopic: nil), receivedAt: time)
  }

  private mutating func renewToken() {
    let issuedAt = Self.startTime / 1000 + now / 1_000_000_000
    authorization =
      "bearer " + Base64URL.text(Array(#"{"alg":"ES256","kid":"MOCKKEY001"}"#.utf8)) + "."
      + Base64URL.text(Array(#"{"iss":"MOCKTEAM01","iat":\#(issuedAt)}"#.utf8)) + "."
      + String(repeating: "A", count: 86)
  }
}
