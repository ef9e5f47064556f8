import FaultModel
import Faults
import HTTP2Session
import Inbox
import Logging
import NIOCore
import TLSEngine

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Application of fault decisions to whole connections: handshakes, SETTINGS, GOAWAY, resets, silence.
extension ConnectionHandler {
  private var plan: FaultPlan { state.activePolicy.load().plan }

  // MARK: - Before HTTP/2

  /// Applies the fault rules of the injection point `accept`.
  func applyAcceptFaults(_ context: ChannelHandlerContext) {
    let plan = plan
    guard plan.isActive(at: .accept) else { return }
    let decision = plan.decide(Traffic(connection: beginning()), at: .accept, now: MachineTime.nanoseconds)
    guard let outcome = decision.outcome else { return }
    note(outcome)
    switch outcome.action {
    case .refuse: reset(context)
    case .silence(let time): silenceConnection(for: time, thenCloses: true, context)
    default: break
    }
  }

  /// Applies the fault rules of the injection point `tls`, once the ClientHello was received.
  ///
  /// - Returns: Whether the handshake continues.
  func applyTLSFaults(_ context: ChannelHandlerContext) throws -> Bool {
    let traffic = Traffic(connection: beginning())
    let decision = plan.decide(traffic, at: .tls, now: MachineTime.nanoseconds)
    var badCertificate: Action.CertificateDefect?
    for injection in decision.additions {
      note(injection)
      if case .certificate(let kind) = injection.action { badCertificate = kind }
    }
    if let outcome = decision.outcome {
      note(outcome)
      switch outcome.action {
      case .stall(let time, .answer):
        delayHandshake(time, badCertificate, context)
        return false
      case .stall(let time, let ending):
        silenceConnection(for: time, thenCloses: ending == .close, context)
        return false
      case .alert(let code):
        phase = .closing
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
    try tls.proceed(with: badCertificate.map { try state.badCertificates.context(for: $0) })
  }

  /// Delays the rest of the handshake, or suspends it for ever if `time` is nil. Nothing is read during a delay, so
  /// that no input accumulates.
  private func delayHandshake(
    _ time: Duration?, _ badCertificate: Action.CertificateDefect?, _ context: ChannelHandlerContext
  ) {
    phase = .silenced
    cancelDeadlines(upTo: .handshake)
    guard let time else { return }
    _ = context.channel.setOption(ChannelOptions.autoRead, value: false)
    later(time, context) { handler, context in
      guard handler.phase == .silenced else { return }
      handler.phase = .handshake
      handler.expectHandshake(context)
      _ = context.channel.setOption(ChannelOptions.autoRead, value: true)
      do {
        try handler.proceed(showing: badCertificate)
        handler.process(context)
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
    guard plan.isActive(at: .settings) else { return nil }
    var first: Action.SettingsParameters?
    var delay = Duration.zero
    let decision = plan.decide(Traffic(connection: connection), at: .settings, now: MachineTime.nanoseconds)
    for injection in decision.additions {
      guard case .settings(let order) = injection.action else { continue }
      note(injection)
      delay = max(delay, order.delay)
      if order.after > .zero {
        // `after` counts from the first SETTINGS frame, which this rule may delay.
        later(order.after + order.delay, context) { handler, context in handler.announce(order, context) }
      } else {
        first = order
      }
    }
    if delay > .zero {
      first = first ?? Action.SettingsParameters()
      first?.delay = delay
    }
    return first
  }

  /// Delays the first SETTINGS frame, and with it everything else the server sends.
  ///
  /// Reading stops for this time. The few bytes already read stay with the TLS connection; the rest waits in the
  /// socket, whose buffer is bounded.
  func delaySettings(
    by delay: Duration, _ context: ChannelHandlerContext,
    then begin: @escaping @Sendable (ConnectionHandler, ChannelHandlerContext) -> Void
  ) {
    phase = .settingsDelayed
    _ = context.channel.setOption(ChannelOptions.autoRead, value: false)
    later(delay, context) { handler, context in
      guard handler.phase == .settingsDelayed else { return }
      handler.phase = .open
      _ = context.channel.setOption(ChannelOptions.autoRead, value: true)
      handler.lastActivity = .now()
      begin(handler, context)
      handler.process(context)
    }
  }

  /// The connection's properties that are known before HTTP/2 starts.
  private func beginning() -> Traffic.Connection {
    Traffic.Connection(
      number: log.number, client: log.clientAddress, listener: log.listener,
      serverName: tls.serverName)
  }

  // MARK: - On an open connection

  /// Evaluates the rules of the injection point `connection`, now and again whenever one of them could fire.
  func evaluateConnectionRules(_ context: ChannelHandlerContext) {
    nextEvaluation?.cancel()
    nextEvaluation = nil
    guard phase == .open, let processor else { return }
    let plan = plan
    guard plan.isActive(at: .connection) else { return }
    let now = MachineTime.nanoseconds
    var connection = processor.traffic
    connection.age = (NIODeadline.now() - openedAt).nanoseconds
    connection.idle = (NIODeadline.now() - lastActivity).nanoseconds
    let decision = plan.decide(Traffic(connection: connection), at: .connection, now: now)
    for injection in decision.additions + [decision.outcome].compactMap(\.self) {
      note(injection)
      self.processor?.connectionActions += connectionActions(of: injection)
    }
    performPendingActions(context)
    flush(context)
    guard phase == .open, let next = plan.nextEvaluation(after: now, for: connection) else { return }
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    nextEvaluation = context.eventLoop.scheduleTask(in: .nanoseconds(max(0, next - now))) {
      bound.value.0.evaluateConnectionRules(bound.value.1)
    }
  }

  private func connectionActions(of injection: Injection) -> [ConnectionAction] {
    switch injection.action {
    case .goAway(let order): [.goAway(order, lastStream: lastStream(of: order))]
    case .resetConnection: [.reset]
    case .close: [.close]
    case .drain(let time, _): [.drain(injection, for: time)]
    case .starveWindow(let time): [.starveWindow(for: time)]
    case .settings(let order): [.announce(order)]
    case .ignorePings(let time): [.ignorePings(for: time)]
    case .silence(let time): [.silence(for: time)]
    default: []
    }
  }

  /// Performs an action that was requested over the admin API.
  func carryOut(_ order: ConnectionCommand, _ context: ChannelHandlerContext) {
    switch order {
    case .reset: reset(context)
    case .close: close(context)
    case .goAway(let order):
      guard phase == .open else { return close(context) }
      processor?.connectionActions.append(.goAway(order, lastStream: lastStream(of: order)))
      performPendingActions(context)
      flush(context)
    }
  }

  /// Returns the last stream for a GOAWAY that no push triggered: the last stream received, or the maximum for
  /// `all`.
  private func lastStream(of order: Action.GoAwayParameters) -> Int32 {
    // A later GOAWAY never names a higher stream (RFC 9113 section 6.8).
    min(order.lastStream == .all ? .max : session?.lastProcessedStream ?? 0, processor?.lastServedStream ?? .max)
  }

  /// Performs the pending actions that pushes and rules requested for the connection.
  func performPendingActions(_ context: ChannelHandlerContext) {
    guard let connectionActions = processor?.connectionActions, !connectionActions.isEmpty else { return }
    processor?.connectionActions = []
    for action in connectionActions where phase == .open { carryOut(action, context) }
  }

  private func carryOut(_ action: ConnectionAction, _ context: ChannelHandlerContext) {
    switch action {
    case .leave(let closeReason): leave(context, closeReason)
    case .goAway(let order, let lastStream): sendGoAway(order, lastStream: lastStream, context)
    case .close:
      log.add(.fault, "closed without GOAWAY", at: state.clock.now)
      isCut = true
      flush(context)
      close(context)
    case .reset:
      isCut = true
      flush(context)
      reset(context)
    case .starveWindow(let time):
      session?.withholdsWindow = true
      guard let time else { return }
      later(time, context) { handler, context in
        handler.session?.withholdsWindow = false
        handler.flush(context)
      }
    case .ignorePings(let time):
      session?.acknowledgesPings = false
      guard let time else { return }
      later(time, context) { handler, _ in handler.session?.acknowledgesPings = true }
    case .silence(let time):
      flush(context)
      guard phase == .open else { return }
      tls.releaseBuffers()
      silenceConnection(for: time, thenCloses: true, context)
    case .announce(let order):
      if order.after > .zero {
        later(order.after, context) { handler, context in handler.announce(order, context) }
      } else {
        announce(order, context)
      }
    case .drain(let injection, let time):
      guard case .drain(_, let answer) = injection.action else { return }
      processor?.drain(by: injection, answer)
      later(time, context) { handler, context in handler.leave(context, .shutdown) }
    case .wake(let stream, let time):
      delayedPushTasks[stream] = later(time, context) { handler, context in
        handler.delayedPushTasks[stream] = nil
        guard let session = handler.session, handler.phase == .open else { return }
        handler.processor?.wake(stream, session: session)
        handler.performPendingActions(context)
        handler.flush(context)
      }
    }
  }

  private func sendGoAway(_ order: Action.GoAwayParameters, lastStream: Int32, _ context: ChannelHandlerContext) {
    let debugData = Array(order.debugData.utf8)
    if order.twice, lastStream != .max, processor?.lastServedStream == .max {
      session?.sendGoAway(lastStream: .max, rawCode: order.code, debugData: debugData)
    }
    session?.sendGoAway(lastStream: lastStream, rawCode: order.code, debugData: debugData)
    processor?.excludeStreams(after: lastStream)
    log.add(
      .goAway, "\(HTTP2ErrorCode.name(of: order.code)) last_stream=\(lastStream) \(order.debugData)",
      at: state.clock.now)
    guard let time = order.closeAfter else { return }
    later(time, context) { handler, context in handler.close(context) }
  }

  private func announce(_ order: Action.SettingsParameters, _ context: ChannelHandlerContext) {
    guard let session, phase == .open else { return }
    session.acknowledgesSettings = order.acknowledgesClient
    session.announce(HTTP2Settings(order))
    if let limit = order.maxConcurrentStreams { processor?.streams.fix(limit) }
    log.add(.settings, order.words, at: state.clock.now)
    flush(context)
  }

  // MARK: - Reset and silence

  /// Ends the connection with TCP RST.
  private func reset(_ context: ChannelHandlerContext) {
    log.add(.reset, "TCP RST", at: state.clock.now)
    phase = .closing
    // With a linger time of zero, closing discards unsent data and resets the connection (RFC 9293 section 3.6). On
    // the channel's event loop the option is set when the call returns.
    _ = (context.channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
    context.close(promise: nil)
  }

  /// Silences the connection for a time, for ever if nil: nothing is sent and received bytes are discarded.
  private func silenceConnection(for time: Duration?, thenCloses closes: Bool, _ context: ChannelHandlerContext) {
    phase = .silenced
    // A shutdown in progress still ends the connection.
    cancelDeadlines(upTo: .watch)
    guard let time, closes else { return }
    later(time, context) { _, context in context.close(promise: nil) }
  }

  /// Records in the connection's timeline and in the log that a rule affected the connection.
  private func note(_ injection: Injection) {
    let words = "rule \(injection.rule): \(injection.action.name.rawValue)"
    log.add(.fault, words, at: state.clock.now)
    logger.debug("\(client): \(words)")
  }

  // MARK: - Scheduling

  /// Schedules work on the connection.
  ///
  /// - Returns: The task's key in `plannedFaults`.
  @discardableResult
  private func later(
    _ time: Duration, _ context: ChannelHandlerContext,
    _ work: @escaping @Sendable (ConnectionHandler, ChannelHandlerContext) -> Void
  ) -> Int {
    let number = faultsPlanned
    faultsPlanned += 1
    // Handler and context belong to this event loop and the task runs on it; `NIOLoopBound` checks this.
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    plannedFaults[number] = context.eventLoop.scheduleTask(in: TimeAmount(time)) {
      let (handler, context) = bound.value
      handler.plannedFaults[number] = nil
      work(handler, context)
    }
    return number
  }

  /// Cancels the task of a delayed push whose client gave up: with a rule that delays for an hour such tasks would
  /// accumulate.
  func cancelDelayedPush(of stream: Int32) {
    guard let number = delayedPushTasks.removeValue(forKey: stream) else { return }
    plannedFaults.removeValue(forKey: number)?.cancel()
  }

  /// Cancels all tasks that faults scheduled, because the connection ended.
  func cancelFaultTasks() {
    nextEvaluation?.cancel()
    nextEvaluation = nil
    for task in plannedFaults.values { task.cancel() }
    plannedFaults = [:]
    delayedPushTasks = [:]
  }
}

extension HTTP2Settings {
  /// Creates the SETTINGS values of a fault action.
  init(_ order: Action.SettingsParameters?) {
    self.init(
      maxConcurrentStreams: order?.maxConcurrentStreams, initialWindowSize: order?.initialWindowSize,
      maxHeaderListSize: order?.maxHeaderListSize)
  }
}

extension Action.SettingsParameters {
  /// A description for the connection's timeline.
  fileprivate var words: String {
    let parts: [(String, UInt32?)] = [
      ("max_concurrent_streams", maxConcurrentStreams), ("initial_window_size", initialWindowSize),
      ("max_header_list_size", maxHeaderListSize),
    ]
    return parts.compactMap { name, value in value.map { "\(name)=\($0)" } }.joined(separator: " ")
  }
}
