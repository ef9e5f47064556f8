import APNSRules
import FaultModel
import Faults
import HTTP2Session
import HTTPMessage
import Inbox
import Logging
import NIOCore
import TLSEngine

/// Channel handler of one provider connection: decrypts TLS, parses HTTP/2, passes requests to a `PushProcessor` and
/// writes the responses.
///
/// Confined to the connection's event loop. Each batch of bytes read from the socket is decrypted, evaluated,
/// recorded and answered before the next read, and its responses leave in one write.
final class ConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  enum Phase {
    /// Nothing received yet. The first byte distinguishes TLS from plain text.
    case firstByte
    case handshake
    /// The handshake is done, but a fault delays the first SETTINGS frame. Nothing is read.
    case settingsDelayed
    case open
    /// A fault silences the connection: nothing is sent, received bytes are discarded.
    case silenced
    /// The last bytes are written; received bytes are discarded.
    case closing
  }

  /// The purpose of the connection's timer. At most one is scheduled: a later stage replaces an earlier one, never
  /// the reverse.
  enum Deadline: UInt8, Comparable {
    /// Closes the connection if the TLS handshake is not complete.
    case handshake
    /// The next check of an open connection for idleness and for a stalled client.
    case watch
    /// Sends the second GOAWAY of a shutdown.
    case shutdownNotice
    /// Closes the connection although streams are still open after GOAWAY.
    case drain
    /// Closes the socket if the client has not closed it after the last bytes.
    case linger

    static func < (first: Deadline, second: Deadline) -> Bool { first.rawValue < second.rawValue }
  }

  /// The time limit for the TLS handshake.
  private static let handshakeTimeout = TimeAmount.seconds(10)
  /// The delay between the two GOAWAY frames of a shutdown, so that requests already in transit are still served.
  private static let shutdownNotice = TimeAmount.milliseconds(50)

  let log: ConnectionLog
  let tls: TLSConnection
  let state: ServerState
  /// Buffers shared by all connections of the event loop.
  let scratch: LoopScratch
  /// A logger with the connection id as metadata. Created for each of the few log lines: stored, it would take half
  /// a kilobyte per connection.
  var logger: Logger {
    var logger = serverLogger
    logger[metadataKey: "connection"] = "\(log.id)"
    return logger
  }
  private let serverLogger: Logger

  // Exclusivity is unchecked at run time: everything here runs on the connection's event loop, and no method
  // accesses one of these properties while it calls another method that modifies it.
  @exclusivity(unchecked) var phase = Phase.firstByte
  @exclusivity(unchecked) var session: HTTP2ServerSession?
  @exclusivity(unchecked) var processor: PushProcessor?
  @exclusivity(unchecked) var lastActivity = NIODeadline.now()
  /// When the connection was accepted.
  let openedAt = NIODeadline.now()
  /// The number of bytes received on the socket.
  @exclusivity(unchecked) var bytesReceived = 0
  /// When `scheduleIdleCheck` last checked for overdue streams and a stalled client.
  @exclusivity(unchecked) var lastCheck = NIODeadline.now()
  /// The number of consecutive checks at which the client was not reading.
  var stalledChecks: UInt8 = 0
  /// Whether a stream reset on this connection has been logged.
  var hasLoggedReset = false
  /// The purpose of `timer`; nil if nothing is scheduled.
  private var deadline: Deadline?
  private var timer: Scheduled<Void>?
  /// Whether the connection ends immediately: responses already submitted are still written, further requests are not
  /// processed.
  @exclusivity(unchecked) var isCut = false
  @exclusivity(unchecked) var isFlushing = false
  /// The socket that cipher text is written to directly; nil if the channel has no socket.
  @exclusivity(unchecked) var socket: NIOBSDSocket.Handle?
  /// The number of writes that the channel buffers because the socket did not accept them.
  @exclusivity(unchecked) var writesWaiting = 0
  /// Tasks that faults have scheduled on this connection, by a number that `later` assigns.
  var plannedFaults: [Int: Scheduled<Void>] = [:]
  var faultsPlanned = 0
  /// The numbers in `plannedFaults` of the tasks that continue delayed pushes, by stream.
  var delayedPushTasks: [Int32: Int] = [:]
  /// The next scheduled evaluation of the rules of the injection point `connection`.
  var nextEvaluation: Scheduled<Void>?
  /// Whether GOAWAY was sent: the connection closes after its last open stream.
  @exclusivity(unchecked) var isDraining = false
  @exclusivity(unchecked) var firstBytes: [UInt8] = []

  /// The client's address, for the log.
  var client: String { log.client }

  /// Creates the handler. Must be called on the connection's event loop.
  init(log: ConnectionLog, tls: TLSConnection, state: ServerState, logger: Logger) {
    self.log = log
    self.tls = tls
    self.state = state
    scratch = .current
    serverLogger = logger
  }

  // MARK: - Channel events

  func channelActive(context: ChannelHandlerContext) {
    log.add(.accepted, "listener=\(log.listener)", at: state.clock.now)
    socket = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable { $0 }
    expectHandshake(context)
    applyAcceptFaults(context)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    takeInput(beginningWith: unwrapInboundIn(data), context)
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    // Input is processed in `channelRead`, and no later handler in the pipeline needs this event.
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    // Backpressure: stop reading from a client that does not read its responses.
    let isWritable = context.channel.isWritable
    _ = context.channel.setOption(ChannelOptions.autoRead, value: isWritable && phase != .settingsDelayed)
    if isWritable {
      stalledChecks = 0
      flush(context)
    }
    context.fireChannelWritabilityChanged()
  }

  func channelInactive(context: ChannelHandlerContext) {
    cancelDeadlines(upTo: .linger)
    if phase == .handshake { state.connections.countHandshake(isDone: false) }
    cancelFaultTasks()
    if let session {
      processor?.beginBatch()
      processor?.abandonAll()
      for stream in session.unansweredStreams where !stream.isReported { processor?.recordUnfinished(stream) }
      processor?.commit()
    }
    noteEnd(byClient: phase == .open)
    log.add(.closed, "", at: state.clock.now)
    session = nil
    processor = nil
    phase = .closing
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    logger.debug("\(client): \(error)")
    context.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if let order = event as? ConnectionCommand { return carryOut(order, context) }
    if event is Connections.RulesChanged { return evaluateConnectionRules(context) }
    guard event is Connections.ShutdownRequested else { return context.fireUserInboundEventTriggered(event) }
    guard phase == .open, let session else { return close(context) }
    // Already draining: the connection closes after its last open stream.
    guard !isDraining else { return }
    // Not after a fault's GOAWAY, which named a lower stream.
    if processor?.lastServedStream == .max { session.announceShutdown() }
    flush(context)
    schedule(.shutdownNotice, after: Self.shutdownNotice, context) { handler, context in
      // A fault may have silenced the connection since.
      if handler.phase == .open { handler.leave(context, .shutdown) } else { handler.close(context) }
    }
  }

  // MARK: - Bytes to events

  func process(_ context: ChannelHandlerContext) {
    let isBeginning = phase == .handshake
    do {
      if phase == .handshake {
        switch try tls.handshake() {
        case .waiting: return writeCipherText(context)
        case .greeted:
          guard try applyTLSFaults(context) else { return }
          return process(context)
        case .done: try open(context)
        }
      }
      if phase == .open { try receive(context) }
      if isBeginning { tls.releaseBuffers() }
    } catch let failure as HTTP2Failure {
      refuse(failure, context)
    } catch {
      logClientError(phase == .handshake ? .handshake : .protocolError, "\(error)\(handshakeAdvice(for: "\(error)"))")
      if phase == .handshake {
        log.add(.handshake, "\(error)", at: state.clock.now)
        state.connections.countHandshake(isDone: false)
      }
      writeCipherText(context)
      close(context)
    }
  }

  private func receive(_ context: ChannelHandlerContext) throws {
    guard let session else { return }
    reading: while phase == .open {
      switch try tls.read(into: scratch.input) {
      case .bytes(let count):
        let bytes = UnsafeRawBufferPointer(rebasing: scratch.input[..<count])
        if firstBytes.isEmpty { firstBytes = Array(bytes.prefix(ConnectionCloseReason.beginningSize)) }
        try session.receive(bytes)
        handleEvents(of: session, context)
        if processor?.hasConnectionRules == true { evaluateConnectionRules(context) }
      case .waiting:
        if isFloodOfKeyUpdates(ofBytes: bytesReceived) {
          leave(context, .keyUpdates(tls.keyUpdates))
          return close(context)
        }
        if isFlood(ofBytes: bytesReceived, session) {
          leave(context, .flood(bytes: bytesReceived, ofRequests: session.requestByteCount))
          return close(context)
        }
        break reading
      case .closed:
        noteEnd(byClient: true)
        flush(context)
        return close(context)
      }
    }
    flush(context)
  }

  func handleEvents(of session: HTTP2ServerSession, _ context: ChannelHandlerContext) {
    guard session.hasEvents, let processor else { return }
    let terms = processor.beginBatch()
    while let event = session.nextEvent() {
      switch event {
      case .request(let stream) where phase != .open || isCut:
        // An earlier push in the same read ended the connection.
        processor.recordUnprocessed(stream, isCutByFault: isCut && !isDraining)
      case .request(let stream):
        processor.take(stream, on: terms, session: session)
        if !processor.connectionActions.isEmpty { performPendingActions(context) }
      case .aborted(let stream):
        processor.recordUnfinished(stream)
      case .cancelled(let stream):
        processor.abandon(stream.request.stream)
        cancelDelayedPush(of: stream.request.stream)
      case .reset(let stream, let code):
        if !stream.isRefused { logReset(stream, code) }
        processor.recordUnfinished(stream, reset: code)
        log.add(.reset, "stream=\(stream.request.stream) \(code.name)", at: state.clock.now)
      case .responseDropped(let stream):
        processor.answerWasDropped(on: stream, by: session.goAwaySent)
      case .excessStreams(let stream, let limit):
        processor.excess = (stream, limit)
        leave(context, .excessStreams(limit: limit))
      case .goAway(let code):
        logger.debug("\(client): sent GOAWAY with code \(code)")
      }
    }
  }

  // MARK: - Opening

  private func open(_ context: ChannelHandlerContext) throws {
    cancelDeadlines(upTo: .handshake)
    let certificate = try tls.peerCertificate.map { try ProviderCertificate(PeerCertificate(der: $0)) }
    let facts = ConnectionFacts(
      id: log.id, listener: log.listener, client: client, sni: tls.serverName, tls: tls.protocolVersion,
      certificate: certificate)
    let streams = certificate == nil ? settings.firstStreams : settings.maxStreams
    let processor = PushProcessor(state: state, facts: facts, log: log, certificate: certificate)
    let order = faultedSettings(processor.traffic, context)
    if let limit = order?.maxConcurrentStreams { processor.streams.fix(limit) }
    let session = try HTTP2ServerSession(
      maxConcurrentStreams: order?.maxConcurrentStreams ?? UInt32(clamping: streams), settings: HTTP2Settings(order),
      pool: scratch.streams)
    if let order { session.acknowledgesSettings = order.acknowledgesClient }
    self.session = session
    self.processor = processor
    phase = .open
    log.opened(facts)
    state.connections.countHandshake(isDone: true)
    log.add(
      .handshake,
      "\(facts.tls)\(facts.sni.map { " sni=\($0)" } ?? "")\(certificate == nil ? "" : " client certificate")",
      at: state.clock.now)
    log.add(.settings, "max_concurrent_streams=\(processor.streams.limit)", at: state.clock.now)
    logger.debug("\(client): \(facts.tls)\(certificate == nil ? "" : ", client certificate"), open")
    let isUsable = certificate?.isUsable(in: state.configuration.environment) ?? true
    guard let delay = order?.delay, delay > .zero else { return begin(isUsable: isUsable, context) }
    writeCipherText(context)
    delaySettings(by: delay, context) { handler, context in handler.begin(isUsable: isUsable, context) }
  }

  /// Sends the first SETTINGS, then starts the idle check and the connection rules.
  ///
  /// - Parameter isUsable: whether the client certificate, if there is one, is valid for the server's environment.
  private func begin(isUsable: Bool, _ context: ChannelHandlerContext) {
    // The first SETTINGS are sent immediately, before anything from the client was read (Protocol.md, section 1.3).
    flush(context)
    guard isUsable else { return leave(context, .wrongEnvironment(state.configuration.environment)) }
    scheduleIdleCheck(context)
    evaluateConnectionRules(context)
  }

  /// The active APNs settings.
  var settings: APNSSettings { state.activePolicy.load().settings }

  /// Starts the timer that closes the connection if the TLS handshake is not complete in time.
  func expectHandshake(_ context: ChannelHandlerContext) {
    schedule(.handshake, after: Self.handshakeTimeout, context) { handler, context in
      handler.logClientError(.handshake, "no TLS handshake within 10 s, closed")
      context.close(promise: nil)
    }
  }

  /// Cancels the timer if it is scheduled for this stage or an earlier one.
  func cancelDeadlines(upTo last: Deadline) {
    guard let deadline, deadline <= last else { return }
    timer?.cancel()
    timer = nil
    self.deadline = nil
  }

  /// Schedules the timer for a stage and replaces one scheduled for the same or an earlier stage. Does nothing if
  /// the connection is already in a later stage.
  func schedule(
    _ next: Deadline, after delay: TimeAmount, _ context: ChannelHandlerContext,
    _ work: @escaping @Sendable (ConnectionHandler, ChannelHandlerContext) -> Void
  ) {
    cancelDeadlines(upTo: next)
    guard deadline == nil else { return }
    deadline = next
    // Handler and context belong to this event loop and the task runs on it; `NIOLoopBound` checks this.
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(in: delay) {
      let (handler, context) = bound.value
      handler.deadline = nil
      work(handler, context)
    }
  }
}
