internal import CAPNSMockNghttp2

/// The nghttp2 callbacks. Each finds its session in the user data and calls one method of it.
extension HTTP2ServerSession {
  /// Calls `body` with the session in nghttp2's user data. The session is not retained: callbacks run only inside
  /// its own calls, hence only while it is alive, and a push causes about twenty of them. Measured: retaining the
  /// session, its stream and its memory in them costs 7 % more instructions per push
  /// (`Benchmarks/instructions.py --only token`).
  @inline(__always)
  static func with<Result>(_ user: UnsafeMutableRawPointer, _ body: (HTTP2ServerSession) -> Result) -> Result {
    Unmanaged<HTTP2ServerSession>.fromOpaque(user)._withUnsafeGuaranteedRef(body)
  }

  /// Installs the callbacks of a server session.
  static func install(_ callbacks: OpaquePointer?) {
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks) { _, header, user in
      guard let header, let user else { return 0 }
      return HTTP2ServerSession.with(user) { $0.didBeginFrame(header) }
    }
    // nghttp2 sends RST_STREAM for a refused stream, but its DATA may arrive before that is sent.
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) { _, frame, code, user in
      guard let frame, let user, code == APNS_REFUSED_STREAM else { return 0 }
      HTTP2ServerSession.with(user) { $0.closedStreams.didSendReset(on: frame.pointee.hd.stream_id) }
      return 0
    }
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, user in
      guard let frame, let user, apns_is_request_headers(frame) != 0 else { return 0 }
      HTTP2ServerSession.with(user) { $0.didBeginRequest(on: frame.pointee.hd.stream_id) }
      return 0
    }
    nghttp2_session_callbacks_set_on_header_callback(callbacks) {
      session, frame, name, nameCount, value, valueCount, _, user in
      guard let frame, let user else { return 0 }
      return HTTP2ServerSession.with(user) {
        $0.didReceiveField(
          on: frame.pointee.hd.stream_id, name: UnsafeRawBufferPointer(start: name, count: nameCount),
          value: UnsafeRawBufferPointer(start: value, count: valueCount))
      }
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, flags, stream, data, count, user in
      guard let user else { return 0 }
      HTTP2ServerSession.with(user) {
        $0.didReceiveData(
          on: stream, UnsafeRawBufferPointer(start: data, count: count), isLast: flags & APNS_FLAG_END_STREAM != 0)
      }
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
      guard let frame, let user else { return 0 }
      return HTTP2ServerSession.with(user) { $0.didReceive(frame) }
    }
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, user in
      guard let frame, let user else { return 0 }
      HTTP2ServerSession.with(user) { $0.didSend(frame) }
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) { _, frame, code, user in
      guard let frame, let user, code == APNS_SESSION_CLOSING, frame.pointee.hd.type == APNS_FRAME_HEADERS else {
        return 0
      }
      HTTP2ServerSession.with(user) { $0.didNotSendHeaders(on: frame.pointee.hd.stream_id) }
      return 0
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, _, user in
      guard let user else { return 0 }
      HTTP2ServerSession.with(user) { $0.didClose(stream) }
      return 0
    }
  }
}
