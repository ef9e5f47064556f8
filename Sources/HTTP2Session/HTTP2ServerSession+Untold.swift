internal import CNghttp2

/// What RFC 9113 forbids and nghttp2 lets pass without a callback of its own.
extension HTTP2ServerSession {
  /// Looks for frames that nghttp2 threw away, and ends the connection if they must not be: DATA on a stream that the client
  /// has ended (section 5.1) or passed over (section 5.1.1), and a CONTINUATION that is too large (section 4.2).
  ///
  /// The frames behind such a one in `bytes` were taken in already.
  func lookAtUntold(in bytes: UnsafeRawBufferPointer, from start: UntoldFrames.Start) {
    // From then on there may be streams that were not opened, and what comes on them is ignored.
    guard goAwaySent == nil else { return }
    // Open when these bytes came; some frame that is complete by them ended the client's side.
    var notYetEnded = Set(closedNow)
    notYetEnded.remove(start.ending)
    var error: HTTP2ErrorCode?
    UntoldFrames.forEachHeader(in: bytes, from: start) { header in
      guard error == nil else { return }
      if header.type == APNS_FRAME_DATA, mayBeClosed(header.stream), !notYetEnded.contains(header.stream) {
        error = self.error(onClosed: header.stream)
        if error == nil { resetIfRefused(header.stream) }
      } else if header.type == APNS_FRAME_CONTINUATION, header.length > Int(HTTP2Limits.maxFrameSize) {
        error = .frameSizeError
      }
      if header.endsStream { notYetEnded.remove(header.stream) }
    }
    if let error { nghttp2_session_terminate_session2(session, lastProcessedStream, error.rawValue) }
  }

  /// Of a stream that is idle, or could only be the server's own, nghttp2 does not let DATA pass.
  private func mayBeClosed(_ id: Int32) -> Bool { id & 1 == 1 && id <= closedStreams.highest }

  /// SETTINGS of the client begin, or go on.
  func beginsSettings() {
    waitingBeforeSettings = nghttp2_session_get_outbound_queue_size(session)
  }

  /// They were taken in. A window of more than 2³¹−1 that they give a stream is an error of the connection (section
  /// 6.9.2), but nghttp2 resets that stream.
  ///
  /// Returns what the callback returns.
  func endsSettings() -> Int32 {
    let before = waitingBeforeSettings ?? 0
    waitingBeforeSettings = nil
    // One frame more is the acknowledgement, each other is such a reset.
    return nghttp2_session_get_outbound_queue_size(session) > before + 1 ? refuse(.flowControlError) : 0
  }
}
