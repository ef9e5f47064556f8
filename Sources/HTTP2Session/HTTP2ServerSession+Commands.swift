internal import CNghttp2
public import HTTPMessage

/// What a session can be told to say.
extension HTTP2ServerSession {
  /// Answers a request: HEADERS with `headers` (`:status` first), and `body`, when there is one, in one DATA frame. The
  /// last of these carries END_STREAM.
  public func respond(to stream: RequestStream, headers: borrowing HeaderList, body: [UInt8] = []) {
    if body.isEmpty {
      stream.isAnswered = true
      submit(headers, on: stream.id, body: nil)
    } else {
      submit(AnswerBody(body), to: stream, headers: headers)
    }
  }

  /// Answers a request with a body in parts: HEADERS, then each part in a DATA frame of its own; an empty part is an empty
  /// frame. A part that is larger than the client's window or 16 384 bytes takes several. END_STREAM goes with the last.
  ///
  /// - Parameters:
  ///   - isHeld: HEADERS leave at once, and each part when `releasePart` is called for it. Without parts END_STREAM is held
  ///     and leaves in an empty DATA frame.
  ///   - resetCode: ends the stream with RST_STREAM and this code after the last part, in place of END_STREAM: an answer
  ///     that breaks off. Without parts it follows the HEADERS.
  public func respond(
    to stream: RequestStream, headers: borrowing HeaderList, parts: [[UInt8]], isHeld: Bool = false,
    resetCode: UInt32? = nil
  ) {
    if parts.isEmpty, !isHeld, resetCode == nil {
      respond(to: stream, headers: headers)
    } else {
      submit(AnswerBody(parts: parts, isHeld: isHeld, resetCode: resetCode), to: stream, headers: headers)
    }
  }

  /// Lets one more part of a held answer go. A stream that has none, or is closed, is left as it is.
  ///
  /// - Returns: whether more of the answer is held.
  @discardableResult
  public func releasePart(of stream: RequestStream) -> Bool {
    guard stream.answer?.isHeld == true else { return false }
    stream.answer?.release()
    // Refused if nghttp2 does not wait: HEADERS are not out yet, or the window is closed. It then asks by itself.
    nghttp2_session_resume_data(session, stream.id)
    return stream.answer?.isHeld == true
  }

  /// Ends one stream with RST_STREAM. An answer that was given and is not drained yet is dropped.
  public func reset(_ stream: RequestStream, code: HTTP2ErrorCode) {
    reset(stream, rawCode: code.rawValue)
  }

  /// Ends one stream with RST_STREAM and any code. An answer that was given and is not drained yet is dropped.
  public func reset(_ stream: RequestStream, rawCode: UInt32) {
    stream.isAnswered = true
    nghttp2_submit_rst_stream(session, 0, stream.id, rawCode)
  }

  /// Announces another MAX_CONCURRENT_STREAMS. A higher limit holds at once, a lower one when the peer has acknowledged it.
  public func announce(maxConcurrentStreams limit: UInt32) {
    announce(HTTP2Settings(maxConcurrentStreams: limit))
  }

  /// Resets every open stream that was not answered, except one, with REFUSED_STREAM: what APNs does to them when it cuts
  /// MAX_CONCURRENT_STREAMS to 1 (APNS.md section 9.1, observed). The first frame that the client still sends on such a
  /// stream is answered with RST_STREAM STREAM_CLOSED.
  ///
  /// - Parameter answered: the stream whose response cuts the limit.
  /// - Returns: the streams whose requests were taken from `nextEvent` before. Each other one yields an event `reset`.
  public func refuseStreams(except answered: RequestStream) -> [RequestStream] {
    let refused = openStreams.filter { !$0.isAnswered && $0 !== answered && $0.breach == nil }
    for stream in refused {
      stream.isRefused = true
      if !stream.isComplete { closedStreams.refuse(stream.id) }
      nghttp2_submit_rst_stream(session, 0, stream.id, HTTP2ErrorCode.refusedStream.rawValue)
    }
    var taken = refused.filter(\.isReported)
    for stream in taken { stream.isAnswered = true }
    for index in events.indices {
      guard case .request(let stream)? = events[index], stream.isRefused else { continue }
      events[index] = .reset(stream, .refusedStream)
      taken.removeAll { $0 === stream }
    }
    return taken
  }

  /// Sends SETTINGS; nothing if they say nothing.
  public func announce(_ settings: HTTP2Settings) {
    let entries = settings.entries
    guard !entries.isEmpty else { return }
    nghttp2_submit_settings(session, 0, entries, entries.count)
    streamLimits.announce(settings.maxConcurrentStreams)
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

  /// Sends GOAWAY past nghttp2, after what else the next `drain` yields. To nghttp2 nothing has happened: streams go on,
  /// new ones are handed out, `isFinished` does not change. What is not to be served is the caller's to leave alone.
  ///
  /// - Parameters:
  ///   - rawCode: any error code.
  ///   - debugData: at most 16 376 bytes; what is beyond them is left out.
  public func sendGoAway(lastStream: Int32, rawCode: UInt32, debugData: [UInt8] = []) {
    goAwaysDue.append((lastStream, rawCode, debugData))
  }

  private func submit(_ answer: consuming AnswerBody, to stream: RequestStream, headers: borrowing HeaderList) {
    stream.isAnswered = true
    stream.answer = answer
    // Not retained for this: the object is in `open` until on_stream_close, and nghttp2 asks for no data after that.
    var provider = nghttp2_data_provider()
    provider.source.ptr = Unmanaged.passUnretained(stream).toOpaque()
    provider.read_callback = { _, _, buffer, length, flags, source, user in
      guard let buffer, let flags, let pointer = source?.pointee.ptr, let user else { return 0 }
      let stream = Unmanaged<RequestStream>.fromOpaque(pointer).takeUnretainedValue()
      switch stream.answer?.copyNext(to: UnsafeMutableBufferPointer(start: buffer, count: length)) {
      case .bytes(let count, let isLast)?:
        stream.looks = 0
        if isLast { flags.pointee |= APNS_DATA_FLAG_EOF }
        return count
      case .cutShort(let code)?:
        HTTP2ServerSession.with(user) { $0.resetsDue.append((stream.id, code)) }
        return APNS_DATA_DEFERRED
      case .held?, nil:
        return APNS_DATA_DEFERRED
      }
    }
    submit(headers, on: stream.id, body: &provider)
  }

  private func submit(
    _ headers: borrowing HeaderList, on id: Int32, body provider: UnsafePointer<nghttp2_data_provider>?
  ) {
    let (session, count) = (session, headers.count)
    // Ids (`apns-…`) differ in each answer: entries for them would only push others out of the peer's table. Those of the
    // first answers stay there for their names, which need not be written out then.
    let areIDsLeftOut = answersIndexed >= Self.answersWithIndexedIDs
    if !areIDsLeftOut { answersIndexed += 1 }
    headers.bytes.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return }
      // nghttp2 declares name and value as mutable and writes to neither; it copies both before the call returns.
      let start = UnsafeMutablePointer(mutating: base.assumingMemoryBound(to: UInt8.self))
      withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: count) { pairs in
        var filled = 0
        HeaderList.forEachField(in: bytes) { name, value in
          let flags = areIDsLeftOut && start[Int(name.offset)] == UInt8(ascii: "a") ? APNS_NV_NO_INDEX : APNS_NV_NONE
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
