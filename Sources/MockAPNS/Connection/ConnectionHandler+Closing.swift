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
    case .badPreface: sendGoAwayAndClose(context, .notHTTP2(input.firstBytes))
    case .fatal: sendGoAwayAndClose(context, .broken(failure.description))
    }
    close(context)
  }

  // MARK: - GOAWAY

  /// Sends GOAWAY. The connection closes when no stream is open any more, at the latest after the shutdown timeout; for
  /// some reasons it closes immediately.
  func sendGoAwayAndClose(_ context: ChannelHandlerContext, _ closeReason: ConnectionCloseReason) {
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
    }
    processor?.goAway = WireDetails.GoAway(
      code: closeReason.errorCode.name, lastStream: stateMachine.processedStreams.lastAccepted,
      debugData: closeReason.debugData)
    if let (kind, message) = closeReason.logMessage { logClientError(kind, message) }
    log.add(.goAway, "\(closeReason.errorCode.name) \(closeReason.debugData)", at: state.clock.now)
    flush(context)
    if closeReason.closesAtOnce { return close(context) }
    guard stateMachine.isOpen else { return }
    schedule(.drainTimeout, after: TimeAmount(state.configuration.shutdownTimeout), context) { handler, context in
      handler.close(context)
    }
  }

  /// Reports to the inbox who ended the connection and what is known of it, unless no push was processed.
  ///
  /// - Parameters:
  ///   - isClient: Whether the client did; ignored if the end was reported before.
  ///   - isOrderly: Whether the client has ended its side with close_notify.
  ///   - isReset: Whether the server resets the TCP connection.
  ///   - isFinal: Whether the socket is closed.
  func recordClosing(isClient: Bool, isOrderly: Bool = false, isReset: Bool = false, isFinal: Bool = false) {
    guard let processor, stateMachine.processedStreams.highestProcessed > 0 else { return }
    let isReset = isReset || closing?.isReset == true || (socketError as? IOError)?.errnoCode == ECONNRESET
    let new = ConnectionEnd.Closing(
      by: closing?.initiator ?? (isClient ? .client : .server), at: closing?.at ?? MachineTime.nanoseconds,
      lastReceivedAt: input.lastReceivedAt,
      isOrderly: isOrderly || closing?.isOrderly == true || isFinal && !hasClosedSocket && socketError == nil,
      isReset: isReset, isFinal: isFinal)
    guard new != closing else { return }
    closing = new
    state.inbox.recordClose(of: processor.connection, new)
  }

  func close(_ context: ChannelHandlerContext) {
    guard case .close(let writesFrames) = stateMachine.closeRequested() else { return }
    // Write the remaining frames even if the client does not read: there is no later opportunity.
    if writesFrames, let session { writeFrames(of: session, context) }
    endAttempts(context)
    recordClosing(isClient: false)
    guard output.held.parts.isEmpty else { return output.held.closesTransport = true }
    closeTransport(context)
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
    schedule(.lingerTimeout, after: Self.lingerTimeout, context) { handler, context in
      handler.hasClosedSocket = true
      context.close(promise: nil)
    }
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
