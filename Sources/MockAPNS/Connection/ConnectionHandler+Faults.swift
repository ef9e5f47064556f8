import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTP2Session
import APNSMockInbox
import Logging
import NIOCore
import APNSMockPlatformLibc
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
        stateMachine.closedAbruptly()
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
    showsBadCertificate = badCertificate != nil
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
    _ = context.channel.setOption(ChannelOptions.autoRead, value: false)
    runLater(time, context) { handler, context in
      guard handler.stateMachine.handshakeDelayElapsed() else { return }
      handler.startHandshakeTimeout(context)
      _ = context.channel.setOption(ChannelOptions.autoRead, value: true)
      do {
        try handler.proceed(showing: badCertificate)
        handler.handleReceivedBytes(context)
      } catch {
        handler.logClientError(.handshake, "\(error)")
        context.close(promise: nil)
      }
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
      runLater(time, context) { handler, context in handler.announce(parameters, context) }
    }
    return settings.first
  }

  /// Delays the first SETTINGS frame, and with it everything else the server sends.
  ///
  /// Reading stops for this time. The few bytes already read stay with the TLS connection; the rest waits in the
  /// socket, whose buffer is bounded.
  func delaySettings(
    by delay: Duration, _ context: ChannelHandlerContext,
    then sendSettings: @escaping @Sendable (ConnectionHandler, ChannelHandlerContext) -> Void
  ) {
    _ = context.channel.setOption(ChannelOptions.autoRead, value: false)
    runLater(delay, context) { handler, context in
      guard handler.stateMachine.settingsDelayElapsed() else { return }
      _ = context.channel.setOption(ChannelOptions.autoRead, value: true)
      handler.input.lastActivity = .now()
      sendSettings(handler, context)
      handler.handleReceivedBytes(context)
    }
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
    faultTasks.nextEvaluation?.cancel()
    faultTasks.nextEvaluation = nil
    guard stateMachine.isOpen, let processor else { return }
    let plan = plan
    guard plan.mayInject(at: .connection) else { return }
    let now = MachineTime.nanoseconds
    var connection = processor.connectionTraffic
    connection.age = (NIODeadline.now() - openedAt).nanoseconds
    connection.idle = (NIODeadline.now() - input.lastActivity).nanoseconds
    let decision = plan.decide(Traffic(connection: connection), at: .connection, now: now)
    for injection in decision {
      logFault(injection)
      guard let action = ConnectionAction(injection) else { continue }
      if action.mayEndConnection { processor.setCause(injection, push: nil) }
      processor.connectionActions.append(action)
    }
    performPendingActions(context)
    flush(context)
    guard stateMachine.isOpen, let next = plan.nextEvaluation(after: now, for: connection) else { return }
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    faultTasks.nextEvaluation = context.eventLoop.scheduleTask(in: .nanoseconds(max(0, next - now))) {
      bound.value.0.evaluateConnectionRules(bound.value.1)
    }
  }

  /// Performs an action that was requested over the admin API, where FIN and RST do not wait for responses.
  func performRequested(_ action: ConnectionAction, _ context: ChannelHandlerContext) {
    switch action {
    case .reset: reset(context)
    case _ where !stateMachine.isOpen: close(context)
    case .close: close(context)
    default:
      perform(action, context)
      flush(context)
    }
  }

  /// Performs the pending actions that pushes and rules requested for the connection.
  func performPendingActions(_ context: ChannelHandlerContext) {
    guard let connectionActions = processor?.connectionActions, !connectionActions.isEmpty else { return }
    processor?.connectionActions = []
    for action in connectionActions where stateMachine.isOpen { perform(action, context) }
  }

  private func perform(_ action: ConnectionAction, _ context: ChannelHandlerContext) {
    let steps = faultTasks.faults.begin(
      action, on: &stateMachine, lastReceivedStream: session?.lastReceivedStream ?? 0, now: MachineTime.nanoseconds)
    perform(steps, context)
  }

  private func perform(_ steps: [ConnectionFaults.Step], _ context: ChannelHandlerContext) {
    for step in steps { perform(step, context) }
  }

  private func perform(_ step: ConnectionFaults.Step, _ context: ChannelHandlerContext) {
    switch step {
    case .flush: flush(context)
    case .sendGoAway(let parameters, let lastStream, let sendsNotice):
      sendGoAway(parameters, lastStream: lastStream, sendsNotice: sendsNotice)
    case .sendGoAwayAndClose(let closeReason): sendGoAwayAndClose(context, closeReason)
    case .close(let afterGoAway):
      if !afterGoAway { log.add(.fault, "closed without GOAWAY", at: state.clock.now) }
      close(context)
    case .reset: reset(context)
    case .withholdWindow(let isWithheld): session?.withholdsWindow = isWithheld
    case .ignorePings(let isIgnoring): session?.acknowledgesPings = !isIgnoring
    case .silence:
      guard stateMachine.isOpen else { return }
      transport.releaseBuffers()
      silenceConnection(context)
    case .closeSilenced:
      guard stateMachine.state == .silenced else { return }
      hasClosedSocket = true
      context.close(promise: nil)
    case .announce(let parameters): announce(parameters, context)
    case .respondUntilShutdown(let injection): processor?.responseUntilShutdown = injection
    case .continuePush(let stream): continueDelayedPush(on: stream, context)
    case .wait(let time, let timer):
      let number = runLater(time, context) { handler, context in
        handler.perform(handler.faultTasks.faults.elapsed(timer), context)
      }
      if case .delayedPush(let stream) = timer { faultTasks.delayedPushTasks[stream] = number }
    }
  }

  private func continueDelayedPush(on stream: Int32, _ context: ChannelHandlerContext) {
    faultTasks.delayedPushTasks[stream] = nil
    guard stateMachine.isOpen, let session, let processor else { return }
    processor.continueDelayedPush(on: stream, stateMachine.processedStreams, session: session)
    performPendingActions(context)
    flush(context)
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

  private func announce(_ parameters: Action.SettingsParameters, _ context: ChannelHandlerContext) {
    guard let session, stateMachine.isOpen else { return }
    session.acknowledgesSettings = parameters.acknowledgesClient
    session.announce(HTTP2Settings(parameters))
    if let limit = parameters.maxConcurrentStreams { processor?.streamLimit.pin(limit) }
    log.add(.settings, parameters.description, at: state.clock.now)
    flush(context)
  }

  // MARK: - Reset and silence

  /// Ends the connection with TCP RST.
  private func reset(_ context: ChannelHandlerContext) {
    log.add(.reset, "TCP RST", at: state.clock.now)
    stateMachine.closedAbruptly()
    endAttempts(context)
    recordClosing(isClient: false, isReset: true)
    hasClosedSocket = true
    // With a linger time of zero, closing discards unsent data and resets the connection (RFC 9293 section 3.6). On
    // the channel's event loop the option is set when the call returns.
    _ = (context.channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
    context.close(promise: nil)
  }

  /// Silences the connection: nothing is sent and received bytes are discarded.
  private func silenceConnection(_ context: ChannelHandlerContext) {
    stateMachine.faultSilences()
    // A shutdown in progress still ends the connection.
    cancelTimer(through: .idleCheck)
  }

  /// Silences a connection before HTTP/2.
  ///
  /// - Parameter time: The time after which the connection is closed; nil for never.
  private func silenceHandshake(for time: Duration?, _ context: ChannelHandlerContext) {
    silenceConnection(context)
    guard let time else { return }
    perform(.wait(time, .silence), context)
  }

  /// Adds to the connection's timeline and to the log that a rule affected the connection.
  private func logFault(_ injection: Injection) {
    let message = "rule \(injection.rule): \(injection.action.name.rawValue)"
    log.add(.fault, message, at: state.clock.now)
    logger.debug("\(client): \(message)")
  }

  // MARK: - Scheduling

  /// Schedules work on the connection.
  ///
  /// - Returns: The task's number in `faultTasks`.
  @discardableResult
  private func runLater(
    _ time: Duration, _ context: ChannelHandlerContext,
    _ work: @escaping @Sendable (ConnectionHandler, ChannelHandlerContext) -> Void
  ) -> Int {
    let number = faultTasks.nextNumber
    faultTasks.nextNumber += 1
    // Handler and context belong to this event loop and the task runs on it; `NIOLoopBound` checks this.
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    faultTasks.scheduled[number] = context.eventLoop.scheduleTask(in: TimeAmount(time)) {
      let (handler, context) = bound.value
      handler.faultTasks.scheduled[number] = nil
      work(handler, context)
    }
    return number
  }

  /// Cancels the task of a delayed push whose client gave up: with a rule that delays for an hour such tasks would
  /// accumulate.
  func cancelDelayedPush(on stream: Int32) {
    guard let number = faultTasks.delayedPushTasks.removeValue(forKey: stream) else { return }
    faultTasks.scheduled.removeValue(forKey: number)?.cancel()
  }

  /// Cancels all tasks that faults scheduled, because the connection ended.
  func cancelFaultTasks() {
    faultTasks.nextEvaluation?.cancel()
    for task in faultTasks.scheduled.values { task.cancel() }
    faultTasks = FaultTasks()
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
