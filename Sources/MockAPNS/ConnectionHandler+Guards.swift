import APNSRules
import HTTP2Session
import Logging
import NIOCore
import TLSEngine

/// What an open connection must not do to the others: flood, stall, or stay for nothing.
extension ConnectionHandler {
  /// Bytes a connection may bring without a request.
  private static let freeBytes = 1 << 20
  /// How many bytes may come for each byte of a request. nginx judges by the same two numbers since its floods of 2019
  /// (CVE-2019-9511 to 9518); frames that nghttp2 passes over in silence, and TLS records without content, count as well.
  private static let bytesPerRequestByte = 8

  /// Whether the connection is busy with anything but requests: PING, PRIORITY, empty DATA, unknown frames, key updates.
  func isFlood(ofBytes count: Int, _ session: HTTP2ServerSession) -> Bool {
    count / Self.bytesPerRequestByte > session.bytesOfRequests + Self.freeBytes
  }

  /// Whether the client changes its TLS keys far more often than encryption asks for. AES-GCM needs a new key after 2^24.5
  /// records (RFC 8446 section 5.5); one for each 64 KiB, and 32 more, are allowed.
  func isFloodOfKeyUpdates(ofBytes count: Int) -> Bool {
    tls.keyUpdates > 32 + count >> 16
  }

  /// Looks after the connection every ten seconds, or when its idle time is over if that is sooner.
  func keepWatch(_ context: ChannelHandlerContext) {
    let limit = TimeAmount(settings.idleTimeout)
    let quiet = NIODeadline.now() - lastActivity
    let interval = TimeAmount(HTTP2Limits.lookInterval)
    schedule(.watch, after: min(interval, quiet < limit ? limit - quiet : limit), context) { handler, context in
      guard handler.phase == .open, !handler.isLeaving else { return }
      if NIODeadline.now() - handler.lastActivity >= limit {
        return handler.leave(context, .idle)
      }
      if NIODeadline.now() - handler.lastLook >= interval { handler.endWhatIsOverdue(context) }
      if handler.phase == .open, !handler.isLeaving { handler.keepWatch(context) }
    }
  }

  private func endWhatIsOverdue(_ context: ChannelHandlerContext) {
    guard let session else { return }
    if lastActivity < lastLook { tls.releaseBuffers() }
    lastLook = .now()
    unreadLooks = context.channel.isWritable ? 0 : unreadLooks + 1
    if unreadLooks > HTTP2Limits.maxLooks {
      complain(.slowness, "does not read its answers, closed")
      return context.close(promise: nil)
    }
    // Its answers wait for the client as a whole then.
    guard context.channel.isWritable else { return }
    do {
      let overdue = try session.endOverdueStreams()
      guard !overdue.isEmpty else { return }
      for stream in overdue where stream.isAnswered { tellOfReset(stream, .cancel) }
      flush(context)
    } catch let failure as HTTP2Failure {
      refuse(failure, context)
    } catch {
      context.close(promise: nil)
    }
  }

  /// The first one of a connection is news; a client that sends one such request sends more.
  func tellOfReset(_ stream: RequestStream, _ code: HTTP2ErrorCode) {
    let cause =
      !stream.isOverdue
      ? "its request is not valid HTTP/2" + (stream.breach.map { ": \($0.words)" } ?? "")
      : stream.isAnswered ? "its answer is not taken" : "its request does not come whole"
    let words = "stream \(stream.id) reset with \(code.name): \(cause)"
    if hasToldOfReset {
      logger.debug("\(client): \(words)")
    } else {
      complain(
        stream.isOverdue ? .slowness : .protocolError,
        "\(words); further ones on this connection are told at the level debug")
    }
    hasToldOfReset = true
  }

  /// Tells the log what the client does wrong.
  func complain(_ kind: Complaints.Kind, _ words: String) {
    switch state.complaints.add(kind, of: log.clientAddress) {
    case .told: logger.notice("\(client): \(words)")
    case .toldLast:
      logger.notice(
        "\(client): \(words) (so often within a minute that more of it from \(log.clientAddress) is told at the level debug until that is over)"
      )
    case .untold: logger.debug("\(client): \(words)")
    }
  }
}
