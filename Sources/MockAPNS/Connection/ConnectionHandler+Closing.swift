import APNSRules
import HTTP2Session
import Inbox
import Logging
import NIOCore
import TLSEngine

/// Refusal, GOAWAY and close of a connection.
extension ConnectionHandler {
  /// The time that the client gets to close after the last bytes, so that a reset does not overtake them.
  private static let lingering = TimeAmount.milliseconds(250)

  // MARK: - Refusing connections without TLS or HTTP/2

  /// Returns whether a connection's first byte indicates plain text. A TLS handshake record begins with 22, an HTTP
  /// method or the HTTP/2 preface with a letter.
  static func looksLikePlainText(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
  }

  func refusePlainText(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) {
    let closeReason = ConnectionCloseReason.plainText(Array(bytes.prefix(ConnectionCloseReason.beginningSize)))
    if let (kind, words) = closeReason.logMessage { logClientError(kind, words) }
    phase = .closing
    let streams = UInt32(clamping: settings.firstStreams)
    guard let session = try? HTTP2ServerSession(maxConcurrentStreams: streams) else {
      return context.close(promise: nil)
    }
    session.goAway(closeReason, lastStream: 0)
    var frames: [UInt8] = []
    session.drain(into: &frames)
    frames.withUnsafeBytes { put($0, context) }
    endOutput(context)
  }

  func refuse(_ failure: HTTP2Failure, _ context: ChannelHandlerContext) {
    switch failure.kind {
    case .badPreface: leave(context, .notHTTP2(firstBytes))
    case .fatal: leave(context, .broken(failure.description))
    }
    close(context)
  }

  // MARK: - GOAWAY

  /// Sends GOAWAY. The connection closes when no stream is open any more, at the latest after the shutdown timeout.
  func leave(_ context: ChannelHandlerContext, _ closeReason: ConnectionCloseReason) {
    guard phase == .open, !isDraining, let session else { return }
    if let (kind, words) = closeReason.logMessage { logClientError(kind, words) }
    sendClosingGoAway(closeReason, session)
    isDraining = true
    if closeReason.closesAtOnce { isCut = true }
    log.add(.goAway, "\(closeReason.errorCode.name) \(closeReason.debugData)", at: state.clock.now)
    flush(context)
    if closeReason.closesAtOnce { return close(context) }
    guard phase == .open else { return }
    schedule(.drain, after: TimeAmount(state.configuration.shutdownTimeout), context) { handler, context in
      handler.close(context)
    }
  }

  private func sendClosingGoAway(_ closeReason: ConnectionCloseReason, _ session: HTTP2ServerSession) {
    guard !closeReason.closesAtOnce, let processor else {
      // Pushes not evaluated by now never will be: a client may send them again (RFC 9113 section 6.8).
      return session.goAway(
        closeReason, lastStream: processor.map { min($0.highestProcessedStream, $0.lastServedStream) } ?? 0)
    }
    // Bypasses nghttp2, which would silently drop streams opened after its GOAWAY: those must be recorded.
    let lastStream = min(session.lastProcessedStream, processor.lastServedStream)
    session.sendGoAway(
      lastStream: lastStream, rawCode: closeReason.errorCode.rawValue, debugData: Array(closeReason.debugData.utf8))
    self.processor?.excludeStreams(after: lastStream)
  }

  /// Records who ended the connection, unless that is already recorded.
  func noteEnd(byClient: Bool) {
    let isOwnWill = byClient && !isDraining && !isCut && processor?.lastServedStream == .max
    processor?.connection.ended(isOwnWill ? .byClient : .byServer)
  }

  func close(_ context: ChannelHandlerContext) {
    guard phase != .closing else { return }
    let wasOpen = phase == .open
    phase = .closing
    // Write the remaining frames even if the client does not read: there is no later opportunity.
    if wasOpen, let session { writeFrames(of: session, context) }
    tls.close()
    writeCipherText(context)
    endOutput(context)
  }

  /// Sends FIN and closes the socket 250 ms later. Closing with unread bytes would reset the connection, and a reset
  /// may overtake the GOAWAY.
  func endOutput(_ context: ChannelHandlerContext) {
    context.close(mode: .output, promise: nil)
    schedule(.linger, after: Self.lingering, context) { _, context in context.close(promise: nil) }
  }
}

extension HTTP2ServerSession {
  fileprivate func goAway(_ closeReason: ConnectionCloseReason, lastStream: Int32) {
    goAway(lastStream: lastStream, code: closeReason.errorCode, debugData: Array(closeReason.debugData.utf8))
  }
}
