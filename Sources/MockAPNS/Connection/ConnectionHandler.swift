import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTP2Session
import APNSMockHTTPMessage
import APNSMockInbox
import Logging
import NIOCore
import APNSMockTLSEngine

/// Channel handler of one provider connection: decrypts TLS (unless the listener is a cleartext one), parses HTTP/2,
/// passes requests to a `PushProcessor` and writes the responses.
///
/// Confined to the connection's event loop. Each batch of bytes read from the socket is decrypted, evaluated,
/// recorded and answered before the next read, and its responses leave in one write.
final class ConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The time limit for the TLS handshake.
  private static let handshakeTimeout = TimeAmount.seconds(10)
  /// The delay between the two GOAWAY frames of a shutdown, so that requests already in transit are still served.
  private static let shutdownNoticeDelay = TimeAmount.milliseconds(50)

  let log: ConnectionLog
  let transport: Transport
  /// The version of HTTP that the client speaks. HTTP/1.1 arrives as HTTP/2, translated by `HTTP1Translator`.
  private let http: ConnectionFacts.HTTPVersion
  /// The environment of the listener.
  let environment: PushEnvironment
  /// Whether pushes to device tokens are accepted. False on a listener for channel management.
  private let acceptsPushes: Bool
  let state: ServerState
  /// Buffers shared by all connections of the event loop.
  let resources: EventLoopResources
  /// A logger with the connection id as metadata. Created for each of the few log lines: stored, it would take half
  /// a kilobyte per connection.
  var logger: Logger {
    var logger = serverLogger
    logger[metadataKey: "connection"] = "\(log.id)"
    return logger
  }
  private let serverLogger: Logger

  // Exclusivity is unchecked at run time: everything here runs on the connection's event loop, and no method
  // accesses one of these properties while it calls another method that modifies it. Measured: the checks here, in
  // PushProcessor, EventLoopResources and RecordArena together took 2 % of the instructions per push
  // (`Benchmarks/instructions.py --only token 413`).
  @exclusivity(unchecked) var stateMachine: ConnectionStateMachine
  @exclusivity(unchecked) var session: HTTP2ServerSession?
  @exclusivity(unchecked) var processor: PushProcessor?
  @exclusivity(unchecked) var input = InputStatistics()
  @exclusivity(unchecked) var output = SocketOutput()
  /// When the connection was accepted.
  let openedAt = NIODeadline.now()
  /// The scheduled timer; `stateMachine.timer` is its purpose.
  private var timer: Scheduled<Void>?
  var faultTasks = FaultTasks()
  /// Whether a rule replaced the server's certificate with one that no client may accept.
  var showsBadCertificate = false
  /// Whether a stream reset on this connection has been logged.
  var hasLoggedReset = false
  /// Who ended the connection and when, once that was reported to the inbox.
  var closing: ConnectionEnd.Closing?
  /// Whether the attempts that had not ended were recorded, because the connection has.
  var hasEndedAttempts = false
  /// Whether the server has closed the socket, so that the client's FIN is not seen.
  var hasClosedSocket = false
  /// Whether an error ended the connection, and whether it is a TCP RST of the client.
  var socketError: (any Error)?

  /// What the client sent so far, for the idle timeout and for protection against floods.
  struct InputStatistics {
    /// The first bytes after decryption, for messages.
    var firstBytes: [UInt8] = []
    /// The number of bytes received on the socket.
    var bytesReceived = 0
    /// When bytes were last received.
    var lastActivity = NIODeadline.now()
    /// The same time in monotonic nanoseconds of machine time, which findings compare with those of records; 0 before.
    var lastReceivedAt: Int64 = 0
    /// When `scheduleIdleCheck` last checked for overdue streams and a stalled client.
    var lastCheck = NIODeadline.now()
    /// The number of consecutive checks at which the client was not reading.
    var stalledChecks: UInt8 = 0
    /// Whether responses wait for the client to open its flow-control window for the connection.
    var isWindowExhausted = false
  }

  struct SocketOutput {
    /// The socket that cipher text is written to directly; nil if the channel has no socket.
    var socket: NIOBSDSocket.Handle?
    /// The number of writes that the channel buffers because the socket did not accept them.
    var bufferedWrites = 0
    /// The output that waits for the store.
    var held = HeldOutput()
  }

  /// The faults of the connection, and the tasks that they have scheduled.
  struct FaultTasks {
    /// The actions that the tasks end.
    var faults = ConnectionFaults()
    /// The tasks by the number that `runLater` assigns.
    var scheduled: [Int: Scheduled<Void>] = [:]
    var nextNumber = 0
    /// The numbers of the tasks that continue delayed pushes, by stream.
    var delayedPushTasks: [Int32: Int] = [:]
    /// The next evaluation of the rules of the injection point `connection`.
    var nextEvaluation: Scheduled<Void>?
  }

  /// The client's address, for the log.
  var client: String { log.client }

  /// Creates the handler. Must be called on the connection's event loop.
  init(
    log: ConnectionLog, transport: Transport, http: ConnectionFacts.HTTPVersion = .http2, listener: Listener
  ) {
    self.log = log
    self.transport = transport
    self.http = http
    environment = listener.environment
    acceptsPushes = listener.kind != .management
    stateMachine = ConnectionStateMachine(state: transport.tls == nil ? .handshaking : .awaitingFirstByte)
    state = listener.state
    resources = .current
    serverLogger = listener.logger
  }

  // MARK: - Channel events

  func handlerAdded(context: ChannelHandlerContext) {
    // On other listeners than the TLS ones, another handler has already read from the connection.
    if context.channel.isActive { start(context) }
  }

  func channelActive(context: ChannelHandlerContext) {
    start(context)
    context.fireChannelActive()
  }

  private func start(_ context: ChannelHandlerContext) {
    log.add(.accepted, "listener=\(log.listener)", at: state.clock.now)
    if http == .http2 { output.socket = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable { $0 } }
    startHandshakeTimeout(context)
    applyAcceptFaults(context)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    receive(unwrapInboundIn(data), context)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    // Input is processed in `channelRead`, and no later handler in the pipeline needs this event.
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    // Backpressure: stop reading from a client that does not read its responses.
    let isWritable = context.channel.isWritable
    _ = context.channel.setOption(
      ChannelOptions.autoRead, value: isWritable && !stateMachine.isReadingSuspended && !output.held.stopsReading)
    if isWritable {
      input.stalledChecks = 0
      flush(context)
    }
    context.fireChannelWritabilityChanged()
  }

  func channelInactive(context: ChannelHandlerContext) {
    cancelTimer(through: .lingerTimeout)
    let closed = stateMachine.socketClosed()
    if closed.handshakeFailed, transport.tls != nil { state.connections.countHandshake(isDone: false) }
    cancelFaultTasks()
    if let session, let processor {
      let heldResponses =
        input.isWindowExhausted && output.held.parts.isEmpty ? session.responsesAwaitingWindow : nil
      endAttempts(context)
      if let heldResponses { state.inbox.addExhaustedWindow(of: processor.connection, responses: heldResponses) }
      recordClosing(isClient: closed.isInitiatedByClient, isFinal: true)
    }
    log.add(.closed, "", at: state.clock.now)
    output.held.removeAll()
    session = nil
    processor = nil
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    logger.debug("\(client): \(error)")
    socketError = socketError ?? error
    context.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case let action as ConnectionAction: performRequested(action, context)
    case is Connections.RulesChanged: evaluateConnectionRules(context)
    case is Connections.ShutdownRequested: shutDown(context)
    default: context.fireUserInboundEventTriggered(event)
    }
  }

  // MARK: - Bytes to events

  /// Processes the bytes that `transport` holds.
  func handleReceivedBytes(_ context: ChannelHandlerContext) {
    let isHandshaking = stateMachine.state == .handshaking
    do {
      if isHandshaking {
        switch try transport.handshake() {
        case .waiting: return writeCipherText(context)
        case .clientHelloReceived:
          guard try applyTLSFaults(context) else { return }
          return handleReceivedBytes(context)
        case .done: try open(context)
        }
      }
      if stateMachine.isOpen { try receiveFrames(context) }
      if isHandshaking { transport.releaseBuffers() }
    } catch let failure as HTTP2Failure {
      refuse(failure, context)
    } catch {
      let isHandshaking = stateMachine.state == .handshaking
      logClientError(isHandshaking ? .handshake : .protocolError, "\(error)\(handshakeAdvice(for: "\(error)"))")
      if isHandshaking {
        log.add(.handshake, "\(error)", at: state.clock.now)
        state.connections.countHandshake(isDone: false)
      }
      writeCipherText(context)
      close(context)
    }
  }

  private func receiveFrames(_ context: ChannelHandlerContext) throws {
    guard let session else { return }
    reading: while stateMachine.isOpen {
      switch try transport.read(into: resources.plainText) {
      case .bytes(let count):
        let bytes = UnsafeRawBufferPointer(rebasing: resources.plainText[..<count])
        if input.firstBytes.isEmpty { input.firstBytes = Array(bytes.prefix(ConnectionCloseReason.quotedByteCount)) }
        try session.receive(bytes)
        handleEvents(of: session, context)
        if processor?.faultScope.hasConnectionRules == true { evaluateConnectionRules(context) }
      case .waiting:
        if let flood = floodCloseReason(session) {
          sendGoAwayAndClose(context, flood)
          return close(context)
        }
        break reading
      case .closed:
        recordClosing(isClient: stateMachine.isCloseByClient, isOrderly: true)
        flush(context)
        return close(context)
      }
    }
    flush(context)
  }

  func handleEvents(of session: HTTP2ServerSession, _ context: ChannelHandlerContext) {
    guard session.hasEvents, let processor else { return }
    let policy = processor.beginBatch()
    while let event = session.nextEvent() {
      switch event {
      case .request(let stream):
        switch stateMachine.requestReceived(on: stream.id) {
        case .process:
          processor.process(stream, under: policy, stateMachine.processedStreams, session: session)
          if !processor.connectionActions.isEmpty { performPendingActions(context) }
        case .recordAsUnprocessed: processor.recordUnprocessed(stream, stateMachine.processedStreams)
        }
      case .aborted(let stream):
        processor.recordUnfinished(
          stream, stream.violation != nil ? .malformed : session.hasExcluded(stream) ? .refused : .cancelled)
      case .cancelled(let stream):
        processor.endWithoutResponse(
          on: stream, session.hasExcluded(stream) ? .refused : stream.resetSent == nil ? .cancelled : .reset,
          reset: stream.resetSent)
        cancelDelayedPush(on: stream.request.stream)
      case .reset(let stream, let code):
        if !stream.isRefused { logReset(stream, code) }
        processor.recordUnfinished(
          stream, stream.violation != nil ? .malformed : code == .refusedStream ? .refused : .reset, reset: code)
        log.add(.reset, "stream=\(stream.request.stream) \(code.name)", at: state.clock.now)
      case .responseSent(let id):
        processor.endAttempt(on: id, .response)
      case .responseDropped(let stream):
        processor.goAway = processor.goAway ?? session.goAwaySent.map(WireDetails.GoAway.init)
        processor.endWithoutResponse(on: stream, session.hasExcluded(stream) ? .refused : .disconnected)
      case .excessStreams(let stream, let limit):
        processor.excess = (stream, limit)
        sendGoAwayAndClose(context, .excessStreams(limit: limit))
      case .goAway(let code):
        logger.debug("\(client): sent GOAWAY with code \(code)")
      }
    }
  }

  /// Ends the attempts that have not ended, because the connection has: nothing more is sent or received.
  func endAttempts(_ context: ChannelHandlerContext) {
    guard !hasEndedAttempts, let session, let processor else { return }
    commitRecords(of: session, context)
    hasEndedAttempts = true
    processor.goAway = processor.goAway ?? session.goAwaySent.map(WireDetails.GoAway.init)
    processor.beginBatch()
    let last = stateMachine.processedStreams.lastAccepted
    for stream in session.unansweredStreams where !stream.isReported {
      processor.recordUnfinished(
        stream, stream.violation != nil ? .malformed : stream.id > last ? .refused : .incomplete)
    }
    processor.endAttempts(excludedAfter: last)
    commitRecords(of: session, context)
  }

  // MARK: - Opening

  private func open(_ context: ChannelHandlerContext) throws {
    cancelTimer(through: .handshakeTimeout)
    let tls = transport.tls
    let certificate = try tls?.peerCertificate.map { try ProviderCertificate(PeerCertificate(der: $0)) }
    let facts = ConnectionFacts(
      id: log.id, listener: log.listener, environment: environment, client: client, sni: tls?.serverName,
      tls: tls?.protocolVersion, http: http, certificate: certificate)
    let streams = certificate == nil ? apnsSettings.firstStreams : apnsSettings.maxStreams
    let processor = PushProcessor(state: state, facts: facts, log: log, acceptsPushes: acceptsPushes)
    processor.isUnverified = showsBadCertificate
    let parameters = faultedSettings(processor.connectionTraffic, context)
    if let limit = parameters?.maxConcurrentStreams { processor.streamLimit.pin(limit) }
    let session = try HTTP2ServerSession(
      maxConcurrentStreams: parameters?.maxConcurrentStreams ?? UInt32(clamping: streams),
      settings: HTTP2Settings(parameters), pool: resources.streamPool,
      allowsReordering: state.inbox.writer?.options.durability == .answer)
    if let parameters { session.acknowledgesSettings = parameters.acknowledgesClient }
    self.session = session
    self.processor = processor
    let delay = parameters?.delay ?? .zero
    stateMachine.handshakeCompleted(delaysSettings: delay > .zero)
    log.opened(facts)
    if tls != nil { state.connections.countHandshake(isDone: true) }
    let version = facts.tls ?? "no TLS, \(http.rawValue)"
    log.add(
      .handshake,
      "\(version)\(facts.sni.map { " sni=\($0)" } ?? "")\(certificate == nil ? "" : " client certificate")",
      at: state.clock.now)
    log.add(.settings, "max_concurrent_streams=\(processor.streamLimit.limit)", at: state.clock.now)
    logger.debug("\(client): \(version)\(certificate == nil ? "" : ", client certificate"), open")
    let isUsable = certificate?.isUsable(in: environment) ?? true
    guard delay > .zero else { return sendSettings(isUsable: isUsable, context) }
    writeCipherText(context)
    delaySettings(by: delay, context) { handler, context in handler.sendSettings(isUsable: isUsable, context) }
  }

  /// Sends the first SETTINGS, then starts the idle check and the connection rules.
  ///
  /// - Parameter isUsable: Whether the client certificate, if there is one, is valid for the listener's environment.
  private func sendSettings(isUsable: Bool, _ context: ChannelHandlerContext) {
    // The first SETTINGS are sent immediately, before anything from the client was read (Protocol.md, section 1.3).
    flush(context)
    guard isUsable else { return sendGoAwayAndClose(context, .wrongEnvironment(environment)) }
    scheduleIdleCheck(context)
    evaluateConnectionRules(context)
  }

  /// The active APNs settings.
  var apnsSettings: APNSSettings { state.activePolicy.load().settings }

  // MARK: - Timer

  /// Starts the timer that closes the connection if the TLS handshake is not complete in time.
  func startHandshakeTimeout(_ context: ChannelHandlerContext) {
    schedule(.handshakeTimeout, after: Self.handshakeTimeout, context) { handler, context in
      handler.logClientError(.handshake, "no TLS handshake within 10 s, closed")
      context.close(promise: nil)
    }
  }

  private func shutDown(_ context: ChannelHandlerContext) {
    switch stateMachine.shutdownRequested() {
    case .none: return
    case .close: return close(context)
    case .announceShutdown(let sendsGoAway):
      if sendsGoAway { session?.announceShutdown() }
      flush(context)
    }
    schedule(.shutdownNotice, after: Self.shutdownNoticeDelay, context) { handler, context in
      // A fault may have silenced the connection since.
      if handler.stateMachine.isOpen { handler.sendGoAwayAndClose(context, .shutdown) } else { handler.close(context) }
    }
  }

  /// Schedules the timer for a purpose, unless it is scheduled for a later one.
  func schedule(
    _ purpose: ConnectionStateMachine.TimerPurpose, after delay: TimeAmount, _ context: ChannelHandlerContext,
    _ work: @escaping @Sendable (ConnectionHandler, ChannelHandlerContext) -> Void
  ) {
    guard stateMachine.timerRequested(purpose) else { return }
    timer?.cancel()
    // Handler and context belong to this event loop and the task runs on it; `NIOLoopBound` checks this.
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(in: delay) {
      let (handler, context) = bound.value
      handler.stateMachine.timerElapsed()
      work(handler, context)
    }
  }

  /// Cancels the timer if it is scheduled for this purpose or an earlier one.
  func cancelTimer(through last: ConnectionStateMachine.TimerPurpose) {
    guard stateMachine.timerCancelled(through: last) else { return }
    timer?.cancel()
    timer = nil
  }
}
