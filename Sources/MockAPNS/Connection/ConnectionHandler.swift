import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTP2Session
import APNSMockHTTPMessage
import APNSMockInbox
import Logging
import NIOCore
import APNSMockPlatformLibc
import APNSMockTLSEngine

/// Channel handler of one provider connection: decrypts TLS (unless the listener is a cleartext one), parses HTTP/2,
/// passes requests to a `PushProcessor` and writes the responses.
///
/// Confined to the connection's event loop. Each batch of bytes read from the socket is decrypted, evaluated,
/// recorded and answered before the next read, and its responses leave in one write. Each event is reported to
/// `stateMachine`, which decides what follows; `writeFrames` is the last step of every event.
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

  var stateMachine: ConnectionStateMachine
  var session: HTTP2ServerSession?
  var processor: PushProcessor?
  /// The socket that is read and written directly; nil if the channel has no socket.
  private(set) var socket: NIOBSDSocket.Handle?
  /// When the connection was accepted.
  let openedAt = NIODeadline.now()
  /// The scheduled timer; `stateMachine.timer` is its purpose.
  private var timer: Scheduled<Void>?
  var faultTimers = FaultTimers()

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
    if http == .http2 { socket = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable { $0 } }
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
    stateMachine.writabilityChanged(context.channel.isWritable)
    writeFrames(context)
    context.fireChannelWritabilityChanged()
  }

  func channelInactive(context: ChannelHandlerContext) {
    cancelTimer(through: .lingerTimeout)
    faultTimers.cancelAll()
    let closed = stateMachine.socketClosed()
    if closed.handshakeFailed, transport.tls != nil { state.connections.countHandshake(isDone: false) }
    if let session, let processor {
      let heldResponses = closed.isWindowExhausted ? session.responsesAwaitingWindow : nil
      if closed.endsAttempts { endAttempts(context) }
      if let heldResponses { state.inbox.addExhaustedWindow(of: processor.connection, responses: heldResponses) }
      recordClosing(isClient: closed.isInitiatedByClient, isFinal: true)
    }
    log.add(.closed, "", at: state.clock.now)
    session = nil
    processor = nil
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    logger.debug("\(client): \(error)")
    stateMachine.end.socketFailed((error as? IOError)?.errnoCode == ECONNRESET ? .reset : .other)
    context.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case let action as ConnectionAction: performRequested(action, context)
    case is Connections.RulesChanged: evaluateConnectionRules(context)
    case is Connections.ShutdownRequested: shutDown(context)
    default: return context.fireUserInboundEventTriggered(event)
    }
    writeFrames(context)
  }

  // MARK: - Opening

  /// Creates the HTTP/2 session, once the handshake is complete.
  func open(_ context: ChannelHandlerContext) throws {
    cancelTimer(through: .handshakeTimeout)
    let tls = transport.tls
    let certificate = try tls?.peerCertificate.map { try ProviderCertificate(PeerCertificate(der: $0)) }
    let facts = ConnectionFacts(
      id: log.id, listener: log.listener, environment: environment, client: client, sni: tls?.serverName,
      tls: tls?.protocolVersion, http: http, certificate: certificate)
    let streams = certificate == nil ? apnsSettings.firstStreams : apnsSettings.maxStreams
    let processor = PushProcessor(state: state, facts: facts, log: log, acceptsPushes: acceptsPushes)
    processor.upstreamReceiver = makeUpstreamReceiver(context)
    processor.isUnverified = stateMachine.showsDefectiveCertificate
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
    // Everything else waits with the SETTINGS. The few bytes already read stay with the TLS connection; the rest waits in
    // the socket, whose buffer is bounded.
    writeCipherText(context)
    wait(delay, for: .settings(isUsable: isUsable), context)
  }

  /// Sends the first SETTINGS, then starts the idle check and the connection rules.
  ///
  /// - Parameter isUsable: Whether the client certificate, if there is one, is valid for the listener's environment.
  func sendSettings(isUsable: Bool, _ context: ChannelHandlerContext) {
    // The first SETTINGS are sent immediately, before anything from the client was read (Protocol.md, section 1.3).
    writeFrames(context)
    guard isUsable else { return sendGoAwayAndClose(.wrongEnvironment(environment), context) }
    scheduleIdleCheck(context)
    evaluateConnectionRules(context)
  }

  /// The active APNs settings.
  var apnsSettings: APNSSettings { state.activePolicy.load().settings }

  // MARK: - Timer

  /// Starts the timer that closes the connection if the TLS handshake is not complete in time.
  func startHandshakeTimeout(_ context: ChannelHandlerContext) {
    schedule(.handshakeTimeout, after: Self.handshakeTimeout, context)
  }

  private func shutDown(_ context: ChannelHandlerContext) {
    switch stateMachine.shutdownRequested() {
    case .none: return
    case .close: return close(context)
    case .announceShutdown(let sendsGoAway):
      if sendsGoAway { session?.announceShutdown() }
    }
    schedule(.shutdownNotice, after: Self.shutdownNoticeDelay, context)
  }

  /// Schedules the timer for a purpose, unless it is scheduled for a later one.
  func schedule(
    _ purpose: ConnectionStateMachine.TimerPurpose, after delay: TimeAmount, _ context: ChannelHandlerContext
  ) {
    guard stateMachine.timerRequested(purpose) else { return }
    timer?.cancel()
    // Handler and context belong to this event loop and the task runs on it; `NIOLoopBound` checks this.
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(in: delay) {
      let (handler, context) = bound.value
      handler.perform(handler.stateMachine.timerElapsed(), context)
    }
  }

  private func perform(_ action: ConnectionStateMachine.TimerAction, _ context: ChannelHandlerContext) {
    switch action {
    case .none: return
    case .failHandshake:
      logClientError(.handshake, "no TLS handshake within 10 s, closed")
      context.close(promise: nil)
    case .check: check(context)
    case .sendGoAwayAndClose: sendGoAwayAndClose(.shutdown, context)
    case .close: close(context)
    case .closeSocket: closeSocket(context)
    }
    writeFrames(context)
  }

  /// Cancels the timer if it is scheduled for this purpose or an earlier one.
  func cancelTimer(through last: ConnectionStateMachine.TimerPurpose) {
    guard stateMachine.timerCancelled(through: last) else { return }
    timer?.cancel()
    timer = nil
  }
}
