import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTP2Session
import APNSMockInbox
import Logging
import NIOCore
import APNSMockTLSEngine

/// Application of fault decisions to whole connections: handshakes, SETTINGS, GOAWAY, resets, silence.
extension ConnectionHandler {
  private var plan: FaultPlan { state.activePolicy.load().plan }

  // MARK: - Before HTTP/2

  /// Applies the fault rules of the injection point `accept`.
  func applyAcceptFaults(_ context: ChannelHandlerContext) {
    let plan = plan
    guard plan.mayInject(at: .accept) else { return }
    let decision = plan.decide(Traffic(connection: earlyTraffic), at: .accept, now: MachineTime.nanoseconds)
    guard let injection = decision.decidingInjection else { return }
    logFault(injection)
    switch injection.action {
    case .refuse: reset(context)
    case .silence(let time): silenceHandshake(for: time, context)
    default: break
    }
  }

  /// Applies the fault rules of the injection point `tls`, once the ClientHello was received.
  ///
  /// - Returns: Whether the handshake continues.
  func applyTLSFaults(_ context: ChannelHandlerContext) throws -> Bool {
    let traffic = Traffic(connection: earlyTraffic)
    let decision = plan.decide(traffic, at: .tls, now: MachineTime.nanoseconds)
    var badCertificate: Action.CertificateDefect?
    for injection in decision.additions {
      logFault(injection)
      if case .certificate(let kind) = injection.action { badCertificate = kind }
    }
    if let injection = decision.decidingInjection {
      logFault(injection)
      switch injection.action {
      case .stall(let time, .answer):
        delayHandshake(time, badCertificate, context)
        return false
      case .stall(let time, let ending):
        silenceHandshake(for: ending == .close ? time : nil, context)
        return false
      case .alert(let code):
        _ = stateMachine.closedAbruptly()
        TLSAlert.record(code: code).withUnsafeBytes { put($0, context) }
        endOutput(context)
        return false
      default: break
      }
    }
    try proceed(showing: badCertificate)
    return true
  }

  private func proceed(showing badCertificate: Action.CertificateDefect?) throws {
    if badCertificate != nil { stateMachine.faultReplacesCertificate() }
    try transport.tls?.proceed(with: badCertificate.map { try state.faultCertificates.context(for: $0) })
  }

  /// Delays the rest of the handshake, or suspends it for ever if `time` is nil. Nothing is read during a delay, so
  /// that no input accumulates.
  private func delayHandshake(
    _ time: Duration?, _ badCertificate: Action.CertificateDefect?, _ context: ChannelHandlerContext
  ) {
    guard let time else { return silenceHandshake(for: nil, context) }
    stateMachine.faultDelaysHandshake()
    cancelTimer(through: .handshakeTimeout)
    wait(time, for: .handshake(badCertificate), context)
  }

  private func continueHandshake(_ badCertificate: Action.CertificateDefect?, _ context: ChannelHandlerContext) {
    startHandshakeTimeout(context)
    do {
      try proceed(showing: badCertificate)
      handleReceivedBytes(context)
    } catch {
      logClientError(.handshake, "\(error)")
      context.close(promise: nil)
    }
  }

  /// Returns the values of the first SETTINGS frame that fault rules determine; nil if no rule does.
  func faultedSettings(_ connection: Traffic.Connection, _ context: ChannelHandlerContext) -> Action.SettingsParameters?
  {
    let plan = plan
    guard plan.mayInject(at: .settings) else { return nil }
    let decision = plan.decide(Traffic(connection: connection), at: .settings, now: MachineTime.nanoseconds)
    for injection in decision.additions { logFault(injection) }
    let settings = FaultedSettings(decision)
    for (parameters, time) in settings.following {
      wait(time, for: .announcement(parameters), context)
    }
    return settings.first
  }

  /// The connection's properties that are known before HTTP/2 starts.
  private var earlyTraffic: Traffic.Connection {
    Traffic.Connection(
      number: log.number, client: log.clientAddress, listener: log.listener, environment: environment,
      serverName: transport.tls?.serverName)
  }

  // MARK: - On an open connection

  /// Evaluates the rules of the injection point `connection`, now and again whenever one of them could fire.
  func evaluateConnectionRules(_ context: ChannelHandlerContext) {
    faultTimers.cancel(.ruleEvaluation)
    guard stateMachine.isOpen, let processor else { return }
    let plan = plan
    guard plan.mayInject(at: .connection) else { return }
    let now = MachineTime.nanoseconds
    var connection = processor.connectionTraffic
    connection.age = (NIODeadline.now() - openedAt).nanoseconds
    connection.idle = (NIODeadline.now() - stateMachine.input.lastActivity).nanoseconds
    let decision = plan.decide(Traffic(connection: connection), at: .connection, now: now)
    for injection in decision {
      logFault(injection)
      guard let action = ConnectionAction(injection) else { continue }
      if action.mayEndConnection { processor.setCause(injection, push: nil) }
      processor.connectionActions.append(action)
    }
    performPendingActions(context)
    guard stateMachine.isOpen, let next = plan.nextEvaluation(after: now, for: connection) else { return }
    wait(.nanoseconds(max(0, next - now)), for: .ruleEvaluation, context)
  }

  /// Performs an action that was requested over the admin API, where FIN and RST do not wait for responses.
  func performRequested(_ action: ConnectionAction, _ context: ChannelHandlerContext) {
    switch action {
    case .reset: reset(context)
    case _ where !stateMachine.isOpen: close(context)
    case .close: close(context)
    default: perform(action, context)
    }
  }

  /// Performs the pending actions that pushes and rules requested for the connection.
  func performPendingActions(_ context: ChannelHandlerContext) {
    guard let connectionActions = processor?.connectionActions, !connectionActions.isEmpty else { return }
    processor?.connectionActions = []
    for action in connectionActions where stateMachine.isOpen { perform(action, context) }
  }

  private func perform(_ action: ConnectionAction, _ context: ChannelHandlerContext) {
    let lastReceivedStream = session?.lastReceivedStream ?? 0
    perform(
      stateMachine.begin(action, lastReceivedStream: lastReceivedStream, now: MachineTime.nanoseconds), context)
  }

  private func perform(_ steps: [ConnectionStateMachine.Step], _ context: ChannelHandlerContext) {
    for step in steps { perform(step, context) }
  }

  private func perform(_ step: ConnectionStateMachine.Step, _ context: ChannelHandlerContext) {
    switch step {
    case .sendGoAway(let parameters, let lastStream, let sendsNotice):
      sendGoAway(parameters, lastStream: lastStream, sendsNotice: sendsNotice)
    case .sendGoAwayAndClose(let closeReason): sendGoAwayAndClose(closeReason, context)
    case .end(let ending):
      if ending == .close { log.add(.fault, "closed without GOAWAY", at: state.clock.now) }
    case .close: close(context)
    case .withholdWindow(let isWithheld): session?.withholdsWindow = isWithheld
    case .ignorePings(let isIgnoring): session?.acknowledgesPings = !isIgnoring
    case .closeSocket: closeSocket(context)
    case .announce(let parameters): announce(parameters)
    case .respondUntilShutdown(let injection): processor?.responseUntilShutdown = injection
    case .continuePush(let stream):
      guard let session else { return }
      processor?.continueDelayedPush(on: stream, stateMachine.processedStreams, session: session)
      performPendingActions(context)
    case .continueHandshake(let badCertificate): continueHandshake(badCertificate, context)
    case .sendSettings(let isUsable):
      stateMachine.input.lastActivity = .now()
      sendSettings(isUsable: isUsable, context)
      handleReceivedBytes(context)
    case .evaluateRules: evaluateConnectionRules(context)
    case .wait(let time, let timer): wait(time, for: timer, context)
    }
  }

  private func sendGoAway(_ parameters: Action.GoAwayParameters, lastStream: Int32, sendsNotice: Bool) {
    guard let session else { return }
    let debugData = Array(parameters.debugData.utf8)
    if sendsNotice {
      session.sendUntrackedGoAway(lastStream: .max, rawCode: parameters.code, debugData: debugData)
    }
    session.sendUntrackedGoAway(lastStream: lastStream, rawCode: parameters.code, debugData: debugData)
    processor?.goAway = WireDetails.GoAway(
      code: HTTP2ErrorCode.name(of: parameters.code), lastStream: lastStream, debugData: parameters.debugData)
    log.add(
      .goAway, "\(HTTP2ErrorCode.name(of: parameters.code)) last_stream=\(lastStream) \(parameters.debugData)",
      at: state.clock.now)
  }

  private func announce(_ parameters: Action.SettingsParameters) {
    guard let session else { return }
    session.acknowledgesSettings = parameters.acknowledgesClient
    session.announce(HTTP2Settings(parameters))
    if let limit = parameters.maxConcurrentStreams { processor?.streamLimit.pin(limit) }
    log.add(.settings, parameters.description, at: state.clock.now)
  }

  /// Silences a connection before HTTP/2.
  ///
  /// - Parameter time: The time after which the connection is closed; nil for never.
  private func silenceHandshake(for time: Duration?, _ context: ChannelHandlerContext) {
    stateMachine.faultSilences()
    cancelTimer(through: .handshakeTimeout)
    if let time { wait(time, for: .silence, context) }
  }

  /// Adds to the connection's timeline and to the log that a rule affected the connection.
  private func logFault(_ injection: Injection) {
    let message = "rule \(injection.rule): \(injection.action.name.rawValue)"
    log.add(.fault, message, at: state.clock.now)
    logger.debug("\(client): \(message)")
  }

  // MARK: - Scheduling

  /// Schedules the steps that follow after a time.
  func wait(
    _ time: Duration, for timer: ConnectionStateMachine.FaultTimer, _ context: ChannelHandlerContext
  ) {
    // Handler and context belong to this event loop and the task runs on it; `NIOLoopBound` checks this.
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let id = faultTimers.makeID(for: timer)
    faultTimers[id] = context.eventLoop.scheduleTask(in: TimeAmount(time)) {
      let (handler, context) = bound.value
      handler.faultTimers[id] = nil
      handler.perform(handler.stateMachine.elapsed(timer), context)
      handler.writeFrames(context)
    }
  }
}

/// The scheduled timers of the faults of a connection.
struct FaultTimers {
  /// What a timer is canceled by.
  enum ID: Hashable {
    case ruleEvaluation
    /// With a rule that delays for an hour, the timers of pushes whose clients gave up would accumulate.
    case delayedPush(Int32)
    /// Canceled only with the connection.
    case other(Int)
  }

  private var scheduled: [ID: Scheduled<Void>] = [:]
  private var lastNumber = 0

  mutating func makeID(for timer: ConnectionStateMachine.FaultTimer) -> ID {
    switch timer {
    case .ruleEvaluation: return .ruleEvaluation
    case .delayedPush(let stream): return .delayedPush(stream)
    default:
      lastNumber += 1
      return .other(lastNumber)
    }
  }

  subscript(id: ID) -> Scheduled<Void>? {
    get { scheduled[id] }
    set { scheduled[id] = newValue }
  }

  mutating func cancel(_ id: ID) { scheduled.removeValue(forKey: id)?.cancel() }

  mutating func cancelAll() {
    for task in scheduled.values { task.cancel() }
    scheduled = [:]
  }
}

extension HTTP2Settings {
  /// Creates the SETTINGS values of a fault action.
  init(_ parameters: Action.SettingsParameters?) {
    self.init(
      maxConcurrentStreams: parameters?.maxConcurrentStreams, initialWindowSize: parameters?.initialWindowSize,
      maxHeaderListSize: parameters?.maxHeaderListSize)
  }
}

extension Action.SettingsParameters {
  /// A description for the connection's timeline.
  fileprivate var description: String {
    let parts: [(String, UInt32?)] = [
      ("max_concurrent_streams", maxConcurrentStreams), ("initial_window_size", initialWindowSize),
      ("max_header_list_size", maxHeaderListSize),
    ]
    return parts.compactMap { name, value in value.map { "\(name)=\($0)" } }.joined(separator: " ")
  }
}
