internal import CNghttp2

/// Clients that take their time. The session has no clock: whoever has one calls every `HTTP2Limits.lookInterval`.
extension HTTP2ServerSession {
  /// Ends with RST_STREAM what the client has owed for more than `HTTP2Limits.maxLooks` looks: the rest of a request, or the
  /// window for an answer. They are `isOverdue`, and a request that did not come whole is reported as `Event.reset`. A push
  /// that is held on purpose is not looked at, and no request while the client's window is.
  ///
  /// - Returns: those that were ended, while `drain` has not let them go.
  /// - Throws: `HTTP2Failure` if a header block or the client's preface is overdue, for which the session has to end.
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
    // Not while `open` is walked through.
    for stream in overdue { nghttp2_submit_rst_stream(session, 0, stream.id, HTTP2ErrorCode.cancel.rawValue) }
    return overdue
  }

  private func isOwed(on stream: RequestStream) -> Bool {
    if stream.isOverdue { return false }
    if stream.isAnswered { return stream.answer?.isHeld != true }
    return !stream.isComplete && !windowIsHeld
  }
}
