internal import CNghttp2

/// Detects violations of RFC 9113 that nghttp2 ignores without calling a callback.
extension HTTP2ServerSession {
  /// Scans for frames that nghttp2 discarded and ends the connection if they are violations: DATA on a stream that
  /// the client has ended (section 5.1) or skipped (section 5.1.1), and a CONTINUATION that is too large (section
  /// 4.2).
  ///
  /// nghttp2 has already processed the frames in `bytes` that follow the violation.
  func lookAtUntold(in bytes: UnsafeRawBufferPointer, from start: UntoldFrames.Start) {
    // After GOAWAY, streams may exist that nghttp2 did not open; frames on them are ignored.
    guard goAwaySent == nil else { return }
    // Streams that were open when these bytes were received; a frame completed by these bytes ended the client's
    // side.
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

  /// nghttp2 itself rejects DATA on idle streams and on streams with even identifiers.
  private func mayBeClosed(_ id: Int32) -> Bool { id & 1 == 1 && id <= closedStreams.highest }

  /// Called when a SETTINGS frame of the client begins or continues.
  func beginsSettings() {
    waitingBeforeSettings = nghttp2_session_get_outbound_queue_size(session)
  }

  /// Called when a SETTINGS frame of the client was processed. An initial window above 2³¹−1 for an open stream is
  /// a connection error (section 6.9.2), but nghttp2 only resets the stream.
  ///
  /// - Returns: the return value for the callback.
  func endsSettings() -> Int32 {
    let before = waitingBeforeSettings ?? 0
    waitingBeforeSettings = nil
    // One additional queued frame is the acknowledgement; each further one is such a RST_STREAM.
    return nghttp2_session_get_outbound_queue_size(session) > before + 1 ? refuse(.flowControlError) : 0
  }
}
