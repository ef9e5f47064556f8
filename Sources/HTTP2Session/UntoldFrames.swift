private import CNghttp2

/// Finds the frames that nghttp2 throws away without telling of them: DATA on closed streams, the rest of a header block
/// there, and types that it does not know.
///
/// The bytes of the frames that it tells of are counted. Where they are all that came, and the last one is complete, nothing
/// is looked at; else the frames' headers are gone through.
struct UntoldFrames {
  /// What stands before each frame (RFC 9113 section 4.1).
  struct Header {
    let length: Int
    let type: UInt8
    let flags: UInt8
    let stream: Int32

    /// Its sender says nothing more on the stream.
    var endsStream: Bool {
      switch type {
      case APNS_FRAME_RST_STREAM: true
      case APNS_FRAME_DATA, APNS_FRAME_HEADERS: flags & APNS_FLAG_END_STREAM != 0
      default: false
      }
    }
  }

  /// Where frames begin in bytes that came.
  struct Start {
    /// Where the first one begins. It is below zero when up to eight bytes of its header came earlier.
    fileprivate var place: Int
    /// Those bytes; the last of them is the lowest.
    fileprivate var earlier: UInt64 = 0
    /// The stream that the frame before the first one ends, if its header came earlier and its end did not; else 0.
    fileprivate(set) var ending: Int32 = 0
  }
  static let headerSize = 9

  /// Where the next frame begins in what comes next: first of all behind the client's preface.
  private var next = Start(place: 24)
  /// Bytes of the frames that were told of since.
  private var told = 0
  private var isComplete = false

  /// Where the next frame begins in what comes next; nil if part of its header came already.
  var beginning: Int? { next.place < 0 ? nil : next.place }

  /// nghttp2 tells of a frame that begins, with a payload of `length` bytes.
  mutating func begins(length: Int) {
    told += Self.headerSize + length
    isComplete = false
  }

  /// nghttp2 tells that the frame it told of last is there.
  mutating func ends() { isComplete = true }

  /// nghttp2 has taken in `bytes`.
  ///
  /// - Returns: nil if it told of all frames that begin there, else where they begin, for `forEachHeader`.
  @inline(__always)
  mutating func took(_ bytes: UnsafeRawBufferPointer) -> Start? {
    guard isComplete, next.place + told == bytes.count else { return measure(bytes) }
    next = Start(place: 0)
    told = 0
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
    let hasUntold = place - start.place != told
    told = 0
    next = Start(place: place - bytes.count)
    if next.place > 0 {
      let header = last.map { Self.header(at: $0, in: bytes, from: start) }
      next.ending = header.map { $0.endsStream ? $0.stream : 0 } ?? start.ending
    }
    for at in min(place, bytes.count)..<bytes.count {
      next.earlier = next.earlier << 8 | UInt64(Self.byte(at, in: bytes, from: start))
    }
    return hasUntold ? start : nil
  }

  /// Goes through the headers that end in `bytes`, told of or not.
  static func forEachHeader(in bytes: UnsafeRawBufferPointer, from start: Start, _ body: (Header) -> Void) {
    var place = start.place
    while place + headerSize <= bytes.count {
      let header = header(at: place, in: bytes, from: start)
      body(header)
      place += headerSize + header.length
    }
  }

  /// The frame that begins at `place`, if it is there to its end.
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
      // The bit before the stream is reserved.
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
