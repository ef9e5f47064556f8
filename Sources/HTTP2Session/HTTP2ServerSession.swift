internal import CNghttp2

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
    /// A stream whose request was handed out, and not answered since or with a part of the answer held, is closed: by the client's RST_STREAM, or by a GOAWAY
    /// that leaves it out. Nothing can be said on it any more.
    case cancelled(RequestStream)
    /// The answer that was given does not leave: the peer broke the protocol behind the request, and nothing follows the
    /// GOAWAY that says so.
    case answerDropped(RequestStream)
    /// The peer opened more streams than the limit it had acknowledged; this one was the first too many.
    case excessStreams(stream: Int32, limit: UInt32)
    /// The peer sent GOAWAY with this code.
    case goAway(errorCode: UInt32)
  }

  // nghttp2 owns what this points to until `nghttp2_session_del` in deinit. Its user data is this object, unretained:
  // callbacks run only inside calls that this object makes, hence only while it lives.
  let session: OpaquePointer

  // Callbacks run inside calls of this object on the same thread, and none of those holds one of these properties while
  // it calls nghttp2: the run-time checks for overlapping access would cost much and find nothing.
  /// One that was taken leaves nil in its place.
  @exclusivity(unchecked) var events: [Event?] = []
  @exclusivity(unchecked) private var eventsTaken = 0
  @exclusivity(unchecked) var streamLimits = StreamLimits()
  /// Every stream nghttp2 has open; its user data for the stream points to the same object. Each is retained once for its
  /// place here, until `takeOut` or `deinit`, and knows its index.
  @exclusivity(unchecked) var open: [Unmanaged<RequestStream>] = []
  /// The stream that nghttp2 spoke of last, so that it need not be looked up for each of its fields and frames. It stands
  /// in `open`, and is forgotten here before it leaves that.
  @exclusivity(unchecked) var recent: (id: Int32, stream: Unmanaged<RequestStream>)?
  @exclusivity(unchecked) var excessReported = false
  /// Streams that get RST_STREAM once what was said on them is out.
  @exclusivity(unchecked) var resetsDue: [(stream: Int32, code: UInt32)] = []
  /// GOAWAY frames that nghttp2 does not know of.
  @exclusivity(unchecked) var goAwaysDue: [(lastStream: Int32, code: UInt32, debugData: [UInt8])] = []
  @exclusivity(unchecked) var closedStreams = ClosedStreams()
  @exclusivity(unchecked) var untold = UntoldFrames()
  /// nghttp2 takes bytes in.
  @exclusivity(unchecked) var isReceiving = false
  /// Streams that were closed meanwhile.
  @exclusivity(unchecked) var closedNow: [Int32] = []
  /// How many frames waited to be sent before SETTINGS of the client that have not come whole.
  @exclusivity(unchecked) var waitingBeforeSettings: Int?
  /// What the client broke the protocol with where nghttp2 would let it pass.
  @exclusivity(unchecked) var violation: HTTP2ErrorCode?
  /// What a callback refused to go on for.
  @exclusivity(unchecked) var refusal: String?
  /// The client's preface, whose last part is SETTINGS, has come.
  @exclusivity(unchecked) var hasBegun = false
  /// How many looks found no preface.
  @exclusivity(unchecked) var looks: UInt8 = 0
  /// Streams that were reset since the last look, by the client or for not being valid HTTP/2.
  @exclusivity(unchecked) var resets = 0
  /// The header block that is coming.
  @exclusivity(unchecked) var fields: FieldBlock
  /// Bytes of fields past the limit in it.
  @exclusivity(unchecked) var headerExcess = 0
  /// How many answers put their ids into the peer's HPACK table, as far as that is counted.
  @exclusivity(unchecked) var answersIndexed = 0
  /// Enough for one that was accepted and one that was not.
  static let answersWithIndexedIDs = 4
  /// Bytes of all requests that were handed out, as their header lists count and with their bodies: what came to some use.
  @exclusivity(unchecked) public internal(set) var bytesOfRequests = 0
  let pool: RequestStreamPool
  private let memory: SessionMemory

  /// A session that will first say SETTINGS as APNs does: 4096 / `maxConcurrentStreams` / 16384 / 8000, in this order.
  ///
  /// - Parameters:
  ///   - settings: what is said instead of that, or besides.
  ///   - pool: shared with the other sessions of the thread, or not.
  /// - Throws: `HTTP2Failure` if nghttp2 has no memory.
  public init(
    maxConcurrentStreams: UInt32, settings: HTTP2Settings = HTTP2Settings(),
    pool: RequestStreamPool = RequestStreamPool()
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
    // `MessageCheck` does it.
    nghttp2_option_set_no_http_messaging(options, 1)
    // Without it nghttp2 keeps closed streams for a priority tree that nobody uses.
    nghttp2_option_set_no_closed_streams(options, 1)
    // Ours comes first, which tells the client why (`HTTP2Limits.maxResets`).
    nghttp2_option_set_stream_reset_rate_limit(
      options, UInt64(2 * HTTP2Limits.maxResets), UInt64(HTTP2Limits.maxResets))
    // Both are done in the callbacks, because a fault may withhold them.
    nghttp2_option_set_no_auto_ping_ack(options, 1)
    nghttp2_option_set_no_auto_window_update(options, 1)
    var made: OpaquePointer?
    let memory = SessionMemory(pool: pool)
    let code = memory.lend { nghttp2_session_server_new3(&made, callbacks, nil, options, &$0) }
    guard code == 0, let made else {
      throw HTTP2Failure(kind: .fatal, description: "nghttp2 has no memory for a session")
    }
    session = made
    self.memory = memory
    self.pool = pool
    fields = FieldBlock(memory: pool.fieldBlock)
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

  /// Takes plain bytes from the peer. Events are then waiting in `nextEvent`.
  ///
  /// - Throws: `HTTP2Failure` when the session cannot go on. Ordinary protocol errors of the peer are answered by nghttp2
  ///   with GOAWAY: then `isFinished` becomes true once `drain` has yielded it.
  public func receive(_ bytes: UnsafeRawBufferPointer) throws {
    var taken = 0
    var place = untold.beginning ?? bytes.count
    while let frame = UntoldFrames.wholeFrame(at: place, in: bytes) {
      if frame[3] == APNS_FRAME_HEADERS, let plain = pool.plainHeaders.frame(for: frame) {
        if taken < place, try !takeIn(UnsafeRawBufferPointer(rebasing: bytes[taken..<place])) { return }
        guard try takeIn(plain) else { return }
        taken = place + frame.count
      }
      place += frame.count
    }
    if taken < bytes.count { _ = try takeIn(UnsafeRawBufferPointer(rebasing: bytes[taken...])) }
  }

  /// Hands bytes to nghttp2.
  ///
  /// - Returns: whether it is to get what comes behind them.
  private func takeIn(_ bytes: UnsafeRawBufferPointer) throws -> Bool {
    if waitingBeforeSettings != nil { beginsSettings() }
    isReceiving = true
    let consumed = nghttp2_session_mem_recv(
      session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    isReceiving = false
    settleFields()
    if consumed < 0, let violation {
      nghttp2_session_terminate_session2(session, lastProcessedStream, violation.rawValue)
      return false
    }
    if consumed < 0 {
      let code = Int32(consumed)
      throw HTTP2Failure(
        kind: code == NGHTTP2_ERR_BAD_CLIENT_MAGIC.rawValue ? .badPreface : .fatal,
        description: refusal ?? String(cString: nghttp2_strerror(code)))
    }
    if let start = untold.took(bytes) { lookAtUntold(in: bytes, from: start) }
    if !closedNow.isEmpty { closedNow = [] }
    if resets > HTTP2Limits.maxResets {
      let seconds = HTTP2Limits.lookInterval.components.seconds
      throw HTTP2Failure(
        kind: .fatal, description: "more than \(HTTP2Limits.maxResets) streams reset within \(seconds) s")
    }
    return true
  }

  /// Whether `nextEvent` has something.
  public var hasEvents: Bool { eventsTaken < events.count }

  /// The next thing the peer did, or nil when all was taken.
  public func nextEvent() -> Event? {
    while eventsTaken < events.count {
      // Moved out, which spares a retain and a release for each push.
      let event = events[eventsTaken].take()
      eventsTaken += 1
      // Answered after the client had gone but before that was known.
      if case .cancelled(let stream) = event, stream.isAnswered, stream.answer?.isHeld != true { continue }
      return event
    }
    events.removeAll(keepingCapacity: true)
    eventsTaken = 0
    return nil
  }

  /// Appends what should now go to the peer: all of it, or as many frames as make `limit` bytes.
  ///
  /// - Returns: whether that was all.
  @discardableResult
  public func drain(into output: inout [UInt8], upTo limit: Int = .max) -> Bool {
    creditConnection()
    guard appendFrames(to: &output, upTo: limit) else { return false }
    // Only now, because nghttp2 lets RST_STREAM overtake the answer and then drops it.
    while let reset = resetsDue.popLast() {
      nghttp2_submit_rst_stream(session, 0, reset.stream, reset.code)
      _ = appendFrames(to: &output, upTo: .max)
    }
    if !goAwaysDue.isEmpty { appendGoAways(to: &output) }
    return true
  }

  /// - Returns: whether there are no more.
  private func appendFrames(to output: inout [UInt8], upTo limit: Int) -> Bool {
    while output.count < limit {
      var frame: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(session, &frame)
      guard count > 0, let frame else { return true }
      let start = output.count
      output.append(contentsOf: UnsafeBufferPointer(start: frame, count: count))
      // Frame header: length (3), type, flags. nghttp2 yields whole frames, SETTINGS in one piece.
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
    for due in goAwaysDue {
      goAwaySent = GoAway(
        lastStream: due.lastStream, rawCode: due.code, debugData: due.debugData, appendingTo: &output)
    }
    goAwaysDue = []
  }

  /// The last GOAWAY that was drained, by a command or by nghttp2 because the peer broke the protocol.
  @exclusivity(unchecked) public private(set) var goAwaySent: GoAway?

  // MARK: - What is withheld

  /// Whether the client's SETTINGS are acknowledged. While not, their acknowledgements are thrown away, not kept for later.
  @exclusivity(unchecked) public var acknowledgesSettings = true

  /// Whether the client's PINGs are acknowledged. One that comes while not is never acknowledged.
  @exclusivity(unchecked) public var acknowledgesPings = true

  /// Whether the client is given no window for the DATA that comes from now on. What was kept back is given once it is
  /// false again. A client that sends beyond its window breaks the protocol meanwhile.
  public var isWindowHeld: Bool {
    get { windowIsHeld }
    set {
      guard newValue != windowIsHeld else { return }
      windowIsHeld = newValue
      if !newValue { openWindows() }
    }
  }
  @exclusivity(unchecked) var windowIsHeld = false
  /// Body bytes that came since the connection's window was opened again, or not.
  @exclusivity(unchecked) var uncredited = 0
  /// Body bytes for which the connection's window was not opened again.
  @exclusivity(unchecked) var heldBack = 0

  // MARK: - State

  /// Neither side has anything more to say: close once the drained bytes are sent.
  public var isFinished: Bool {
    nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
  }

  /// Streams that are neither closed nor reset.
  public var openStreamCount: Int { open.count }

  /// The open stream with this number; nil if it was never opened or is closed.
  public func stream(withID id: Int32) -> RequestStream? {
    guard let pointer = nghttp2_session_get_stream_user_data(session, id) else { return nil }
    return Unmanaged<RequestStream>.fromOpaque(pointer).takeUnretainedValue()
  }

  /// Streams that are open and were not answered, for a connection that ends.
  public var unansweredStreams: [RequestStream] { openStreams.filter { !$0.isAnswered } }

  /// Whether a request is still coming, or an answer that was given is not wholly out: what a connection that ends waits
  /// for. A stream whose request came and was not answered is held on purpose.
  public var owesAnswers: Bool { openStreams.contains { $0.isAnswered || !$0.isReported } }

  var openStreams: some Sequence<RequestStream> { open.lazy.map { $0.takeUnretainedValue() } }

  /// The highest stream whose request was processed, as GOAWAY names it.
  public var lastProcessedStream: Int32 { nghttp2_session_get_last_proc_stream_id(session) }
}
