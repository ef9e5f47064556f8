internal import CNghttp2

/// The C side: each callback finds its session in the user data and calls one method of it.
extension HTTP2ServerSession {
  static func from(_ user: UnsafeMutableRawPointer) -> HTTP2ServerSession {
    Unmanaged<HTTP2ServerSession>.fromOpaque(user).takeUnretainedValue()
  }

  /// Sets the callbacks of a server session.
  static func install(_ callbacks: OpaquePointer?) {
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, user in
      guard let frame, let user, apns_is_request_headers(frame) != 0 else { return 0 }
      HTTP2ServerSession.from(user).beginRequest(on: frame.pointee.hd.stream_id)
      return 0
    }
    nghttp2_session_callbacks_set_on_header_callback(callbacks) {
      session, frame, name, nameCount, value, valueCount, _, user in
      guard let frame, let user else { return 0 }
      HTTP2ServerSession.from(user).header(
        on: frame.pointee.hd.stream_id, name: UnsafeRawBufferPointer(start: name, count: nameCount),
        value: UnsafeRawBufferPointer(start: value, count: valueCount))
      return 0
    }
    // A header value that HTTP forbids (a control character in apns-topic) is for the rules of APNs to judge.
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks) {
      _, frame, name, nameCount, value, valueCount, _, user in
      guard let frame, let user else { return 0 }
      HTTP2ServerSession.from(user).header(
        on: frame.pointee.hd.stream_id, name: UnsafeRawBufferPointer(start: name, count: nameCount),
        value: UnsafeRawBufferPointer(start: value, count: valueCount))
      return 0
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, flags, stream, data, count, user in
      guard let user else { return 0 }
      HTTP2ServerSession.from(user).body(
        on: stream, UnsafeRawBufferPointer(start: data, count: count), isLast: flags & APNS_FLAG_END_STREAM != 0)
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
      guard let frame, let user else { return 0 }
      return HTTP2ServerSession.from(user).received(frame)
    }
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, user in
      guard let frame, let user else { return 0 }
      HTTP2ServerSession.from(user).sent(frame)
      return 0
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, _, user in
      guard let user else { return 0 }
      HTTP2ServerSession.from(user).closed(stream)
      return 0
    }
  }
}
