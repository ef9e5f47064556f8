internal import CAPNSMockNghttp2
package import APNSMockHTTPMessage

/// Commands that send frames.
extension HTTP2ServerSession {
  /// Responds to a request: sends HEADERS with `headers` (`:status` first) and a non-empty `body` in one DATA
  /// frame. The last frame carries END_STREAM.
  package func respond(to stream: RequestStream, headers: borrowing HeaderList, body: [UInt8] = []) {
    if body.isEmpty {
      stream.state.serverEnd = .response
      submit(headers, on: stream.id, body: nil)
    } else {
      submit(ResponseBodyParts(body), to: stream, headers: headers)
    }
  }

  /// Responds with a body in parts: sends HEADERS, then each part in its own DATA frame; an empty part is an empty
  /// frame. A part larger than the client's window or 16 384 bytes is split. The last frame carries END_STREAM.
  ///
  /// - Parameter waitsForRelease: Sends HEADERS at once and each part when `releasePart` is called for it. Without
  ///   parts, END_STREAM waits as well and is sent in an empty DATA frame.
  package func respond(
    to stream: RequestStream, headers: borrowing HeaderList, parts: [[UInt8]], waitsForRelease: Bool = false
  ) {
    if parts.isEmpty, !waitsForRelease {
      respond(to: stream, headers: headers)
    } else {
      submit(
        ResponseBodyParts(parts: parts, waitsForRelease: waitsForRelease), to: stream, headers: headers)
    }
  }

  /// Releases one more part of a response. Does nothing if no part waits or the stream is closed.
  ///
  /// - Returns: Whether more of the response waits.
  @discardableResult
  package func releasePart(of stream: RequestStream) -> Bool {
    guard stream.isAwaitingRelease else { return false }
    stream.state.responseBody?.release()
    // Fails if nghttp2 is not waiting, because HEADERS are not sent yet or the window is exhausted. It then asks
    // for data later.
    nghttp2_session_resume_data(session, stream.id)
    return stream.isAwaitingRelease
  }

  /// Resets a stream. A submitted response that is not in the output yet is dropped.
  package func reset(_ stream: RequestStream, code: HTTP2ErrorCode) {
    reset(stream, rawCode: code.rawValue)
  }

  /// Resets a stream with any error code. A submitted response that is not in the output yet is dropped.
  package func reset(_ stream: RequestStream, rawCode: UInt32) {
    if !stream.isEndedByServer { stream.state.serverEnd = .reset }
    nghttp2_submit_rst_stream(session, 0, stream.id, rawCode)
  }

  /// Announces a new MAX_CONCURRENT_STREAMS. A higher limit applies at once, a lower one when the peer has
  /// acknowledged it.
  package func announce(maxConcurrentStreams limit: UInt32) {
    announce(HTTP2Settings(maxConcurrentStreams: limit))
  }

  /// Resets all open streams that are not answered, except one, with REFUSED_STREAM, as APNs does when it reduces
  /// MAX_CONCURRENT_STREAMS to 1 (Protocol.md, section 9.1, observed). The first frame that the client still sends
  /// on such a stream is answered with RST_STREAM STREAM_CLOSED.
  ///
  /// - Parameter answered: The stream whose response reduces the limit.
  /// - Returns: The refused streams whose requests `nextEvent` had already returned. Each of the others causes an
  ///   event `reset`.
  package func refuseStreams(except answered: RequestStream) -> [RequestStream] {
    let refused = openStreams.filter { !$0.isEndedByServer && $0 !== answered && $0.violation == nil }
    for stream in refused {
      stream.state.isRefused = true
      if !stream.isComplete { closedStreams.didRefuse(stream.id) }
      nghttp2_submit_rst_stream(session, 0, stream.id, HTTP2ErrorCode.refusedStream.rawValue)
    }
    var reported = refused.filter(\.isReported)
    for stream in reported { stream.state.serverEnd = .reset }
    events.replaceRequests { stream in
      guard stream.isRefused else { return nil }
      reported.removeAll { $0 === stream }
      return .reset(stream, .refusedStream)
    }
    return reported
  }

  /// Sends a SETTINGS frame unless `settings` is empty.
  package func announce(_ settings: HTTP2Settings) {
    let entries = settings.entries
    guard !entries.isEmpty else { return }
    nghttp2_submit_settings(session, 0, entries, entries.count)
    streamLimits.announce(settings.maxConcurrentStreams)
  }

  /// Sends GOAWAY. The caller closes the connection.
  ///
  /// - Parameter lastStream: The highest stream that was or will be processed; nil for the last one processed so
  ///   far.
  package func submitGoAway(lastStream: Int32? = nil, code: HTTP2ErrorCode, debugData: [UInt8] = []) {
    nghttp2_submit_goaway(
      session, 0, lastStream ?? lastReceivedStream, code.rawValue, debugData, debugData.count)
  }

  /// Begins a graceful shutdown: sends GOAWAY with last stream 2³¹−1 (RFC 9113 section 6.8).
  package func announceShutdown() {
    nghttp2_submit_shutdown_notice(session)
  }

  /// Sends GOAWAY without nghttp2's knowledge, after all other frames of the next `appendOutput`. nghttp2's state does
  /// not change: streams continue, new streams are reported, and `isFinished` keeps its value. The caller ignores
  /// streams that must not be processed.
  ///
  /// - Parameters:
  ///   - rawCode: Any error code.
  ///   - debugData: Truncated to 16 376 bytes.
  package func sendUntrackedGoAway(lastStream: Int32, rawCode: UInt32, debugData: [UInt8] = []) {
    pending.goAways.append((lastStream, rawCode, debugData))
  }

  private func submit(_ body: consuming ResponseBodyParts, to stream: RequestStream, headers: borrowing HeaderList) {
    stream.state.serverEnd = .response
    stream.state.responseBody = body
    // Unretained: the object is in `open` until on_stream_close, after which nghttp2 requests no data.
    var provider = nghttp2_data_provider()
    provider.source.ptr = Unmanaged.passUnretained(stream).toOpaque()
    provider.read_callback = { _, _, buffer, length, flags, source, _ in
      guard let buffer, let flags, let pointer = source?.pointee.ptr else { return 0 }
      let stream = Unmanaged<RequestStream>.fromOpaque(pointer).takeUnretainedValue()
      switch stream.state.responseBody?.copyNext(to: UnsafeMutableBufferPointer(start: buffer, count: length)) {
      case .bytes(let count, let isLast)?:
        stream.state.overdueChecks = 0
        if isLast { flags.pointee |= APNS_DATA_FLAG_EOF }
        return count
      case .waiting?, nil:
        return APNS_DATA_DEFERRED
      }
    }
    submit(headers, on: stream.id, body: &provider)
  }

  private func submit(
    _ headers: borrowing HeaderList, on id: Int32, body provider: UnsafePointer<nghttp2_data_provider>?
  ) {
    let (session, count) = (session, headers.count)
    // The values of `apns-…` fields differ in each response, and indexing them would evict other entries from the
    // peer's table. Those of the first responses are indexed for their names, which are then not sent as literals.
    let indexesIDs = indexedResponses < Self.maxIndexedResponses
    if indexesIDs { indexedResponses += 1 }
    headers.bytes.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return }
      // nghttp2 declares name and value as mutable but does not write to them; it copies both before the call
      // returns.
      let start = UnsafeMutablePointer(mutating: base.assumingMemoryBound(to: UInt8.self))
      withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: count) { pairs in
        var filled = 0
        HeaderList.forEachField(in: bytes) { name, value in
          let flags = indexesIDs || start[Int(name.offset)] != UInt8(ascii: "a") ? APNS_NV_NONE : APNS_NV_NO_INDEX
          pairs.initializeElement(
            at: filled,
            to: nghttp2_nv(
              name: start + Int(name.offset), value: start + Int(value.offset), namelen: Int(name.count),
              valuelen: Int(value.count), flags: flags))
          filled += 1
        }
        nghttp2_submit_response(session, id, pairs.baseAddress, filled, provider)
      }
    }
  }
}

/// Time limits for slow clients. A session has no clock: its owner calls `endOverdueStreams` every
/// `HTTP2Limits.overdueCheckInterval`.
extension HTTP2ServerSession {
  /// Resets the streams whose client has not sent the rest of its request, or opened the window for the response, for
  /// more than `HTTP2Limits.maxOverdueChecks` calls. These streams become `isOverdue`, and an incomplete request is
  /// reported as `Event.reset`. Exempt are deliberately delayed pushes, and incomplete requests while the client's
  /// window is withheld.
  ///
  /// - Returns: The streams that were reset; valid until `appendOutput` closes them.
  /// - Throws: `HTTP2Failure` if a header block or the connection preface is overdue, which ends the session.
  package func endOverdueStreams() throws -> [RequestStream] {
    resetCount = 0
    let seconds = HTTP2Limits.overdueCheckInterval.components.seconds * Int64(HTTP2Limits.maxOverdueChecks)
    if !hasReceivedPreface {
      overdueChecks += 1
      if overdueChecks > HTTP2Limits.maxOverdueChecks {
        throw HTTP2Failure(kind: .fatal, description: "no HTTP/2 client preface within \(seconds) s")
      }
    }
    var overdue: [RequestStream] = []
    for stream in openStreams where isWaitingForClient(on: stream) {
      stream.state.overdueChecks += 1
      guard stream.state.overdueChecks > HTTP2Limits.maxOverdueChecks else { continue }
      if !stream.state.hasHeaders {
        throw HTTP2Failure(
          kind: .fatal, description: "the header block of stream \(stream.id) did not end within \(seconds) s")
      }
      stream.state.isOverdue = true
      overdue.append(stream)
    }
    // Outside of the loop above, which iterates over `open`.
    for stream in overdue { nghttp2_submit_rst_stream(session, 0, stream.id, HTTP2ErrorCode.cancel.rawValue) }
    return overdue
  }

  private func isWaitingForClient(on stream: RequestStream) -> Bool {
    if stream.isOverdue { return false }
    if stream.isEndedByServer { return !stream.isAwaitingRelease }
    return !stream.isComplete && !isWindowWithheld
  }
}
