internal import CAPNSMockNghttp2

/// The server side of one HTTP/2 connection, on top of nghttp2: consumes received bytes, produces events and bytes
/// to send. It performs no I/O.
///
/// Use it in this order: pass received bytes to `receive`, read the events with `nextEvent`, issue commands (`respond`,
/// `submitGoAway`, …), then call `appendOutput` and send the bytes it appends. Events are queued inside nghttp2's
/// callbacks and handled after they return, because nghttp2 must not be re-entered from a callback.
///
/// Not Sendable: a session is confined to one event loop.
package final class HTTP2ServerSession {
  /// An event caused by the peer.
  package enum Event {
    /// A complete request, or one whose body exceeded `HTTP2Limits.maxBodySize`; the rest of such a body is not
    /// awaited.
    case request(RequestStream)
    /// The client reset the stream before its request was complete.
    case aborted(RequestStream)
    /// The server reset the stream with this code, because the request violates HTTP/2.
    case reset(RequestStream, HTTP2ErrorCode)
    /// The stream was closed after its request was reported, by RST_STREAM from the client or by a GOAWAY that excludes
    /// it, while the response was not yet submitted or a part of it waited for a release. Nothing can be sent on the
    /// stream any more.
    case cancelled(RequestStream)
    /// The last frame of a response, whose end `reportsEnd(on:)` was asked to report, was appended to the output.
    case responseSent(stream: Int32)
    /// The submitted response is not sent: the peer violated the protocol after the request, and no response
    /// follows the GOAWAY that reports the violation.
    case responseDropped(RequestStream)
    /// The peer exceeded a stream limit that it had acknowledged; `stream` is the first stream above `limit`.
    case excessStreams(stream: Int32, limit: UInt32)
    /// The peer sent GOAWAY with this code.
    case goAway(errorCode: UInt32)
  }

  // Owned by nghttp2 until `nghttp2_session_del` in deinit. Its user data is this object, unretained: callbacks run
  // only inside calls that this object makes, hence only while it is alive.
  let session: OpaquePointer

  // Callbacks run inside calls of this object on the same thread, and no method accesses one of these properties across
  // a call into nghttp2. The release program does not check that at run time (`.ci/release-flags`), the tests do.

  var events = EventQueue()
  var streamLimits = StreamLimits()
  /// The streams that nghttp2 has open; nghttp2's user data for a stream points to the same object. Each object is
  /// retained once for this array, until `removeOpenStream` or `deinit`, and stores its index here.
  var open: [Unmanaged<RequestStream>] = []
  /// The stream nghttp2 used last, cached to avoid a lookup for each field and frame. It is always an element of
  /// `open` and is cleared before the element is removed.
  var recent: (id: Int32, stream: Unmanaged<RequestStream>)?
  var closedStreams = ClosedStreamTracker()
  var ignoredFrames = IgnoredFrameScanner()
  var receiving = ReceiveState()
  var pending = PendingFrames()
  /// The header block being received.
  var fields: FieldBuffer
  /// The size of all reported requests in bytes: their header lists, counted as in SETTINGS_MAX_HEADER_LIST_SIZE,
  /// and their bodies.
  package internal(set) var requestByteCount = 0
  /// The last GOAWAY frame of the output, whether sent by a command or by nghttp2 after a protocol error of the peer.
  package private(set) var goAwaySent: GoAway?
  /// Whether header fields were appended to the output.
  package internal(set) var hasSentFields = false
  /// Whether status 100 was sent for a request.
  package internal(set) var hasSentContinue = false

  /// The error code for a protocol violation of the client that nghttp2 does not detect.
  var connectionError: HTTP2ErrorCode?
  /// Why a callback ended the session.
  var failureReason: String?
  /// Whether the client's connection preface, including its SETTINGS frame, has been received.
  var hasReceivedPreface = false
  /// The number of `endOverdueStreams` calls before the preface was received.
  var overdueChecks: UInt8 = 0
  /// Streams reset since the last call of `endOverdueStreams`, by the client or because they violate HTTP/2.
  var resetCount = 0
  /// The number of responses whose `apns-…` fields were indexed in the peer's HPACK table, up to
  /// `maxIndexedResponses`.
  var indexedResponses = 0
  /// Enough for an accepted and a rejected push.
  static let maxIndexedResponses = 4
  let pool: RequestStreamPool
  private let memory: SessionMemory

  /// Creates a session whose first SETTINGS frame equals that of APNs: 4096 / `maxConcurrentStreams` / 16384 /
  /// 8000, in this order.
  ///
  /// - Parameters:
  ///   - settings: Values that replace or extend the defaults.
  ///   - pool: A pool that the sessions of one thread may share.
  ///   - allowsReordering: Whether the frames of different responses may leave in another order than `appendOutput`
  ///     returns them: the header fields then do not refer to earlier ones (RFC 7541, section 2.3.2). The first ones announce this,
  ///     and have to leave first.
  /// - Throws: `HTTP2Failure` if nghttp2 cannot allocate memory.
  package init(
    maxConcurrentStreams: UInt32, settings: HTTP2Settings = HTTP2Settings(),
    pool: RequestStreamPool = RequestStreamPool(), allowsReordering: Bool = false
  ) throws {
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
    // `MessageValidator` validates the messages.
    nghttp2_option_set_no_http_messaging(options, 1)
    // Otherwise nghttp2 keeps closed streams for a priority tree that is not used.
    nghttp2_option_set_no_closed_streams(options, 1)
    // Twice our limit, so that ours applies first: it reports the reason to the client (`HTTP2Limits.maxResets`).
    nghttp2_option_set_stream_reset_rate_limit(
      options, UInt64(2 * HTTP2Limits.maxResets), UInt64(HTTP2Limits.maxResets))
    // The callbacks do both, because a fault may suppress them.
    nghttp2_option_set_no_auto_ping_ack(options, 1)
    nghttp2_option_set_no_auto_window_update(options, 1)
    if allowsReordering { nghttp2_option_set_max_deflate_dynamic_table_size(options, 0) }
    var made: OpaquePointer?
    let memory = SessionMemory(pool: pool)
    let code = memory.withAllocator { nghttp2_session_server_new3(&made, callbacks, nil, options, &$0) }
    guard code == 0, let made else {
      throw HTTP2Failure(kind: .fatal, description: "nghttp2 has no memory for a session")
    }
    session = made
    self.memory = memory
    self.pool = pool
    fields = FieldBuffer(memory: pool.fieldBlock)
    nghttp2_session_set_user_data(session, Unmanaged.passUnretained(self).toOpaque())
    var first = settings
    first.maxConcurrentStreams = settings.maxConcurrentStreams ?? maxConcurrentStreams
    first.maxHeaderListSize = settings.maxHeaderListSize ?? UInt32(HTTP2Limits.maxHeaderListSize)
    let fixed = [
      nghttp2_settings_entry(settings_id: APNS_SETTING_HEADER_TABLE_SIZE, value: HTTP2Limits.headerTableSize),
      nghttp2_settings_entry(settings_id: APNS_SETTING_MAX_FRAME_SIZE, value: HTTP2Limits.maxFrameSize),
    ]
    let entries = (fixed + first.entries).sorted { $0.settings_id < $1.settings_id }
    nghttp2_submit_settings(session, 0, entries, entries.count)
    streamLimits.announce(first.maxConcurrentStreams)
  }

  deinit {
    nghttp2_session_del(session)
    for stream in open { stream.release() }
  }

  // MARK: - Bytes and events

  /// Processes decrypted bytes from the peer. The resulting events are available from `nextEvent`.
  ///
  /// - Throws: `HTTP2Failure` if the session cannot continue. nghttp2 answers ordinary protocol errors of the peer
  ///   with GOAWAY; `isFinished` becomes true once `appendOutput` has appended it.
  package func receive(_ bytes: UnsafeRawBufferPointer) throws {
    var processed = 0
    var offset = ignoredFrames.nextFrameOffset ?? bytes.count
    while let frame = IgnoredFrameScanner.wholeFrame(at: offset, in: bytes) {
      if frame[3] == APNS_FRAME_HEADERS, let expanded = pool.huffmanExpander.expand(frame) {
        if processed < offset, try !passToNghttp2(UnsafeRawBufferPointer(rebasing: bytes[processed..<offset])) {
          return
        }
        guard try passToNghttp2(expanded) else { return }
        processed = offset + frame.count
      }
      offset += frame.count
    }
    if processed < bytes.count { _ = try passToNghttp2(UnsafeRawBufferPointer(rebasing: bytes[processed...])) }
  }

  /// Passes bytes to nghttp2.
  ///
  /// - Returns: Whether nghttp2 may receive the bytes that follow.
  private func passToNghttp2(_ bytes: UnsafeRawBufferPointer) throws -> Bool {
    if receiving.queueBeforeSettings != nil { didBeginSettings() }
    receiving.isActive = true
    let consumed = nghttp2_session_mem_recv(
      session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    receiving.isActive = false
    flushFields()
    if consumed < 0, let connectionError {
      nghttp2_session_terminate_session2(session, lastReceivedStream, connectionError.rawValue)
      return false
    }
    if consumed < 0 {
      let code = Int32(consumed)
      throw HTTP2Failure(
        kind: code == NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue ? .badPreface : .fatal,
        description: failureReason ?? String(cString: nghttp2_strerror(code)))
    }
    if let start = ignoredFrames.didProcess(bytes) { checkIgnoredFrames(in: bytes, from: start) }
    if !receiving.closedStreams.isEmpty { receiving.closedStreams = [] }
    if resetCount > HTTP2Limits.maxResets {
      let seconds = HTTP2Limits.overdueCheckInterval.components.seconds
      throw HTTP2Failure(
        kind: .fatal, description: "more than \(HTTP2Limits.maxResets) streams reset within \(seconds) s")
    }
    return true
  }

  /// Whether any events are queued.
  package var hasEvents: Bool { !events.isEmpty }

  /// Returns the next event, or nil if there is none.
  package func nextEvent() -> Event? {
    while let event = events.removeFirst() {
      // Skip the event if the stream was reset before the cancellation was noticed.
      if case .cancelled(let stream) = event, stream.isEndedByServer, !stream.isResponseUnfinished { continue }
      return event
    }
    return nil
  }

  /// Appends the bytes to send to the peer, or as many whole frames as are needed to reach `limit` bytes.
  ///
  /// - Returns: Whether nothing is left to send.
  @discardableResult
  package func appendOutput(to output: inout [UInt8], upTo limit: Int = .max) -> Bool {
    creditConnection()
    guard appendFrames(to: &output, upTo: limit) else { return false }
    // Only after the response: nghttp2 would send RST_STREAM first and then drop the response.
    while let reset = pending.resets.popLast() {
      nghttp2_submit_rst_stream(session, 0, reset.stream, reset.code)
      _ = appendFrames(to: &output, upTo: .max)
    }
    if !pending.goAways.isEmpty { appendGoAways(to: &output) }
    return true
  }

  /// - Returns: Whether no frames are left.
  private func appendFrames(to output: inout [UInt8], upTo limit: Int) -> Bool {
    while output.count < limit {
      var frame: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(session, &frame)
      guard count > 0, let frame else { return true }
      let start = output.count
      output.append(contentsOf: UnsafeBufferPointer(start: frame, count: count))
      // Frame header: length (3), type, flags. nghttp2 returns whole frames; SETTINGS is never split.
      if count >= 9, frame[3] == APNS_FRAME_SETTINGS {
        if frame[4] & APNS_FLAG_ACK == 0 {
          streamLimits.patchSettings(in: &output, frameAt: start, end: start + count)
        } else if !acknowledgesSettings {
          output.removeLast(count)
        }
      } else if count >= 17, frame[3] == APNS_FRAME_GOAWAY {
        goAwaySent = GoAway(explaining: &output, frameAt: start)
      }
    }
    return false
  }

  private func appendGoAways(to output: inout [UInt8]) {
    for frame in pending.goAways {
      goAwaySent = GoAway(
        lastStream: frame.lastStream, rawCode: frame.code, debugData: frame.debugData, appendingTo: &output)
    }
    pending.goAways = []
  }

  // MARK: - Suppressed acknowledgements and window updates

  /// Whether the client's SETTINGS frames are acknowledged. Acknowledgements are discarded, not deferred, while
  /// this is false.
  package var acknowledgesSettings = true

  /// Whether the client's PING frames are acknowledged. A PING received while this is false is never acknowledged.
  package var acknowledgesPings = true

  /// Whether window updates are withheld for DATA received from now on. They are sent once this is false again. A
  /// client that sends more than its window allows violates the protocol.
  package var withholdsWindow: Bool {
    get { isWindowWithheld }
    set {
      guard newValue != isWindowWithheld else { return }
      isWindowWithheld = newValue
      if !newValue { creditWithheldBytes() }
    }
  }
  var isWindowWithheld = false
  /// Body bytes received and not yet credited to the connection's flow-control window.
  var uncreditedBytes = 0
  /// Body bytes withheld from the connection's flow-control window.
  var withheldBytes = 0

  // MARK: - State

  /// Whether neither side has anything more to send: close the connection once the output is sent.
  package var isFinished: Bool {
    nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
  }

  /// The number of streams that are neither closed nor reset.
  package var openStreamCount: Int { open.count }

  /// Returns the open stream with this identifier, or nil if it is idle or closed.
  package func stream(withID id: Int32) -> RequestStream? {
    guard let pointer = nghttp2_session_get_stream_user_data(session, id) else { return nil }
    return Unmanaged<RequestStream>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// Returns whether a response was submitted on a stream of which not everything was appended to the output. If so, an event
  /// reports the end: `responseSent`, or `cancelled` or `responseDropped` if it is never sent completely.
  package func reportsEnd(on id: Int32) -> Bool {
    guard let stream = stream(withID: id), stream.isResponseUnfinished else { return false }
    stream.state.reportsEnd = true
    return true
  }

  /// The open streams without a submitted response.
  package var unansweredStreams: [RequestStream] { openStreams.filter { !$0.isEndedByServer } }

  /// The number of responses that are not sent completely because the client's window for the connection is exhausted;
  /// 0 while there is window left.
  package var responsesAwaitingWindow: Int {
    nghttp2_session_get_remote_window_size(session) > 0 ? 0 : openStreams.count { $0.isEndedByServer }
  }

  /// Whether a request is still being received or a submitted response is not fully sent. A closing connection
  /// waits for these; a stream whose request was reported and not answered is delayed on purpose and does not
  /// count.
  package var hasPendingWork: Bool { openStreams.contains { $0.isEndedByServer || !$0.isReported } }

  /// Whether a submitted response is not fully sent.
  package var hasPendingResponses: Bool { openStreams.contains(where: \.isEndedByServer) }

  var openStreams: some Sequence<RequestStream> { open.lazy.map { $0.takeUnretainedValue() } }

  /// The highest stream that the client has opened and nghttp2 has accepted: its last stream in GOAWAY.
  package var lastReceivedStream: Int32 { nghttp2_session_get_last_proc_stream_id(session) }
}

extension HTTP2ServerSession {
  /// The events that callbacks have queued, in order.
  struct EventQueue {
    /// A slot is nil once its event was removed.
    private var slots: [Event?] = []
    private var next = 0

    var isEmpty: Bool { next == slots.count }

    mutating func append(_ event: Event) { slots.append(event) }

    /// Removes and returns the first event; nil if there is none.
    mutating func removeFirst() -> Event? {
      guard next < slots.count else {
        slots.removeAll(keepingCapacity: true)
        next = 0
        return nil
      }
      defer { next += 1 }
      // Moved out, which saves a retain and a release per push.
      return slots[next].take()
    }

    /// Replaces each queued request for which `replacement` returns an event.
    mutating func replaceRequests(_ replacement: (RequestStream) -> Event?) {
      for index in slots.indices {
        guard case .request(let stream)? = slots[index], let event = replacement(stream) else { continue }
        slots[index] = event
      }
    }
  }

  /// The state of the current call of nghttp2 with received bytes.
  struct ReceiveState {
    /// Whether nghttp2 is processing received bytes.
    var isActive = false
    /// Streams that were closed while nghttp2 processed the current bytes.
    var closedStreams: [Int32] = []
    /// The length of nghttp2's outbound queue before a SETTINGS frame of the client that is still incomplete; nil if
    /// there is none.
    var queueBeforeSettings: Int?
  }

  /// Frames to send after those that nghttp2 has queued.
  struct PendingFrames {
    /// Streams to reset with RST_STREAM.
    var resets: [(stream: Int32, code: UInt32)] = []
    /// GOAWAY frames to send without nghttp2's knowledge.
    var goAways: [(lastStream: Int32, code: UInt32, debugData: [UInt8])] = []
  }
}
