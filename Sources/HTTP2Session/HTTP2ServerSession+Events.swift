internal import CAPNSMockNghttp2
internal import APNSMockHTTPMessage

/// The methods that nghttp2's callbacks call.
extension HTTP2ServerSession {
  /// Called when a frame begins. Rejects what RFC 9113 forbids and nghttp2 ignores: HEADERS on closed streams, and
  /// a CONTINUATION that is too large (nghttp2 checks the size of all other frames). nghttp2 does not report DATA
  /// on a closed stream; see `checkIgnoredFrames`.
  ///
  /// - Returns: The return value for the callback.
  @inline(__always)
  func didBeginFrame(_ header: UnsafePointer<nghttp2_frame_hd>) -> Int32 {
    ignoredFrames.didBeginFrame(length: header.pointee.length)
    switch header.pointee.type {
    case APNS_FRAME_HEADERS: return didBeginHeaders(on: header.pointee.stream_id)
    case APNS_FRAME_CONTINUATION where header.pointee.length > Int(HTTP2Limits.maxFrameSize):
      return fail(with: .frameSizeError)
    case APNS_FRAME_SETTINGS where header.pointee.flags & APNS_FLAG_ACK == 0: didBeginSettings()
    default: break
    }
    return 0
  }

  private func didBeginHeaders(on id: Int32) -> Int32 {
    // After GOAWAY nghttp2 opens no streams, and frames on unopened streams are ignored. nghttp2 itself rejects
    // even stream identifiers.
    if goAwaySent != nil || id & 1 == 0 { return 0 }
    if id > closedStreams.highest {
      closedStreams.didOpen(id)
      return 0
    }
    guard let error = error(onClosed: id) else {
      resetIfRefused(id)
      return 0
    }
    return fail(with: error)
  }

  /// Ends the connection with an error that nghttp2 does not detect.
  ///
  /// - Returns: The return value for the callback.
  private func fail(with error: HTTP2ErrorCode) -> Int32 {
    connectionError = error
    return APNS_CALLBACK_FAILURE
  }

  func didBeginRequest(on id: Int32) {
    let stream = pool.makeStream()
    stream._withUnsafeGuaranteedRef { $0.reset(id: id, index: open.count) }
    open.append(stream)
    recent = (id, stream)
    fields.excess = 0
    nghttp2_session_set_stream_user_data(session, id, stream.toOpaque())
    if let limit = streamLimits.exceededLimit(by: open.count) {
      events.append(.excessStreams(stream: id, limit: limit))
    }
  }

  /// Calls `body` with an open stream; does nothing if no stream has this identifier. The stream is not retained:
  /// `open` holds it until `didClose`, which `body` never causes.
  @inline(__always)
  private func withStream(_ id: Int32, _ body: (RequestStream) -> Void) {
    if recent?.id != id {
      guard let pointer = nghttp2_session_get_stream_user_data(session, id) else { return }
      recent = (id, .fromOpaque(pointer))
    }
    recent?.stream._withUnsafeGuaranteedRef(body)
  }

  // MARK: - Header fields

  /// - Returns: The return value for the callback.
  @inline(__always)
  func didReceiveField(on id: Int32, name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Int32 {
    if fields.stream != id, !beginFields(on: id) { return 0 }
    if validateField(name, value, on: id), fields.append(name: name, value: value) { return 0 }
    return rejectField(ofSize: name.count + value.count, on: id)
  }

  /// Returns whether a field is valid. The first invalid field resets the stream.
  @inline(__always)
  private func validateField(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, on id: Int32) -> Bool {
    var isValid = false
    withStream(id) { stream in
      guard stream.violation == nil else { return }
      let violation = stream.state.validator.validateField(name, value, isTrailer: stream.state.hasHeaders)
      guard let violation else { return isValid = true }
      reset(stream, for: violation, of: name)
    }
    return isValid
  }

  /// Resets the stream of a request with an invalid field. Not inlined, because `validateField` runs for each field:
  /// measured, its code there adds 290 instructions per push.
  @inline(never)
  private func reset(_ stream: RequestStream, for violation: MessageViolation, of name: UnsafeRawBufferPointer) {
    stream.state.violationField = Self.shown(name)
    reset(stream, for: violation)
  }

  /// Returns the name of a header field for a message: printable characters only, at most 64.
  private static func shown(_ name: UnsafeRawBufferPointer) -> String {
    String(decoding: name.prefix(64).map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
  }

  /// Resets the stream of a malformed request as soon as the error is detected (RFC 9113 section 8.1.1).
  private func reset(_ stream: RequestStream, for violation: MessageViolation) {
    stream.state.violation = violation
    nghttp2_submit_rst_stream(session, 0, stream.id, HTTP2ErrorCode.protocolError.rawValue)
  }

  /// Counts a field that exceeds the header list limit or belongs to a malformed request.
  ///
  /// - Returns: The return value for the callback.
  private func rejectField(ofSize size: Int, on id: Int32) -> Int32 {
    fields.excess += size + 32
    withStream(id) { if $0.violation == nil { $0.request.headersTooLarge = true } }
    guard fields.excess > HTTP2Limits.maxHeaderExcess else { return 0 }
    failureReason = "a header list of more than \(HTTP2Limits.maxHeaderListSize + HTTP2Limits.maxHeaderExcess) bytes"
    return APNS_CALLBACK_FAILURE
  }

  /// - Returns: Whether the stream is open.
  private func beginFields(on id: Int32) -> Bool {
    flushFields()
    withStream(id) { fields.begin(of: $0.request, isTrailer: $0.state.hasHeaders) }
    return fields.stream == id
  }

  /// Moves the received fields of a header block to their stream's request. Trailers are discarded: they must not
  /// be merged into the header fields (RFC 9110 section 6.5.1).
  func flushFields() {
    guard fields.count > 0 else { return }
    withStream(fields.stream) { if !$0.state.hasHeaders { fields.append(to: &$0.request) } }
    fields.removeAll()
  }

  // MARK: - Frames

  func didReceiveData(on id: Int32, _ bytes: UnsafeRawBufferPointer, isLast: Bool) {
    creditStream(id, bytes.count, isLast: isLast)
    withStream(id) { stream in
      guard validateBody(of: stream, size: stream.request.bodySize + bytes.count, isComplete: false) else { return }
      let remaining = HTTPRequest.bodyLimit - stream.request.body.count
      if remaining > 0 {
        stream.request.body.append(
          contentsOf: UnsafeRawBufferPointer(start: bytes.baseAddress, count: min(bytes.count, remaining)))
      }
      stream.request.bodySize += bytes.count
      if stream.request.bodySize > HTTP2Limits.maxBodySize { report(stream) }
    }
  }

  /// - Returns: The return value for the callback.
  func didReceive(_ frame: UnsafePointer<nghttp2_frame>) -> Int32 {
    ignoredFrames.didEndFrame()
    let header = frame.pointee.hd
    switch header.type {
    case APNS_FRAME_HEADERS, APNS_FRAME_DATA:
      flushFields()
      withStream(header.stream_id) { stream in
        guard validateFrame(header, of: stream) else { return }
        let endsStream = header.flags & APNS_FLAG_END_STREAM != 0
        if !stream.state.hasHeaders, !endsStream, stream.state.validator.expectsContinue { sendContinue(on: stream) }
        stream.state.hasHeaders = true
        if endsStream { stream.state.isComplete = true }
        if stream.isComplete || stream.request.headersTooLarge { report(stream) }
      }
    case APNS_FRAME_SETTINGS:
      hasReceivedPreface = true
      if header.flags & APNS_FLAG_ACK == 0 { return didReceiveSettings() }
      streamLimits.didReceiveAcknowledgement()
    case APNS_FRAME_RST_STREAM:
      resetCount += 1
    case APNS_FRAME_PING:
      if header.flags & APNS_FLAG_ACK == 0, acknowledgesPings {
        // Fails when too many acknowledgements are queued: the session then ends as it does with nghttp2's
        // automatic acknowledgements.
        let code = nghttp2_submit_ping(session, APNS_FLAG_ACK, apns_ping_opaque_data(frame))
        if code != 0 {
          failureReason = String(cString: nghttp2_strerror(code))
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
  private func sendContinue(on stream: RequestStream) {
    hasSentContinue = true
    let (name, value): (StaticString, StaticString) = (":status", "100")
    // nghttp2 declares both as mutable but does not write to them; it copies them before the call returns.
    var field = nghttp2_nv(
      name: UnsafeMutablePointer(mutating: name.utf8Start), value: UnsafeMutablePointer(mutating: value.utf8Start),
      namelen: name.utf8CodeUnitCount, valuelen: value.utf8CodeUnitCount, flags: APNS_NV_NONE)
    nghttp2_submit_headers(session, 0, stream.id, nil, &field, 1, nil)
  }

  /// Returns whether a request is still valid after a complete HEADERS or DATA frame; resets the stream if not.
  @inline(__always)
  private func validateFrame(_ header: nghttp2_frame_hd, of stream: RequestStream) -> Bool {
    let endsStream = header.flags & APNS_FLAG_END_STREAM != 0
    if header.type == APNS_FRAME_HEADERS, stream.violation == nil,
      let violation = stream.state.validator.validateHeaderBlock(
        isTrailer: stream.state.hasHeaders, endsStream: endsStream)
    {
      reset(stream, for: violation)
    }
    return validateBody(of: stream, size: stream.request.bodySize, isComplete: endsStream)
  }

  @inline(__always)
  private func validateBody(of stream: RequestStream, size: Int, isComplete: Bool) -> Bool {
    guard stream.violation == nil else { return false }
    guard let violation = stream.state.validator.validateBody(size: size, isComplete: isComplete) else { return true }
    stream.state.violationField = "content-length"
    reset(stream, for: violation)
    return false
  }

  private func report(_ stream: RequestStream) {
    guard !stream.isReported, !stream.isRefused else { return }
    stream.state.isReported = true
    requestByteCount += stream.request.headers.listSize + stream.request.bodySize
    events.append(.request(stream))
  }

  func didSend(_ frame: UnsafePointer<nghttp2_frame>) {
    let header = frame.pointee.hd
    switch header.type {
    case APNS_FRAME_HEADERS, APNS_FRAME_DATA:
      hasSentFields = true
      guard header.flags & APNS_FLAG_END_STREAM != 0 else { return }
      withStream(header.stream_id) { stream in
        stream.state.isResponseSent = true
        if stream.state.reportsEnd {
          stream.state.reportsEnd = false
          events.append(.responseSent(stream: header.stream_id))
        }
        // The request is still incomplete: RST_STREAM NO_ERROR asks the client to stop sending it (RFC 9113 section
        // 8.1).
        if !stream.isComplete { pending.resets.append((header.stream_id, HTTP2ErrorCode.noError.rawValue)) }
      }
    case APNS_FRAME_RST_STREAM:
      closedStreams.didSendReset(on: header.stream_id)
      withStream(header.stream_id) { $0.state.resetSent = HTTP2ErrorCode(rawValue: apns_rst_stream_error_code(frame)) }
    default: break
    }
  }

  /// Called when the HEADERS of a response, or of an interim 100 response, will not be sent.
  func didNotSendHeaders(on id: Int32) {
    withStream(id) { stream in
      guard stream.isEndedByServer else { return }
      stream.state.serverEnd = .none
      events.append(.responseDropped(stream))
    }
  }

  func didClose(_ id: Int32) {
    if receiving.isActive { receiving.closedStreams.append(id) }
    guard let object = removeOpenStream(id) else { return }
    let isReusable = object._withUnsafeGuaranteedRef { stream in
      // A stream whose response is not sent completely is not reused: its owner has to know that it is closed.
      if stream.isEndedByServer, !stream.isResponseUnfinished { return true }
      // The event retains the stream, and the event that reported it may still be queued.
      if stream.isReported {
        events.append(.cancelled(stream))
      } else {
        stream.state.isReported = true
        // A refused stream does not count as the client's fault.
        if stream.state.resetSent != nil, !stream.isRefused { resetCount += 1 }
        events.append(stream.state.resetSent.map { .reset(stream, $0) } ?? .aborted(stream))
      }
      return false
    }
    if isReusable { pool.recycle(object) } else { object.release() }
  }

  /// Removes a stream from `open` and returns its retained reference; the last element moves to the free index.
  private func removeOpenStream(_ id: Int32) -> Unmanaged<RequestStream>? {
    var index: Int?
    withStream(id) { index = $0.state.index }
    guard let index else { return nil }
    nghttp2_session_set_stream_user_data(session, id, nil)
    recent = nil
    open.swapAt(index, open.count - 1)
    open[index]._withUnsafeGuaranteedRef { $0.state.index = index }
    return open.removeLast()
  }

  // MARK: - Flow control

  /// Credits received body bytes to the stream's window unless the window is withheld.
  private func creditStream(_ id: Int32, _ count: Int, isLast: Bool) {
    uncreditedBytes += count
    if isWindowWithheld {
      withStream(id) { $0.state.withheldBytes += count }
    } else if !isLast {
      nghttp2_session_consume_stream(session, id, count)
    }
  }

  /// Credits the connection's window with the bytes received since the last call. Called only after the events of
  /// these bytes were handled: the first of them may be a push whose rule withholds the window.
  func creditConnection() {
    guard uncreditedBytes > 0 else { return }
    if isWindowWithheld {
      withheldBytes += uncreditedBytes
    } else {
      nghttp2_session_consume_connection(session, uncreditedBytes)
    }
    uncreditedBytes = 0
  }

  /// Credits the withheld bytes. nghttp2 sends WINDOW_UPDATE where they are at least half of a window.
  func creditWithheldBytes() {
    nghttp2_session_consume_connection(session, withheldBytes)
    withheldBytes = 0
    for stream in openStreams where stream.state.withheldBytes > 0 && !stream.isComplete {
      nghttp2_session_consume_stream(session, stream.id, stream.state.withheldBytes)
      stream.state.withheldBytes = 0
    }
  }

  // MARK: - SETTINGS

  /// Called when a SETTINGS frame of the client begins or continues.
  func didBeginSettings() {
    receiving.queueBeforeSettings = nghttp2_session_get_outbound_queue_size(session)
  }

  /// Called when a SETTINGS frame of the client was processed. An initial window above 2³¹−1 for an open stream is
  /// a connection error (RFC 9113 section 6.9.2), but nghttp2 only resets the stream.
  ///
  /// - Returns: The return value for the callback.
  private func didReceiveSettings() -> Int32 {
    let before = receiving.queueBeforeSettings ?? 0
    receiving.queueBeforeSettings = nil
    // One additional queued frame is the acknowledgement; each further one is such a RST_STREAM.
    return nghttp2_session_get_outbound_queue_size(session) > before + 1 ? fail(with: .flowControlError) : 0
  }
}
