private import CAPNSMockNghttp2
package import APNSMockHTTPMessage

/// The client side of one HTTP/2 connection, on top of nghttp2: sends requests and reports responses. It performs
/// no I/O.
///
/// Used by `apns-mock send`, `doctor`, `compare`, by `serve --upstream` and by the tests. Not Sendable: a session is confined to one thread or event loop.
package final class HTTP2ClientSession {
  /// An event caused by the server.
  package enum Event: Sendable, Equatable {
    /// The complete response to the request on this stream.
    case response(stream: Int32, HTTPResponse)
    /// The stream ended without a complete response: by RST_STREAM, or by a GOAWAY that excludes it.
    case reset(stream: Int32, errorCode: UInt32)
    /// The response is larger than the limits: its stream was reset with CANCEL.
    case excessiveResponse(stream: Int32)
    /// A SETTINGS frame with these MAX_CONCURRENT_STREAMS and MAX_HEADER_LIST_SIZE; nil for a setting it does not
    /// contain.
    case settings(maxConcurrentStreams: UInt32?, maxHeaderListSize: UInt32?)
    /// A GOAWAY frame.
    case goAway(lastStream: Int32, errorCode: UInt32, debugData: [UInt8])
  }

  // As in `HTTP2ServerSession`: owned until deinit, with this object as the unretained user data of its callbacks.
  private let session: OpaquePointer
  private var events: [Event] = []
  private var exchanges: [Int32: Exchange] = [:]

  /// A request body being sent and the response being received.
  private final class Exchange {
    var body: [UInt8]
    var sent = 0
    var response = HTTPResponse()
    var hasFinalHeaders = false
    /// Whether the end of the response was received.
    var isComplete = false
    /// Whether the response is too large, so that the rest is ignored.
    var isExcessive = false

    init(body: [UInt8]) {
      self.body = body
      // The header fields of a response of APNs take less.
      response.headers = HeaderList(capacity: 192)
    }
  }

  /// Creates a session and queues its SETTINGS frame.
  ///
  /// - Throws: `HTTP2Failure` if nghttp2 cannot allocate memory.
  package init() throws {
    var callbacks: OpaquePointer?
    guard nghttp2_session_callbacks_new(&callbacks) == 0 else {
      throw HTTP2Failure(kind: .fatal, description: "nghttp2 has no memory for a session")
    }
    defer { nghttp2_session_callbacks_del(callbacks) }
    Self.install(callbacks)
    var made: OpaquePointer?
    guard nghttp2_session_client_new(&made, callbacks, nil) == 0, let made else {
      throw HTTP2Failure(kind: .fatal, description: "nghttp2 has no memory for a session")
    }
    session = made
    nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
    var settings = [nghttp2_settings_entry(settings_id: APNS_SETTING_ENABLE_PUSH, value: 0)]
    nghttp2_submit_settings(session, 0, &settings, settings.count)
  }

  deinit { nghttp2_session_del(session) }

  /// Sends a request. `headers` begin with the pseudo-header fields. Requests above the server's stream limit are
  /// queued.
  ///
  /// - Returns: The request's stream identifier.
  /// - Throws: `HTTP2Failure` if the connection accepts no more requests.
  package func request(headers: HeaderList, body: [UInt8]) throws -> Int32 {
    let exchange = Exchange(body: body)
    let stream = headers.bytes.withUnsafeBytes { bytes -> Int32 in
      guard let base = bytes.baseAddress else { return -1 }
      // nghttp2 does not write to name or value and copies both before the call returns.
      let start = UnsafeMutablePointer(mutating: base.assumingMemoryBound(to: UInt8.self))
      return withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: headers.count) { pairs in
        var count = 0
        headers.forEachField { name, value in
          pairs.initializeElement(
            at: count,
            to:
              nghttp2_nv(
                name: start + Int(name.offset), value: start + Int(value.offset), namelen: Int(name.count),
                valuelen: Int(value.count), flags: APNS_NV_NONE))
          count += 1
        }
        guard !body.isEmpty else { return nghttp2_submit_request(session, nil, pairs.baseAddress, count, nil, nil) }
        var provider = nghttp2_data_provider()
        // Unretained: `exchanges` retains it until the stream is closed, after which nghttp2 requests no data.
        provider.source.ptr = Unmanaged.passUnretained(exchange).toOpaque()
        provider.read_callback = { _, _, buffer, length, flags, source, _ in
          guard let buffer, let flags, let pointer = source?.pointee.ptr else { return 0 }
          let exchange = Unmanaged<Exchange>.fromOpaque(pointer).takeUnretainedValue()
          let count = min(length, exchange.body.count - exchange.sent)
          _ = UnsafeMutableBufferPointer(start: buffer, count: count)
            .update(fromContentsOf: exchange.body[exchange.sent..<exchange.sent + count])
          exchange.sent += count
          if exchange.sent == exchange.body.count { flags.pointee |= APNS_DATA_FLAG_EOF }
          return count
        }
        return nghttp2_submit_request(session, nil, pairs.baseAddress, count, &provider, nil)
      }
    }
    guard stream > 0 else {
      throw HTTP2Failure(
        kind: .fatal, description: "the connection takes no more requests: " + String(cString: nghttp2_strerror(stream))
      )
    }
    exchanges[stream] = exchange
    return stream
  }

  /// Processes decrypted bytes from the server and returns the resulting events.
  ///
  /// - Throws: `HTTP2Failure` if the session cannot continue.
  package func receive(_ bytes: UnsafeRawBufferPointer) throws -> [Event] {
    let consumed = nghttp2_session_mem_recv(
      session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    guard consumed >= 0 else {
      throw HTTP2Failure(kind: .fatal, description: String(cString: nghttp2_strerror(Int32(consumed))))
    }
    return takeEvents()
  }

  /// Returns the events that `receive` has not returned: a response that is not valid HTTP/2 ends its stream in `appendOutput`.
  package func takeEvents() -> [Event] {
    defer { events.removeAll() }
    return events
  }

  /// Appends all bytes to send to the server. `takeEvents` must follow.
  package func appendOutput(to output: inout [UInt8]) {
    while true {
      var frame: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(session, &frame)
      guard count > 0, let frame else { return }
      output.append(contentsOf: UnsafeBufferPointer(start: frame, count: count))
    }
  }

  /// Whether nothing more is read or sent: after an error of the server that ends the connection, once GOAWAY is sent.
  package var isFinished: Bool {
    nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
  }

  // MARK: - nghttp2's callbacks

  private static func install(_ callbacks: OpaquePointer?) {
    nghttp2_session_callbacks_set_on_header_callback(callbacks) {
      _, frame, name, nameCount, value, valueCount, _, user in
      guard let frame, let user else { return 0 }
      let session = HTTP2ClientSession.from(user)
      let stream = frame.pointee.hd.stream_id
      guard let exchange = session.exchanges[stream], !exchange.isExcessive else { return 0 }
      let name = UnsafeRawBufferPointer(start: name, count: nameCount)
      // A final response replaces an interim one; trailers are not kept.
      if exchange.hasFinalHeaders { return 0 }
      if name.equals(":status") { exchange.response.headers.removeAll() }
      let value = UnsafeRawBufferPointer(start: value, count: valueCount)
      if !exchange.response.headers.append(name: name, value: value) { session.abandon(exchange, on: stream) }
      return 0
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, stream, data, count, user in
      guard let user else { return 0 }
      let session = HTTP2ClientSession.from(user)
      guard let exchange = session.exchanges[stream], !exchange.isExcessive else { return 0 }
      guard exchange.response.body.count + count <= HTTPResponse.bodyLimit else {
        session.abandon(exchange, on: stream)
        return 0
      }
      exchange.response.body.append(contentsOf: UnsafeBufferPointer(start: data, count: count))
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
      guard let frame, let user else { return 0 }
      HTTP2ClientSession.from(user).received(frame)
      return 0
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, code, user in
      guard let user else { return 0 }
      HTTP2ClientSession.from(user).closed(stream, errorCode: code)
      return 0
    }
  }

  private static func from(_ user: UnsafeMutableRawPointer) -> HTTP2ClientSession {
    Unmanaged<HTTP2ClientSession>.fromOpaque(user).takeUnretainedValue()
  }

  private func received(_ frame: UnsafePointer<nghttp2_frame>) {
    switch frame.pointee.hd.type {
    case APNS_FRAME_HEADERS, APNS_FRAME_DATA:
      guard let exchange = exchanges[frame.pointee.hd.stream_id] else { return }
      if !exchange.hasFinalHeaders, exchange.response.status >= 200 { exchange.hasFinalHeaders = true }
      if frame.pointee.hd.flags & APNS_FLAG_END_STREAM != 0 { exchange.isComplete = true }
    case APNS_FRAME_SETTINGS where frame.pointee.hd.flags & APNS_FLAG_ACK == 0:
      let settings = frame.pointee.settings
      let entries = UnsafeBufferPointer(start: settings.iv, count: settings.niv)
      func value(_ id: Int32) -> UInt32? { entries.last { $0.settings_id == id }?.value }
      events.append(
        .settings(
          maxConcurrentStreams: value(APNS_SETTING_MAX_CONCURRENT_STREAMS),
          maxHeaderListSize: value(APNS_SETTING_MAX_HEADER_LIST_SIZE)))
    case APNS_FRAME_GOAWAY:
      let goAway = frame.pointee.goaway
      events.append(
        .goAway(
          lastStream: goAway.last_stream_id, errorCode: goAway.error_code,
          debugData: Array(UnsafeBufferPointer(start: goAway.opaque_data, count: goAway.opaque_data_len))))
    default: break
    }
  }

  /// Resets a stream whose response is too large. nghttp2 may still read the request's body until the stream is closed.
  private func abandon(_ exchange: Exchange, on stream: Int32) {
    exchange.isExcessive = true
    exchange.response = HTTPResponse()
    nghttp2_submit_rst_stream(session, 0, stream, HTTP2ErrorCode.cancel.rawValue)
    events.append(.excessiveResponse(stream: stream))
  }

  /// Resets a stream with CANCEL, because its response comes too late.
  package func cancel(_ stream: Int32) {
    nghttp2_submit_rst_stream(session, 0, stream, HTTP2ErrorCode.cancel.rawValue)
  }

  private func closed(_ stream: Int32, errorCode: UInt32) {
    guard let exchange = exchanges.removeValue(forKey: stream) else { return }
    if exchange.isExcessive { return }
    if exchange.isComplete, errorCode == HTTP2ErrorCode.noError.rawValue {
      events.append(.response(stream: stream, exchange.response))
    } else {
      events.append(.reset(stream: stream, errorCode: errorCode))
    }
  }
}
