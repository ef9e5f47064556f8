internal import CNghttp2
internal import HTTPMessage

/// The methods that nghttp2's callbacks call.
extension HTTP2ServerSession {
  /// Called when a frame begins. Rejects what RFC 9113 forbids and nghttp2 ignores: HEADERS on closed streams, and
  /// a CONTINUATION that is too large (nghttp2 checks the size of all other frames). nghttp2 does not report DATA
  /// on a closed stream; see `checkIgnoredFrames`.
  ///
  /// - Returns: The return value for the callback.
  @inline(__always)
  func begins(_ header: UnsafePointer<nghttp2_frame_hd>) -> Int32 {
    ignoredFrames.begins(length: header.pointee.length)
    switch header.pointee.type {
    case APNS_FRAME_HEADERS: return beginsHeaders(on: header.pointee.stream_id)
    case APNS_FRAME_CONTINUATION where header.pointee.length > Int(HTTP2Limits.maxFrameSize):
      return refuse(.frameSizeError)
    case APNS_FRAME_SETTINGS where header.pointee.flags & APNS_FLAG_ACK == 0: beginsSettings()
    default: break
    }
    return 0
  }

  private func beginsHeaders(on id: Int32) -> Int32 {
    // After GOAWAY nghttp2 opens no streams, and frames on unopened streams are ignored. nghttp2 itself rejects
    // even stream identifiers.
    if goAwaySent != nil || id & 1 == 0 { return 0 }
    if id > closedStreams.highest {
      closedStreams.opened(id)
      return 0
    }
    guard let error = error(onClosed: id) else {
      resetIfRefused(id)
      return 0
    }
    return refuse(error)
  }

  /// Returns the connection error that HEADERS or DATA on a closed stream cause; nil if the stream is open or the
  /// frame is to be ignored.
  func error(onClosed id: Int32) -> HTTP2ErrorCode? {
    nghttp2_session_get_stream_user_data(session, id) == nil ? closedStreams.error(of: id) : nil
  }

  /// Resets a refused stream with STREAM_CLOSED at the client's first frame after it was closed.
  func resetIfRefused(_ id: Int32) {
    guard nghttp2_session_get_stream_user_data(session, id) == nil, closedStreams.takeLateFrame(on: id) else { return }
    nghttp2_submit_rst_stream(session, 0, id, HTTP2ErrorCode.streamClosed.rawValue)
  }

  func refuse(_ error: HTTP2ErrorCode) -> Int32 {
    violation = error
    return APNS_CALLBACK_FAILURE
  }

  func beginRequest(on id: Int32) {
    let stream = pool.take()
    stream._withUnsafeGuaranteedRef {
      $0.reset(stream: id)
      $0.index = open.count
    }
    open.append(stream)
    recent = (id, stream)
    headerExcess = 0
    nghttp2_session_set_stream_user_data(session, id, stream.toOpaque())
    if let limit = streamLimits.enforced, open.count > limit, !excessReported {
      excessReported = true
      events.append(.excessStreams(stream: id, limit: limit))
    }
  }

  /// Calls `body` with an open stream; does nothing if no stream has this identifier. The stream is not retained:
  /// `open` holds it until `closed`, which `body` never causes.
  @inline(__always)
  private func withStream(_ id: Int32, _ body: (RequestStream) -> Void) {
    if recent?.id != id {
      guard let pointer = nghttp2_session_get_stream_user_data(session, id) else { return }
      recent = (id, .fromOpaque(pointer))
    }
    recent?.stream._withUnsafeGuaranteedRef(body)
  }

  /// - Returns: The return value for the callback.
  @inline(__always)
  func header(on id: Int32, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Int32 {
    if fields.stream != id, !beginFields(on: id) { return 0 }
    if isSound(name, value, on: id), fields.append(name: name, value: value) { return 0 }
    return rejectField(fieldOf: name.count + value.count, on: id)
  }

  /// Returns whether a field is valid. The first invalid field resets the stream.
  @inline(__always)
  private func isSound(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, on id: Int32) -> Bool {
    var isSound = false
    withStream(id) { stream in
      guard stream.breach == nil else { return }
      guard let breach = stream.check.take(name, value, isTrailer: stream.hasHeaders) else { return isSound = true }
      refuse(stream, for: breach)
    }
    return isSound
  }

  /// Resets the stream of a malformed request as soon as the error is detected (RFC 9113 section 8.1.1).
  private func refuse(_ stream: RequestStream, for breach: MessageViolation) {
    stream.breach = breach
    nghttp2_submit_rst_stream(session, 0, stream.id, HTTP2ErrorCode.protocolError.rawValue)
  }

  /// Counts a field that exceeds the header list limit or belongs to a malformed request.
  ///
  /// - Returns: The return value for the callback.
  private func rejectField(fieldOf size: Int, on id: Int32) -> Int32 {
    headerExcess += size + 32
    withStream(id) { if $0.breach == nil { $0.request.headersTooLarge = true } }
    guard headerExcess > HTTP2Limits.maxHeaderExcess else { return 0 }
    refusal = "a header list of more than \(HTTP2Limits.maxHeaderListSize + HTTP2Limits.maxHeaderExcess) bytes"
    return APNS_CALLBACK_FAILURE
  }

  /// - Returns: Whether the stream is open.
  private func beginFields(on id: Int32) -> Bool {
    flushFields()
    withStream(id) { fields.begin(of: $0.request, isTrailer: $0.hasHeaders) }
    return fields.stream == id
  }

  /// Moves the received fields of a header block to their stream's request. Trailers are discarded: they must not
  /// be merged into the header fields (RFC 9110 section 6.5.1).
  func flushFields() {
    guard fields.count > 0 else { return }
    withStream(fields.stream) { if !$0.hasHeaders { fields.append(to: &$0.request) } }
    fields.forget()
  }

  func body(on id: Int32, _ bytes: UnsafeRawBufferPointer, isLast: Bool) {
    took(bytes.count, on: id, isLast: isLast)
    withStream(id) { stream in
      guard isSound(stream, bodySize: stream.request.bodySize + bytes.count, isWhole: false) else { return }
      let room = HTTPRequest.bodyLimit - stream.request.body.count
      if room > 0 {
        stream.request.body.append(
          contentsOf: UnsafeRawBufferPointer(start: bytes.baseAddress, count: min(bytes.count, room)))
      }
      stream.request.bodySize += bytes.count
      if stream.request.bodySize > HTTP2Limits.maxBodySize { report(stream) }
    }
  }

  /// - Returns: The return value for the callback.
  func received(_ frame: UnsafePointer<nghttp2_frame>) -> Int32 {
    ignoredFrames.ends()
    let header = frame.pointee.hd
    switch header.type {
    case APNS_FRAME_HEADERS, APNS_FRAME_DATA:
      flushFields()
      withStream(header.stream_id) { stream in
        guard isSound(stream, afterFrame: header) else { return }
        let endsStream = header.flags & APNS_FLAG_END_STREAM != 0
        if !stream.hasHeaders, !endsStream, stream.check.expectsContinue { sendContinue(of: stream) }
        stream.hasHeaders = true
        if endsStream { stream.isComplete = true }
        if stream.isComplete || stream.request.headersTooLarge { report(stream) }
      }
    case APNS_FRAME_SETTINGS:
      hasBegun = true
      if header.flags & APNS_FLAG_ACK == 0 { return endsSettings() }
      streamLimits.acknowledged()
    case APNS_FRAME_RST_STREAM:
      resets += 1
    case APNS_FRAME_PING:
      if header.flags & APNS_FLAG_ACK == 0, acknowledgesPings {
        // Fails when too many acknowledgements are queued: the session then ends as it does with nghttp2's
        // automatic acknowledgements.
        let code = nghttp2_submit_ping(session, APNS_FLAG_ACK, apns_ping_opaque_data(frame))
        if code != 0 {
          refusal = String(cString: nghttp2_strerror(code))
          return APNS_CALLBACK_FAILURE
        }
      }
    case APNS_FRAME_GOAWAY:
      events.append(.goAway(errorCode: apns_goaway_error_code(frame)))
    default: break
    }
    return 0
  }

  /// Sends status 100 to a client that waits for it. There is no evidence that APNs behaves differently.
  private func sendContinue(of stream: RequestStream) {
    let (name, value): (StaticString, StaticString) = (":status", "100")
    // nghttp2 declares both as mutable but does not write to them; it copies them before the call returns.
    var field = nghttp2_nv(
      name: UnsafeMutablePointer(mutating: name.utf8Start), value: UnsafeMutablePointer(mutating: value.utf8Start),
      namelen: name.utf8CodeUnitCount, valuelen: value.utf8CodeUnitCount, flags: APNS_NV_NONE)
    nghttp2_submit_headers(session, 0, stream.id, nil, &field, 1, nil)
  }

  /// Returns whether a request is still valid after a complete frame.
  @inline(__always)
  private func isSound(_ stream: RequestStream, afterFrame header: nghttp2_frame_hd) -> Bool {
    let endsStream = header.flags & APNS_FLAG_END_STREAM != 0
    if header.type == APNS_FRAME_HEADERS, stream.breach == nil,
      let breach = stream.check.endFields(isTrailer: stream.hasHeaders, endsStream: endsStream)
    {
      refuse(stream, for: breach)
    }
    return isSound(stream, bodySize: stream.request.bodySize, isWhole: endsStream)
  }

  @inline(__always)
  private func isSound(_ stream: RequestStream, bodySize: Int, isWhole: Bool) -> Bool {
    guard stream.breach == nil else { return false }
    guard let breach = stream.check.checkBody(ofSize: bodySize, isWhole: isWhole) else { return true }
    refuse(stream, for: breach)
    return false
  }

  /// Credits received body bytes to the stream's window unless the window is held.
  private func took(_ count: Int, on id: Int32, isLast: Bool) {
    uncredited += count
    if isWindowWithheld {
      withStream(id) { $0.withheldBytes += count }
    } else if !isLast {
      nghttp2_session_consume_stream(session, id, count)
    }
  }

  /// Credits the connection's window with the bytes received since the last call. Called only after the events of
  /// these bytes were handled: the first of them may be a push whose rule holds the window.
  func creditConnection() {
    guard uncredited > 0 else { return }
    if isWindowWithheld {
      withheldBytes += uncredited
    } else {
      nghttp2_session_consume_connection(session, uncredited)
    }
    uncredited = 0
  }

  /// Releases the withheld window. nghttp2 sends WINDOW_UPDATE where this is at least half of a window.
  func openWindows() {
    nghttp2_session_consume_connection(session, withheldBytes)
    withheldBytes = 0
    for stream in openStreams where stream.withheldBytes > 0 && !stream.isComplete {
      nghttp2_session_consume_stream(session, stream.request.stream, stream.withheldBytes)
      stream.withheldBytes = 0
    }
  }

  private func report(_ stream: RequestStream) {
    guard !stream.isReported, !stream.isRefused else { return }
    stream.isReported = true
    requestByteCount += stream.request.headers.listSize + stream.request.bodySize
    events.append(.request(stream))
  }

  func sent(_ frame: UnsafePointer<nghttp2_frame>) {
    let header = frame.pointee.hd
    switch header.type {
    case APNS_FRAME_HEADERS, APNS_FRAME_DATA:
      guard header.flags & APNS_FLAG_END_STREAM != 0 else { return }
      withStream(header.stream_id) { stream in
        // The request is still incomplete: RST_STREAM NO_ERROR asks the client to stop sending it (RFC 9113 section
        // 8.1).
        if !stream.isComplete { pendingResets.append((header.stream_id, HTTP2ErrorCode.noError.rawValue)) }
      }
    case APNS_FRAME_RST_STREAM:
      closedStreams.reset(header.stream_id)
      withStream(header.stream_id) { $0.resetSent = HTTP2ErrorCode(rawValue: apns_rst_stream_error_code(frame)) }
    default: break
    }
  }

  /// Called when the HEADERS of a response, or of an interim 100 response, will not be sent.
  func notSent(on id: Int32) {
    withStream(id) { stream in
      guard stream.isAnswered else { return }
      stream.isAnswered = false
      events.append(.responseDropped(stream))
    }
  }

  func closed(_ id: Int32) {
    if isReceiving { closedWhileReceiving.append(id) }
    guard let object = removeOpenStream(id) else { return }
    let isReusable = object._withUnsafeGuaranteedRef { stream in
      // A stream with a held response is not reused: its owner may still release a part without knowing that it is
      // closed.
      if stream.isAnswered, stream.answer?.isHeld != true { return true }
      // The event retains the stream, and the event that reported it may still be queued.
      if stream.isReported {
        events.append(.cancelled(stream))
      } else {
        stream.isReported = true
        // A refused stream does not count as the client's fault.
        if stream.resetSent != nil, !stream.isRefused { resets += 1 }
        events.append(stream.resetSent.map { .reset(stream, $0) } ?? .aborted(stream))
      }
      return false
    }
    if isReusable { pool.give(object) } else { object.release() }
  }

  /// Removes a stream from `open` and returns its retained reference; the last element moves to the free index.
  private func removeOpenStream(_ id: Int32) -> Unmanaged<RequestStream>? {
    var place: Int?
    withStream(id) { place = $0.index }
    guard let place else { return nil }
    nghttp2_session_set_stream_user_data(session, id, nil)
    recent = nil
    open.swapAt(place, open.count - 1)
    open[place]._withUnsafeGuaranteedRef { $0.index = place }
    return open.removeLast()
  }
}

/// Detects violations of RFC 9113 that nghttp2 ignores without calling a callback.
extension HTTP2ServerSession {
  /// Scans for frames that nghttp2 discarded and ends the connection if they are violations: DATA on a stream that
  /// the client has ended (section 5.1) or skipped (section 5.1.1), and a CONTINUATION that is too large (section
  /// 4.2).
  ///
  /// nghttp2 has already processed the frames in `bytes` that follow the violation.
  func checkIgnoredFrames(in bytes: UnsafeRawBufferPointer, from start: IgnoredFrameScanner.Start) {
    // After GOAWAY, streams may exist that nghttp2 did not open; frames on them are ignored.
    guard goAwaySent == nil else { return }
    // Streams that were open when these bytes were received; a frame completed by these bytes ended the client's
    // side.
    var notYetEnded = Set(closedWhileReceiving)
    notYetEnded.remove(start.ending)
    var error: HTTP2ErrorCode?
    IgnoredFrameScanner.forEachHeader(in: bytes, from: start) { header in
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
  /// - Returns: The return value for the callback.
  func endsSettings() -> Int32 {
    let before = waitingBeforeSettings ?? 0
    waitingBeforeSettings = nil
    // One additional queued frame is the acknowledgement; each further one is such a RST_STREAM.
    return nghttp2_session_get_outbound_queue_size(session) > before + 1 ? refuse(.flowControlError) : 0
  }
}
