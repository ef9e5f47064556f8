internal import CNghttp2

/// Time limits for slow clients. A session has no clock: its owner calls `endOverdueStreams` every
/// `HTTP2Limits.lookInterval`.
extension HTTP2ServerSession {
  /// Resets the streams on which the client has owed something for more than `HTTP2Limits.maxLooks` calls: the rest
  /// of a request, or the window for a response. These streams become `isOverdue`, and an incomplete request is
  /// reported as `Event.reset`. Exempt are deliberately delayed pushes, and incomplete requests while the client's
  /// window is held.
  ///
  /// - Returns: the streams that were reset; valid until `drain` closes them.
  /// - Throws: `HTTP2Failure` if a header block or the connection preface is overdue, which ends the session.
  public func endOverdueStreams() throws -> [RequestStream] {
    resets = 0
    let seconds = HTTP2Limits.lookInterval.components.seconds * Int64(HTTP2Limits.maxLooks)
    if !hasBegun {
      looks += 1
      if looks > HTTP2Limits.maxLooks {
        throw HTTP2Failure(kind: .fatal, description: "no HTTP/2 client preface within \(seconds) s")
      }
    }
    var overdue: [RequestStream] = []
    for stream in openStreams where isOwed(on: stream) {
      stream.looks += 1
      guard stream.looks > HTTP2Limits.maxLooks else { continue }
      if !stream.hasHeaders {
        throw HTTP2Failure(
          kind: .fatal, description: "the header block of stream \(stream.id) did not end within \(seconds) s")
      }
      stream.isOverdue = true
      overdue.append(stream)
    }
    // Outside of the loop above, which iterates over `open`.
    for stream in overdue { nghttp2_submit_rst_stream(session, 0, stream.id, HTTP2ErrorCode.cancel.rawValue) }
    return overdue
  }

  private func isOwed(on stream: RequestStream) -> Bool {
    if stream.isOverdue { return false }
    if stream.isAnswered { return stream.answer?.isHeld != true }
    return !stream.isComplete && !windowIsHeld
  }
}
