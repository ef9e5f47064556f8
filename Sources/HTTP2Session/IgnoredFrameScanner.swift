private import CNghttp2

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
    fileprivate var place: Int
    /// The header bytes received earlier; the last one is the lowest.
    fileprivate var earlier: UInt64 = 0
    /// The stream ended by the frame before the first one, if only the end of that frame is in these bytes;
    /// otherwise 0.
    fileprivate(set) var ending: Int32 = 0
  }
  static let headerSize = 9

  /// The position of the next frame in the bytes received next: initially after the client's connection preface.
  private var next = Start(place: 24)
  /// The bytes of the frames reported since the last call of `took`.
  private var reportedBytes = 0
  private var isComplete = false

  /// The offset of the next frame in the bytes received next; nil if part of its header was already received.
  var beginning: Int? { next.place < 0 ? nil : next.place }

  /// Records that nghttp2 reported the beginning of a frame with a payload of `length` bytes.
  mutating func begins(length: Int) {
    reportedBytes += Self.headerSize + length
    isComplete = false
  }

  /// Records that nghttp2 reported the end of the frame.
  mutating func ends() { isComplete = true }

  /// Updates the state after nghttp2 has processed `bytes`.
  ///
  /// - Returns: nil if nghttp2 reported all frames that begin in `bytes`; otherwise their position for
  ///   `forEachHeader`.
  @inline(__always)
  mutating func took(_ bytes: UnsafeRawBufferPointer) -> Start? {
    guard isComplete, next.place + reportedBytes == bytes.count else { return measure(bytes) }
    next = Start(place: 0)
    reportedBytes = 0
    return nil
  }

  private mutating func measure(_ bytes: UnsafeRawBufferPointer) -> Start? {
    let start = next
    var place = start.place
    var last: Int?
    while place + Self.headerSize <= bytes.count {
      last = place
      place += Self.headerSize + Int(Self.number(3, at: place, in: bytes, from: start))
    }
    let hasIgnoredFrames = place - start.place != reportedBytes
    reportedBytes = 0
    next = Start(place: place - bytes.count)
    if next.place > 0 {
      let header = last.map { Self.header(at: $0, in: bytes, from: start) }
      next.ending = header.map { $0.endsStream ? $0.stream : 0 } ?? start.ending
    }
    for at in min(place, bytes.count)..<bytes.count {
      next.earlier = next.earlier << 8 | UInt64(Self.byte(at, in: bytes, from: start))
    }
    return hasIgnoredFrames ? start : nil
  }

  /// Calls `body` with each frame header that ends in `bytes`, whether nghttp2 reported the frame or not.
  static func forEachHeader(in bytes: UnsafeRawBufferPointer, from start: Start, _ body: (Header) -> Void) {
    var place = start.place
    while place + headerSize <= bytes.count {
      let header = header(at: place, in: bytes, from: start)
      body(header)
      place += headerSize + header.length
    }
  }

  /// Returns the frame at `place` if it is complete in `bytes`.
  @inline(__always)
  static func wholeFrame(at place: Int, in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    guard place + headerSize <= bytes.count else { return nil }
    let end = place + headerSize + Int(number(3, at: place, in: bytes, from: Start(place: place)))
    return end <= bytes.count ? UnsafeRawBufferPointer(rebasing: bytes[place..<end]) : nil
  }

  private static func header(at place: Int, in bytes: UnsafeRawBufferPointer, from start: Start) -> Header {
    Header(
      length: Int(number(3, at: place, in: bytes, from: start)), type: byte(place + 3, in: bytes, from: start),
      flags: byte(place + 4, in: bytes, from: start),
      // The first bit is reserved.
      stream: Int32(number(4, at: place + 5, in: bytes, from: start) & 0x7FFF_FFFF))
  }

  @inline(__always)
  private static func byte(_ at: Int, in bytes: UnsafeRawBufferPointer, from start: Start) -> UInt8 {
    at < 0 ? UInt8(truncatingIfNeeded: start.earlier >> UInt64(-8 * (at + 1))) : bytes[at]
  }

  @inline(__always)
  private static func number(
    _ size: Int, at place: Int, in bytes: UnsafeRawBufferPointer, from start: Start
  ) -> UInt32 {
    (place..<place + size).reduce(0) { $0 << 8 | UInt32(byte($1, in: bytes, from: start)) }
  }
}
