internal import CNghttp2
public import HTTPMessage

/// The server side of one HTTP/2 connection: bytes in, events out; commands in, bytes out. It does no I/O.
///
/// Order of use: `receive` what came, take the events with `nextEvent`, give commands (`respond`, `goAway`, …), then
/// `drain` and send what it yields. Events are queued inside nghttp2's callbacks and acted on after they returned,
/// because nghttp2 must not be entered again from a callback.
///
/// Not Sendable: one session lives on one event loop.
public final class HTTP2ServerSession {
  /// What the peer did.
  public enum Event {
    /// A request came in whole, or its body grew past `HTTP2Limits.maxBodySize` and need not be waited for.
    case request(RequestStream)
    /// The client went away from the stream before its request was whole.
    case aborted(RequestStream)
    /// nghttp2 ended the stream with this code, because its request broke the rules of HTTP/2.
    case reset(RequestStream, HTTP2ErrorCode)
    /// The peer opened more streams than the limit it had acknowledged.
    case excessStreams(limit: UInt32)
    /// The peer sent GOAWAY with this code.
    case goAway(errorCode: UInt32)
  }

  // nghttp2 owns what this points to until `nghttp2_session_del` in deinit. Its user data is this object, unretained:
  // callbacks run only inside calls that this object makes, hence only while it lives.
  private let session: OpaquePointer

  // Callbacks run inside calls of this object on the same thread, and none of those holds one of these properties while
  // it calls nghttp2: the run-time checks for overlapping access would cost much and find nothing.
  @exclusivity(unchecked) private var events: [Event] = []
  @exclusivity(unchecked) private var eventsTaken = 0
  @exclusivity(unchecked) private var streamLimits = StreamLimits()
  /// Every stream nghttp2 has open; its user data for the stream points to the object unretained. Each knows its index.
  @exclusivity(unchecked) private var open: [RequestStream] = []
  /// The stream whose header fields are coming: they come together, so it need not be looked up for each.
  @exclusivity(unchecked) private var current: RequestStream?
  @exclusivity(unchecked) private var excessReported = false
  /// Streams whose answer is out but whose request was not finished: they get RST_STREAM NO_ERROR.
  @exclusivity(unchecked) private var unfinished: [Int32] = []
  /// Closed streams' objects, for the next ones. Bounded so that a burst does not stay in memory.
  @exclusivity(unchecked) private var pool: [RequestStream] = []
  private static let poolSize = 32

  /// A session that will first say SETTINGS as APNs does: 4096 / `maxConcurrentStreams` / 16384 / 8000, in this order.
  ///
  /// - Throws: `HTTP2Failure` if nghttp2 has no memory.
  public init(maxConcurrentStreams: UInt32) throws {
    var callbacks: OpaquePointer?
    var options: OpaquePointer?
    guard nghttp2_session_callbacks_new(&callbacks) == 0, nghttp2_option_new(&options) == 0 else {
      throw HTTP2Failure(kind: .fatal, description: "nghttp2 has no memory for a session")
    }
    defer {
      nghttp2_session_callbacks_del(callbacks)
      nghttp2_option_del(options)
    }
    Self.install(callbacks)
    // A space after the provider token must reach the rules of APNs, not end the stream.
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(options, 1)
    // Without it nghttp2 keeps closed streams for a priority tree that nobody uses.
    nghttp2_option_set_no_closed_streams(options, 1)
    var made: OpaquePointer?
    guard nghttp2_session_server_new2(&made, callbacks, nil, options) == 0, let made else {
      throw HTTP2Failure(kind: .fatal, description: "nghttp2 has no memory for a session")
    }
    session = made
    nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
    var settings = [
      nghttp2_settings_entry(settings_id: APNS_SETTING_HEADER_TABLE_SIZE, value: HTTP2Limits.headerTableSize),
      nghttp2_settings_entry(settings_id: APNS_SETTING_MAX_CONCURRENT_STREAMS, value: HTTP2Limits.hardStreamLimit),
      nghttp2_settings_entry(settings_id: APNS_SETTING_MAX_FRAME_SIZE, value: HTTP2Limits.maxFrameSize),
      nghttp2_settings_entry(
        settings_id: APNS_SETTING_MAX_HEADER_LIST_SIZE, value: UInt32(HTTP2Limits.maxHeaderListSize)),
    ]
    nghttp2_submit_settings(session, 0, &settings, settings.count)
    streamLimits.announce(maxConcurrentStreams)
  }

  deinit { nghttp2_session_del(session) }

  // MARK: - Bytes and events

  /// Takes plain bytes from the peer. Events are then waiting in `nextEvent`.
  ///
  /// - Throws: `HTTP2Failure` when the session cannot go on. Ordinary protocol errors of the peer are answered by nghttp2
  ///   with GOAWAY: then `isFinished` becomes true once `drain` has yielded it.
  public func receive(_ bytes: UnsafeRawBufferPointer) throws {
    let consumed = nghttp2_session_mem_recv(
      session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    guard consumed < 0 else { return }
    let badPreface = consumed == Int(NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue)
    throw HTTP2Failure(
      kind: badPreface ? .badPreface : .fatal, description: String(cString: nghttp2_strerror(Int32(consumed))))
  }

  /// Whether `nextEvent` has something.
  public var hasEvents: Bool { eventsTaken < events.count }

  /// The next thing the peer did, or nil when all was taken.
  public func nextEvent() -> Event? {
    guard eventsTaken < events.count else {
      events.removeAll(keepingCapacity: true)
      eventsTaken = 0
      return nil
    }
    eventsTaken += 1
    return events[eventsTaken - 1]
  }

  /// Appends everything that should now go to the peer.
  public func drain(into output: inout [UInt8]) {
    appendFrames(to: &output)
    // The answer to a request that is still coming is out: tell the client to stop sending it (RFC 9113 section 8.1).
    while let stream = unfinished.popLast() {
      nghttp2_submit_rst_stream(session, 0, stream, HTTP2ErrorCode.noError.rawValue)
      appendFrames(to: &output)
    }
  }

  private func appendFrames(to output: inout [UInt8]) {
    while true {
      var frame: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(session, &frame)
      guard count > 0, let frame else { return }
      let start = output.count
      output.append(contentsOf: UnsafeBufferPointer(start: frame, count: count))
      // Frame header: length (3), type, flags. nghttp2 yields whole frames, SETTINGS in one piece.
      if count >= 9, frame[3] == APNS_FRAME_SETTINGS, frame[4] & APNS_FLAG_ACK == 0 {
        streamLimits.patchSettings(in: &output, frameAt: start, end: start + count)
      } else if count >= 17, frame[3] == APNS_FRAME_GOAWAY {
        goAwaySent = GoAway(explaining: &output, frameAt: start)
      }
    }
  }

  /// The last GOAWAY that was sent, by a command or by nghttp2 because the peer broke the protocol.
  public private(set) var goAwaySent: GoAway?

  /// Neither side has anything more to say: close once the drained bytes are sent.
  public var isFinished: Bool {
    nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
  }

  /// Streams that are neither closed nor reset.
  public var openStreamCount: Int { open.count }

  /// Streams that are open and were not answered, for a connection that ends.
  public var unansweredStreams: [RequestStream] { open.filter { !$0.isAnswered } }

  /// The highest stream whose request was processed, as GOAWAY names it.
  public var lastProcessedStream: Int32 { nghttp2_session_get_last_proc_stream_id(session) }

  // MARK: - Commands

  /// Answers a request: HEADERS with `headers` (`:status` first), and `body`, when there is one, in one DATA frame. The
  /// last of these carries END_STREAM.
  public func respond(to stream: RequestStream, headers: borrowing HeaderList, body: [UInt8] = []) {
    let id = stream.request.stream
    stream.isAnswered = true
    stream.responseBody = body
    withNameValues(of: headers) { pairs, count in
      if body.isEmpty {
        _ = nghttp2_submit_response(session, id, pairs, count, nil)
      } else {
        // Unretained: the object is in `open` until on_stream_close, and nghttp2 asks for no data after that.
        var provider = nghttp2_data_provider()
        provider.source.ptr = Unmanaged.passUnretained(stream).toOpaque()
        provider.read_callback = { _, _, buffer, length, flags, source, _ in
          guard let buffer, let flags, let pointer = source?.pointee.ptr else { return 0 }
          let stream = Unmanaged<RequestStream>.fromOpaque(pointer).takeUnretainedValue()
          let part = stream.copyResponseBody(to: UnsafeMutableBufferPointer(start: buffer, count: length))
          if part.isLast { flags.pointee |= APNS_DATA_FLAG_EOF }
          return part.count
        }
        _ = nghttp2_submit_response(session, id, pairs, count, &provider)
      }
    }
  }

  /// Ends one stream with RST_STREAM.
  public func reset(_ stream: RequestStream, code: HTTP2ErrorCode) {
    stream.isAnswered = true
    nghttp2_submit_rst_stream(session, 0, stream.request.stream, code.rawValue)
  }

  /// Announces another MAX_CONCURRENT_STREAMS. A higher limit holds at once, a lower one when the peer has acknowledged it.
  public func announce(maxConcurrentStreams limit: UInt32) {
    // nghttp2 itself always hears the hard limit: it refuses streams above a value the peer has not acknowledged yet,
    // which APNs does not do. The number on the wire is patched in `drain`.
    var entry = nghttp2_settings_entry(
      settings_id: APNS_SETTING_MAX_CONCURRENT_STREAMS, value: HTTP2Limits.hardStreamLimit)
    nghttp2_submit_settings(session, 0, &entry, 1)
    streamLimits.announce(limit)
  }

  /// Sends GOAWAY. Closing the connection afterwards is the caller's business.
  ///
  /// - Parameter lastStream: the highest stream that was or will be served; `nil` for the last one processed.
  public func goAway(lastStream: Int32? = nil, code: HTTP2ErrorCode, debugData: [UInt8] = []) {
    nghttp2_submit_goaway(
      session, 0, lastStream ?? lastProcessedStream, code.rawValue, debugData, debugData.count)
  }

  /// Sends the first half of a graceful end, GOAWAY with last stream 2³¹−1 (RFC 9113 section 6.8).
  public func announceShutdown() {
    nghttp2_submit_shutdown_notice(session)
  }

  // MARK: - What nghttp2's callbacks call

  private func withNameValues(of headers: borrowing HeaderList, _ body: (UnsafePointer<nghttp2_nv>, Int) -> Void) {
    headers.bytes.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return }
      // nghttp2 declares name and value as mutable and writes to neither; it copies both before the call returns.
      let start = UnsafeMutablePointer(mutating: base.assumingMemoryBound(to: UInt8.self))
      withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: headers.count) { pairs in
        var filled = 0
        HeaderList.forEachField(in: bytes) { name, value in
          // Ids differ in each answer: entries for them would only push others out of the peer's table.
          let flags = start[Int(name.offset)] == UInt8(ascii: ":") ? APNS_NV_NONE : APNS_NV_NO_INDEX
          pairs.initializeElement(
            at: filled,
            to: nghttp2_nv(
              name: start + Int(name.offset), value: start + Int(value.offset), namelen: Int(name.count),
              valuelen: Int(value.count), flags: flags))
          filled += 1
        }
        if let first = pairs.baseAddress { body(first, filled) }
      }
    }
  }

  static func from(_ user: UnsafeMutableRawPointer) -> HTTP2ServerSession {
    Unmanaged<HTTP2ServerSession>.fromOpaque(user).takeUnretainedValue()
  }

  private func stream(_ id: Int32) -> RequestStream? {
    guard let pointer = nghttp2_session_get_stream_user_data(session, id) else { return nil }
    return Unmanaged<RequestStream>.fromOpaque(pointer).takeUnretainedValue()
  }

  func beginRequest(on id: Int32) {
    let stream = pool.popLast() ?? RequestStream()
    stream.reset(stream: id)
    stream.index = open.count
    open.append(stream)
    current = stream
    nghttp2_session_set_stream_user_data(session, id, Unmanaged.passUnretained(stream).toOpaque())
    if let limit = streamLimits.enforced, open.count > limit, !excessReported {
      excessReported = true
      events.append(.excessStreams(limit: limit))
    }
  }

  func header(on id: Int32, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    guard let stream = current, stream.request.stream == id else { return }
    if stream.request.headers.listSize + name.count + value.count + 32 > HTTP2Limits.maxHeaderListSize {
      stream.request.headersTooLarge = true
    } else if !stream.request.headersTooLarge {
      stream.request.headers.append(name: name, value: value)
    }
  }

  func body(on id: Int32, _ bytes: UnsafeRawBufferPointer) {
    guard let stream = stream(id) else { return }
    let room = HTTPRequest.bodyLimit - stream.request.body.count
    if room > 0 { stream.request.body.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes.prefix(room))) }
    stream.request.bodySize += bytes.count
    if stream.request.bodySize > HTTP2Limits.maxBodySize { report(stream) }
  }

  func received(_ frame: UnsafePointer<nghttp2_frame>) {
    let header = frame.pointee.hd
    switch header.type {
    case APNS_FRAME_HEADERS, APNS_FRAME_DATA:
      guard let stream = stream(header.stream_id) else { return }
      if header.flags & APNS_FLAG_END_STREAM != 0 {
        stream.isComplete = true
        report(stream)
      } else if stream.request.headersTooLarge {
        report(stream)
      }
    case APNS_FRAME_SETTINGS:
      if header.flags & APNS_FLAG_ACK != 0 { streamLimits.acknowledged() }
    case APNS_FRAME_GOAWAY:
      events.append(.goAway(errorCode: apns_goaway_error_code(frame)))
    default: break
    }
  }

  private func report(_ stream: RequestStream) {
    guard !stream.isReported else { return }
    stream.isReported = true
    events.append(.request(stream))
  }

  func sent(_ frame: UnsafePointer<nghttp2_frame>) {
    let header = frame.pointee.hd
    switch header.type {
    case APNS_FRAME_HEADERS, APNS_FRAME_DATA:
      guard header.flags & APNS_FLAG_END_STREAM != 0, let stream = stream(header.stream_id), !stream.isComplete
      else { return }
      unfinished.append(header.stream_id)
    case APNS_FRAME_RST_STREAM:
      stream(header.stream_id)?.resetSent = HTTP2ErrorCode(rawValue: apns_rst_stream_error_code(frame))
    default: break
    }
  }

  func closed(_ id: Int32) {
    guard let stream = stream(id) else { return }
    nghttp2_session_set_stream_user_data(session, id, nil)
    if current === stream { current = nil }
    let last = open.removeLast()
    if last !== stream {
      open[stream.index] = last
      last.index = stream.index
    }
    if !stream.isAnswered, !stream.isReported {
      stream.isReported = true
      events.append(stream.resetSent.map { .reset(stream, $0) } ?? .aborted(stream))
    } else if stream.isAnswered, pool.count < Self.poolSize {
      pool.append(stream)
    }
  }
}
