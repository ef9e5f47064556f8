internal import CAPNSMockNghttp2

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
    var notYetEnded = Set(receiving.closedStreams)
    notYetEnded.remove(start.endedStream)
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
    if let error { nghttp2_session_terminate_session2(session, lastReceivedStream, error.rawValue) }
  }

  /// nghttp2 itself rejects DATA on idle streams and on streams with even identifiers.
  private func mayBeClosed(_ id: Int32) -> Bool { id & 1 == 1 && id <= closedStreams.highest }

  /// Returns the connection error that HEADERS or DATA on a closed stream cause; nil if the stream is open or the
  /// frame is to be ignored.
  func error(onClosed id: Int32) -> HTTP2ErrorCode? {
    nghttp2_session_get_stream_user_data(session, id) == nil ? closedStreams.error(on: id) : nil
  }

  /// Resets a refused stream with STREAM_CLOSED at the client's first frame after it was closed.
  func resetIfRefused(_ id: Int32) {
    guard nghttp2_session_get_stream_user_data(session, id) == nil, closedStreams.removeRefused(id) else { return }
    nghttp2_submit_rst_stream(session, 0, id, HTTP2ErrorCode.streamClosed.rawValue)
  }
}

/// Tracks closed streams and decides whether HEADERS and DATA on them are errors.
///
/// nghttp2 ignores both on any closed stream. That is right for a stream that the server reset, because the client
/// may not know it yet (RFC 9113 section 5.1), and wrong for the others: a skipped identifier must not be used any
/// more (section 5.1.1), and a client sends nothing more on a stream that it has ended or reset.
///
/// Only exceptions are stored, the latest 64 of each kind. Frames on streams up to the last discarded reset are
/// ignored.
struct ClosedStreamTracker {
  private static let limit = 64
  private static let refusedLimit = 1024

  /// The highest stream the client has opened.
  private(set) var highest: Int32 = 0
  private var skipped: [ClosedRange<Int32>] = []
  private var resetByServer: [Int32] = []
  /// Streams refused because of a reduced stream limit before the client ended them, and on which it has sent
  /// nothing since. Beyond the limit all are discarded; frames on discarded ones are ignored.
  private var refused: Set<Int32> = []
  /// The highest stream that was removed from `resetByServer`.
  private var highestDiscarded: Int32 = 0

  /// Records that the client opened a stream above `highest`.
  mutating func didOpen(_ id: Int32) {
    if id - highest > 2 { Self.append(highest + 1...id - 1, to: &skipped) }
    highest = id
  }

  /// Records that the server sent RST_STREAM.
  mutating func didSendReset(on id: Int32) {
    if let discarded = Self.append(id, to: &resetByServer) { highestDiscarded = max(highestDiscarded, discarded) }
  }

  /// Records that the server refused a stream that the client has not ended, because it reduced the stream limit.
  mutating func didRefuse(_ id: Int32) {
    if refused.count >= Self.refusedLimit { refused.removeAll() }
    refused.insert(id)
  }

  /// Removes a refused stream at the client's first frame on it.
  ///
  /// - Returns: Whether the stream was refused and this is the first frame.
  mutating func removeRefused(_ id: Int32) -> Bool { !refused.isEmpty && refused.remove(id) != nil }

  /// Returns the connection error that HEADERS or DATA on a closed stream up to `highest` cause; nil if they are
  /// ignored.
  func error(on id: Int32) -> HTTP2ErrorCode? {
    if skipped.contains(where: { $0.contains(id) }) { return .protocolError }
    return id <= highestDiscarded || resetByServer.contains(id) ? nil : .streamClosed
  }

  /// - Returns: The element that was discarded, if any.
  @discardableResult
  private static func append<Element>(_ element: Element, to list: inout [Element]) -> Element? {
    list.append(element)
    return list.count > limit ? list.removeFirst() : nil
  }
}

/// Finds the frames that nghttp2 discards without a callback: DATA on closed streams, the rest of a header block
/// there, and unknown frame types.
///
/// Counts the bytes of the frames that nghttp2 reports. If they add up to the received bytes, and the last frame is
/// complete, nothing is scanned; otherwise the frame headers are parsed.
struct IgnoredFrameScanner {
  /// A frame header (RFC 9113 section 4.1).
  struct Header {
    let length: Int
    let type: UInt8
    let flags: UInt8
    let stream: Int32

    /// Whether the frame ends its sender's side of the stream.
    var endsStream: Bool {
      switch type {
      case APNS_FRAME_RST_STREAM: true
      case APNS_FRAME_DATA, APNS_FRAME_HEADERS: flags & APNS_FLAG_END_STREAM != 0
      default: false
      }
    }
  }

  /// The position of the first frame in the received bytes.
  struct Start {
    /// The offset of the first frame. Negative if up to eight bytes of its header were received earlier.
    fileprivate var offset: Int
    /// The header bytes received earlier; the last one is the lowest.
    fileprivate var earlier: UInt64 = 0
    /// The stream ended by the frame before the first one, if only the end of that frame is in these bytes;
    /// otherwise 0.
    fileprivate(set) var endedStream: Int32 = 0
  }
  static let headerSize = 9

  /// The position of the next frame in the bytes received next: initially after the client's connection preface.
  private var next = Start(offset: 24)
  /// The bytes of the frames reported since the last call of `didProcess`.
  private var reportedBytes = 0
  private var isComplete = false

  /// The offset of the next frame in the bytes received next; nil if part of its header was already received.
  var nextFrameOffset: Int? { next.offset < 0 ? nil : next.offset }

  /// Records that nghttp2 reported the beginning of a frame with a payload of `length` bytes.
  mutating func didBeginFrame(length: Int) {
    reportedBytes += Self.headerSize + length
    isComplete = false
  }

  /// Records that nghttp2 reported the end of the frame.
  mutating func didEndFrame() { isComplete = true }

  /// Updates the state after nghttp2 has processed `bytes`.
  ///
  /// - Returns: nil if nghttp2 reported all frames that begin in `bytes`; otherwise their position for
  ///   `forEachHeader`.
  @inline(__always)
  mutating func didProcess(_ bytes: UnsafeRawBufferPointer) -> Start? {
    guard isComplete, next.offset + reportedBytes == bytes.count else { return measure(bytes) }
    next = Start(offset: 0)
    reportedBytes = 0
    return nil
  }

  private mutating func measure(_ bytes: UnsafeRawBufferPointer) -> Start? {
    let start = next
    var offset = start.offset
    var last: Int?
    while offset + Self.headerSize <= bytes.count {
      last = offset
      offset += Self.headerSize + Int(Self.number(3, at: offset, in: bytes, from: start))
    }
    let hasIgnoredFrames = offset - start.offset != reportedBytes
    reportedBytes = 0
    next = Start(offset: offset - bytes.count)
    if next.offset > 0 {
      let header = last.map { Self.header(at: $0, in: bytes, from: start) }
      next.endedStream = header.map { $0.endsStream ? $0.stream : 0 } ?? start.endedStream
    }
    for index in min(offset, bytes.count)..<bytes.count {
      next.earlier = next.earlier << 8 | UInt64(Self.byte(index, in: bytes, from: start))
    }
    return hasIgnoredFrames ? start : nil
  }

  /// Calls `body` with each frame header that ends in `bytes`, whether nghttp2 reported the frame or not.
  static func forEachHeader(in bytes: UnsafeRawBufferPointer, from start: Start, _ body: (Header) -> Void) {
    var offset = start.offset
    while offset + headerSize <= bytes.count {
      let header = header(at: offset, in: bytes, from: start)
      body(header)
      offset += headerSize + header.length
    }
  }

  /// Returns the frame at `offset` if it is complete in `bytes`.
  @inline(__always)
  static func wholeFrame(at offset: Int, in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    guard offset + headerSize <= bytes.count else { return nil }
    let end = offset + headerSize + Int(number(3, at: offset, in: bytes, from: Start(offset: offset)))
    return end <= bytes.count ? UnsafeRawBufferPointer(rebasing: bytes[offset..<end]) : nil
  }

  private static func header(at offset: Int, in bytes: UnsafeRawBufferPointer, from start: Start) -> Header {
    Header(
      length: Int(number(3, at: offset, in: bytes, from: start)), type: byte(offset + 3, in: bytes, from: start),
      flags: byte(offset + 4, in: bytes, from: start),
      // The first bit is reserved.
      stream: Int32(number(4, at: offset + 5, in: bytes, from: start) & 0x7FFF_FFFF))
  }

  @inline(__always)
  private static func byte(_ offset: Int, in bytes: UnsafeRawBufferPointer, from start: Start) -> UInt8 {
    offset < 0 ? UInt8(truncatingIfNeeded: start.earlier >> UInt64(-8 * (offset + 1))) : bytes[offset]
  }

  @inline(__always)
  private static func number(
    _ size: Int, at offset: Int, in bytes: UnsafeRawBufferPointer, from start: Start
  ) -> UInt32 {
    (offset..<offset + size).reduce(0) { $0 << 8 | UInt32(byte($1, in: bytes, from: start)) }
  }
}
