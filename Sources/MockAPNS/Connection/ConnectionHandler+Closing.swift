import APNSMockRules
import APNSMockHTTP2Session
import APNSMockInbox
import Logging
import NIOCore
import APNSMockPlatformLibc
import APNSMockTLSEngine

/// Refusal, GOAWAY and close of a connection.
extension ConnectionHandler {
  /// The time that the client gets to close after the last bytes, so that a reset does not overtake them.
  private static let lingerTimeout = TimeAmount.milliseconds(250)

  // MARK: - Refusing connections without TLS or HTTP/2

  func refusePlainText(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) {
    let closeReason = ConnectionCloseReason.plainText(Array(bytes.prefix(ConnectionCloseReason.quotedByteCount)))
    if let (kind, message) = closeReason.logMessage { logClientError(kind, message) }
    let streams = UInt32(clamping: apnsSettings.firstStreams)
    guard let session = try? HTTP2ServerSession(maxConcurrentStreams: streams) else {
      return context.close(promise: nil)
    }
    session.submitGoAway(closeReason, lastStream: 0)
    var frames: [UInt8] = []
    session.appendOutput(to: &frames)
    frames.withUnsafeBytes { put($0, context) }
    endOutput(context)
  }

  func refuse(_ failure: HTTP2Failure, _ context: ChannelHandlerContext) {
    switch failure.kind {
    case .badPreface: sendGoAwayAndClose(.notHTTP2(stateMachine.input.firstBytes), context)
    case .fatal: sendGoAwayAndClose(.broken(failure.description), context)
    }
    close(context)
  }

  // MARK: - GOAWAY

  /// Submits GOAWAY. The connection closes when no stream is open any more, at the latest after the shutdown timeout; for
  /// some reasons it closes as soon as the GOAWAY is written.
  func sendGoAwayAndClose(_ closeReason: ConnectionCloseReason, _ context: ChannelHandlerContext) {
    guard let session else { return }
    let action = stateMachine.goAwayRequested(
      immediately: closeReason.closesAtOnce, lastReceivedStream: session.lastReceivedStream,
      now: MachineTime.nanoseconds)
    switch action {
    case .none: return
    case .sendAndClose(let lastStream): session.submitGoAway(closeReason, lastStream: lastStream)
    case .sendAndDrain(let lastStream):
      // Bypasses nghttp2, which would silently drop streams opened after its GOAWAY: those must be recorded.
      session.sendUntrackedGoAway(
        lastStream: lastStream, rawCode: closeReason.errorCode.rawValue, debugData: Array(closeReason.debugData.utf8))
      schedule(.drainTimeout, after: TimeAmount(state.configuration.shutdownTimeout), context)
    }
    processor?.goAway = WireDetails.GoAway(
      code: closeReason.errorCode.name, lastStream: stateMachine.processedStreams.lastAccepted,
      debugData: closeReason.debugData)
    if let (kind, message) = closeReason.logMessage { logClientError(kind, message) }
    log.add(.goAway, "\(closeReason.errorCode.name) \(closeReason.debugData)", at: state.clock.now)
  }

  // MARK: - Close

  /// Closes the connection, after its last frames if it is open.
  func close(_ context: ChannelHandlerContext) {
    switch stateMachine.closeRequested() {
    case .none: break
    case .write: writeFrames(context)
    case .close: finishClosing(context)
    }
  }

  /// Closes the connection, whose last frames are written or wait for the store.
  func finishClosing(_ context: ChannelHandlerContext) {
    endAttempts(context)
    recordClosing(isClient: false)
    if stateMachine.state == .closing { closeTransport(context) }
  }

  /// Ends the attempts that have not ended, because the connection has: nothing more is sent or received.
  func endAttempts(_ context: ChannelHandlerContext) {
    guard let session, let processor else { return }
    commitRecords(of: session, context)
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

  /// Reports to the inbox who ended the connection and what is known of it, unless no push was processed; see
  /// `ConnectionEndReport.add`.
  func recordClosing(isClient: Bool, isOrderly: Bool = false, isReset: Bool = false, isFinal: Bool = false) {
    guard let processor, stateMachine.processedStreams.highestProcessed > 0 else { return }
    let lastReceivedAt = stateMachine.input.lastReceivedAt
    let closing = stateMachine.end.add(
      byClient: isClient, isOrderly: isOrderly, isReset: isReset, isFinal: isFinal, lastReceivedAt: lastReceivedAt,
      now: MachineTime.nanoseconds)
    if let closing { state.inbox.recordClose(of: processor.connection, closing) }
  }

  /// Ends the encryption and the output.
  func closeTransport(_ context: ChannelHandlerContext) {
    transport.close()
    writeCipherText(context)
    endOutput(context)
  }

  /// Sends FIN and closes the socket 250 ms later. Closing with unread bytes would reset the connection, and a reset
  /// may overtake the GOAWAY.
  func endOutput(_ context: ChannelHandlerContext) {
    context.close(mode: .output, promise: nil)
    schedule(.lingerTimeout, after: Self.lingerTimeout, context)
  }

  func closeSocket(_ context: ChannelHandlerContext) {
    stateMachine.end.socketClosing()
    context.close(promise: nil)
  }

  /// Ends the connection with TCP RST.
  func reset(_ context: ChannelHandlerContext) {
    log.add(.reset, "TCP RST", at: state.clock.now)
    if stateMachine.closedAbruptly() { endAttempts(context) }
    recordClosing(isClient: false, isReset: true)
    // With a linger time of zero, closing discards unsent data and resets the connection (RFC 9293 section 3.6). On
    // the channel's event loop the option is set when the call returns.
    _ = (context.channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
    closeSocket(context)
  }

  // MARK: - Clients that stall or stay idle

  /// Schedules the next check of the connection.
  func scheduleIdleCheck(_ context: ChannelHandlerContext) {
    let delay = stateMachine.input.nextCheck(idleTimeout: TimeAmount(apnsSettings.idleTimeout), now: .now())
    schedule(.idleCheck, after: delay, context)
  }

  /// Closes the connection if it is idle or its client stalls.
  func check(_ context: ChannelHandlerContext) {
    guard let session, let processor else { return }
    let action = stateMachine.checkElapsed(idleTimeout: TimeAmount(apnsSettings.idleTimeout), now: .now())
    switch action {
    case .wait: break
    case .closeExhausted:
      let responses = session.responsesAwaitingWindow
      // Before the GOAWAY, which drops the streams.
      state.inbox.addExhaustedWindow(of: processor.connection, responses: responses)
      sendGoAwayAndClose(.windowNeverOpened(responses: responses), context)
    case .closeIdle: sendGoAwayAndClose(.idle, context)
    case .closeStalled:
      logClientError(.slowness, "does not read its responses, closed")
      closeSocket(context)
    case .checkStreams(let isQuiet, let resetsOverdue):
      if isQuiet { transport.releaseBuffers() }
      if resetsOverdue { resetOverdueStreams(of: session, context) }
    }
    if stateMachine.state == .open(.serving) { scheduleIdleCheck(context) }
  }

  private func resetOverdueStreams(of session: HTTP2ServerSession, _ context: ChannelHandlerContext) {
    do {
      for stream in try session.endOverdueStreams() where stream.isEndedByServer { logReset(stream, .cancel) }
    } catch let failure as HTTP2Failure {
      refuse(failure, context)
    } catch {
      context.close(promise: nil)
    }
  }

  // MARK: - Log

  /// Logs that a stream was reset: the first one of a connection as a client error, further ones at the level debug.
  func logReset(_ stream: RequestStream, _ code: HTTP2ErrorCode) {
    let cause =
      !stream.isOverdue
      ? "its request is not valid HTTP/2" + (stream.violation.map { ": \($0)" } ?? "")
      : stream.isEndedByServer ? "its response is not read" : "its request is incomplete"
    let message = "stream \(stream.id) reset with \(code.name): \(cause)"
    guard stateMachine.streamReset() else { return logger.debug("\(client): \(message)") }
    logClientError(
      stream.isOverdue ? .slowness : .protocolError,
      "\(message); further ones on this connection are logged at level debug")
  }

  /// Logs a client error. Recurring errors of one client address are logged at the level debug.
  func logClientError(_ kind: ClientErrorLog.Kind, _ message: String) {
    state.clientErrorLog.log(kind, message, of: log, to: logger)
  }
}

extension HTTP2ServerSession {
  /// Whether a GOAWAY was sent whose last stream is below this one.
  func hasExcluded(_ stream: RequestStream) -> Bool { goAwaySent.map { $0.lastStream < stream.id } ?? false }

  fileprivate func submitGoAway(_ closeReason: ConnectionCloseReason, lastStream: Int32) {
    submitGoAway(lastStream: lastStream, code: closeReason.errorCode, debugData: Array(closeReason.debugData.utf8))
  }
}

extension WireDetails.GoAway {
  /// Creates a description of a frame that the session has sent.
  init(_ goAway: APNSMockHTTP2Session.GoAway) {
    self.init(
      code: HTTP2ErrorCode.name(of: goAway.errorCode), lastStream: goAway.lastStream, debugData: goAway.text)
  }
}
