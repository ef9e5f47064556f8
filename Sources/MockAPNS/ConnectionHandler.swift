import APNSRules
import HTTP2Session
import HTTPMessage
import Inbox
import Logging
import NIOCore
import TLSEngine

/// One provider's connection: socket bytes to TLS to HTTP/2 to the way of a push, and back.
///
/// It lives on one event loop and nothing of it is shared. Each batch of bytes that the socket yields is decrypted,
/// judged, recorded and answered before the next is read, and its answers leave in one write.
final class ConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private enum Phase {
    /// No byte came yet: it will tell TLS from plain text.
    case firstByte
    case handshake
    case open
    /// Our last bytes are written; what still comes is thrown away.
    case closing
  }

  /// How long a client may take for its TLS handshake.
  private static let handshakeTimeout = TimeAmount.seconds(10)
  /// How long we wait for the client to close after our last bytes, so that a reset does not overtake them.
  private static let lingering = TimeAmount.milliseconds(250)
  /// Between the two GOAWAY frames of a shutdown, for the streams that are on their way.
  private static let shutdownNotice = TimeAmount.milliseconds(50)

  private let number: UInt64
  private let listener: Int
  private let tls: TLSConnection
  private let state: ServerState
  private let logger: Logger

  // Unchecked at run time for overlapping access: everything here runs on the connection's event loop, and no method
  // holds one of these properties while it calls another that changes it.
  @exclusivity(unchecked) private var phase = Phase.firstByte
  @exclusivity(unchecked) private var session: HTTP2ServerSession?
  @exclusivity(unchecked) private var path: PushPath?
  @exclusivity(unchecked) private var lastActivity = NIODeadline.now()
  private var timer: Scheduled<Void>?
  /// GOAWAY is out: the connection ends with its last open stream.
  @exclusivity(unchecked) private var isLeaving = false
  @exclusivity(unchecked) private var beginning: [UInt8] = []
  private var client = "unknown"

  init(number: UInt64, listener: Int, tls: TLSConnection, state: ServerState, logger: Logger) {
    self.number = number
    self.listener = listener
    self.tls = tls
    self.state = state
    var logger = logger
    logger[metadataKey: "connection"] = "c\(number)"
    self.logger = logger
  }

  // MARK: - Channel events

  func channelActive(context: ChannelHandlerContext) {
    if let address = context.remoteAddress, let host = address.ipAddress, let port = address.port {
      client = Endpoint(host: host, port: port).description
    }
    schedule(after: Self.handshakeTimeout, context) { handler, context in
      handler.logger.notice("\(handler.client): no TLS handshake within 10 s, closed")
      context.close(promise: nil)
    }
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let buffer = unwrapInboundIn(data)
    if phase == .closing { return }
    lastActivity = .now()
    if phase == .firstByte, let first = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) {
      if Self.looksLikePlainText(first) {
        refusePlainText(buffer, context)
        return
      }
      phase = .handshake
    }
    buffer.withUnsafeReadableBytes { tls.receive($0) }
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    process(context)
    context.fireChannelReadComplete()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    // A client that does not read its answers is not read from either.
    _ = context.channel.setOption(ChannelOptions.autoRead, value: context.channel.isWritable)
    context.fireChannelWritabilityChanged()
  }

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    if let session {
      for stream in session.unansweredStreams { path?.recordUnfinished(stream) }
      path?.commit()
    }
    session = nil
    path = nil
    phase = .closing
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    logger.debug("\(client): \(error)")
    context.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard event is OpenConnections.Goodbye else { return context.fireUserInboundEventTriggered(event) }
    guard phase == .open, let session, !isLeaving else { return close(context) }
    session.announceShutdown()
    flush(context)
    schedule(after: Self.shutdownNotice, context) { handler, context in
      handler.leave(context, .shutdown)
    }
  }

  // MARK: - Bytes to events

  private func process(_ context: ChannelHandlerContext) {
    do {
      if phase == .handshake {
        guard try tls.handshake() == .done else { return writeCipherText(context) }
        try open(context)
      }
      if phase == .open { try receive(context) }
    } catch let failure as HTTP2Failure {
      refuse(failure, context)
    } catch {
      logger.notice("\(client): \(error)\(handshakeAdvice(for: "\(error)"))")
      writeCipherText(context)
      close(context)
    }
  }

  private func receive(_ context: ChannelHandlerContext) throws {
    guard let session else { return }
    let scratch = LoopScratch.current
    reading: while phase == .open {
      switch try tls.read(into: scratch.input) {
      case .bytes(let count):
        let bytes = UnsafeRawBufferPointer(rebasing: scratch.input[..<count])
        if beginning.isEmpty { beginning = Array(bytes.prefix(Farewell.beginningSize)) }
        try session.receive(bytes)
        handleEvents(of: session, context)
      case .waiting:
        break reading
      case .closed:
        flush(context)
        return close(context)
      }
    }
    flush(context)
  }

  private func handleEvents(of session: HTTP2ServerSession, _ context: ChannelHandlerContext) {
    guard session.hasEvents else { return }
    path?.beginBatch()
    while let event = session.nextEvent() {
      switch event {
      case .request(let stream):
        path?.take(stream, session: session)
        if path?.hasTooManyErrors == true, !isLeaving { leave(context, .tooManyErrors) }
      case .aborted(let stream):
        path?.recordUnfinished(stream)
      case .reset(let stream, let code):
        logger.notice(
          "\(client): stream \(stream.request.stream) reset with \(code.name): its request is not valid HTTP/2")
        path?.recordUnfinished(stream, reset: code)
      case .excessStreams(let limit):
        leave(context, .excessStreams(limit: limit))
      case .goAway(let code):
        logger.debug("\(client): sent GOAWAY with code \(code)")
      }
    }
  }

  // MARK: - Beginning

  private func open(_ context: ChannelHandlerContext) throws {
    timer?.cancel()
    let certificate = try tls.peerCertificate.map { try ProviderCertificate(PeerCertificate(der: $0)) }
    let facts = ConnectionFacts(
      id: "c\(number)", listener: listener, client: client, sni: tls.serverName, tls: tls.protocolVersion,
      certificate: certificate)
    let settings = state.configuration.settings
    let streams = certificate == nil ? settings.firstStreams : settings.maxStreams
    let session = try HTTP2ServerSession(maxConcurrentStreams: UInt32(clamping: streams))
    self.session = session
    path = PushPath(state: state, connection: number, facts: facts, certificate: certificate)
    phase = .open
    logger.debug("\(client): \(facts.tls)\(certificate == nil ? "" : ", client certificate"), open")
    // The first SETTINGS go out at once, before anything of the client was read (APNS.md section 1.3).
    flush(context)
    if let certificate, !certificate.isUsable(in: state.configuration.environment) {
      return leave(context, .wrongEnvironment(state.configuration.environment))
    }
    watchIdleness(context)
  }

  private func watchIdleness(_ context: ChannelHandlerContext) {
    let limit = TimeAmount(state.configuration.settings.idleTimeout)
    let quiet = NIODeadline.now() - lastActivity
    schedule(after: quiet < limit ? limit - quiet : limit, context) { handler, context in
      guard handler.phase == .open, !handler.isLeaving else { return }
      if NIODeadline.now() - handler.lastActivity >= limit {
        handler.leave(context, .idle)
      } else {
        handler.watchIdleness(context)
      }
    }
  }

  // MARK: - Refusing what is not HTTP/2 over TLS

  /// A TLS record begins with 22; a letter is the beginning of an HTTP method or of the HTTP/2 preface.
  private static func looksLikePlainText(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
  }

  private func refusePlainText(_ buffer: ByteBuffer, _ context: ChannelHandlerContext) {
    let farewell = Farewell.plainText(Array(buffer.readableBytesView.prefix(Farewell.beginningSize)))
    if let complaint = farewell.complaint { logger.notice("\(client): \(complaint)") }
    phase = .closing
    let streams = UInt32(clamping: state.configuration.settings.firstStreams)
    guard let session = try? HTTP2ServerSession(maxConcurrentStreams: streams) else {
      return context.close(promise: nil)
    }
    session.goAway(farewell)
    var frames: [UInt8] = []
    session.drain(into: &frames)
    context.write(wrapOutboundOut(context.channel.allocator.buffer(bytes: frames)), promise: nil)
    endOutput(context)
  }

  private func refuse(_ failure: HTTP2Failure, _ context: ChannelHandlerContext) {
    switch failure.kind {
    case .badPreface: leave(context, .notHTTP2(beginning))
    case .fatal: leave(context, .broken(failure.description))
    }
    close(context)
  }

  // MARK: - Ending

  /// Sends GOAWAY; the connection closes as soon as no stream is open any more, at the latest after the shutdown patience.
  private func leave(_ context: ChannelHandlerContext, _ farewell: Farewell) {
    guard phase == .open, let session else { return }
    if let complaint = farewell.complaint { logger.notice("\(client): \(complaint)") }
    session.goAway(farewell)
    isLeaving = true
    flush(context)
    if farewell.closesAtOnce { return close(context) }
    guard phase == .open else { return }
    schedule(after: TimeAmount(state.configuration.shutdownTimeout), context) { handler, context in
      handler.close(context)
    }
  }

  /// Records first, then answers: a push is readable before its answer leaves.
  private func flush(_ context: ChannelHandlerContext) {
    guard phase == .open, let session else { return }
    path?.commit()
    let scratch = LoopScratch.current
    scratch.output.removeAll(keepingCapacity: true)
    session.drain(into: &scratch.output)
    // What ended by a frame that just went out is recorded before that frame leaves.
    handleEvents(of: session, context)
    path?.commit()
    do {
      try scratch.output.withUnsafeBytes { try tls.write($0) }
    } catch {
      logger.debug("\(client): \(error)")
      return close(context)
    }
    writeCipherText(context)
    if session.isFinished, !isLeaving, let goAway = session.goAwaySent, goAway.errorCode != 0 {
      logger.notice("\(client): HTTP/2 error \(goAway.errorCode), connection ended: \(goAway.text)")
    }
    if session.isFinished || (isLeaving && session.openStreamCount == 0) { close(context) }
  }

  private func writeCipherText(_ context: ChannelHandlerContext) {
    tls.takeOutput { bytes in
      context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: nil)
    }
  }

  private func close(_ context: ChannelHandlerContext) {
    guard phase != .closing else { return }
    phase = .closing
    tls.close()
    writeCipherText(context)
    endOutput(context)
  }

  /// Sends FIN and gives the client a moment to read: closing with unread bytes would reset the connection, and a reset
  /// may overtake the GOAWAY.
  private func endOutput(_ context: ChannelHandlerContext) {
    context.flush()
    context.close(mode: .output, promise: nil)
    schedule(after: Self.lingering, context) { _, context in context.close(promise: nil) }
  }

  private func schedule(
    after delay: TimeAmount, _ context: ChannelHandlerContext,
    _ work: @escaping @Sendable (ConnectionHandler, ChannelHandlerContext) -> Void
  ) {
    timer?.cancel()
    // Handler and context belong to this loop and the task runs on it; the box checks that it does.
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    timer = context.eventLoop.scheduleTask(in: delay) { work(bound.value.0, bound.value.1) }
  }
}

extension HTTP2ServerSession {
  fileprivate func goAway(_ farewell: Farewell) {
    goAway(lastStream: farewell.lastStream, code: farewell.errorCode, debugData: Array(farewell.debugData.utf8))
  }
}
