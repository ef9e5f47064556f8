import HTTP2Session
import Testing

/// A frame header and the bytes after it.
struct Frame: Equatable {
  let type: UInt8
  let flags: UInt8
  let stream: Int32
  let payload: [UInt8]

  /// Cuts frames out of a byte stream.
  static func all(in bytes: [UInt8]) -> [Frame] {
    var frames: [Frame] = []
    var rest = bytes[...]
    while rest.count >= 9 {
      let head = Array(rest.prefix(9))
      let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
      guard rest.count >= 9 + length else { break }
      let stream = head[5...8].reduce(Int32(0)) { $0 << 8 | Int32($1) }
      frames.append(
        Frame(type: head[3], flags: head[4], stream: stream, payload: Array(rest.dropFirst(9).prefix(length))))
      rest = rest.dropFirst(9 + length)
    }
    return frames
  }

  /// The bytes of a frame.
  static func bytes(type: UInt8, flags: UInt8 = 0, stream: Int32 = 0, payload: [UInt8] = []) -> [UInt8] {
    let count = payload.count
    return [UInt8(count >> 16 & 255), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags]
      + (0..<4).map { UInt8(truncatingIfNeeded: stream >> (24 - 8 * $0)) } + payload
  }

  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
  static let settings = bytes(type: 4)
  static let settingsAck = bytes(type: 4, flags: 1)

  /// A request's HEADERS: :method POST, :scheme https, :path /, :authority "a", from HPACK's static table and one literal.
  static func request(_ stream: Int32, endStream: Bool = true) -> [UInt8] {
    bytes(type: 1, flags: endStream ? 5 : 4, stream: stream, payload: [0x83, 0x87, 0x84, 0x01, 0x01, 0x61])
  }

  static func data(_ stream: Int32, count: Int, endStream: Bool = false) -> [UInt8] {
    bytes(type: 0, flags: endStream ? 1 : 0, stream: stream, payload: [UInt8](repeating: 32, count: count))
  }

  static func rst(_ stream: Int32, code: UInt8 = 8) -> [UInt8] {
    bytes(type: 3, stream: stream, payload: [0, 0, 0, code])
  }

  /// Four bytes of the payload as a number.
  func number(at offset: Int) -> UInt32 { payload.dropFirst(offset).prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }
}

extension HTTP2ServerSession {
  /// A session of which the first SETTINGS are out, and acknowledged.
  static func begun(
    maxConcurrentStreams: UInt32 = 1000, pool: RequestStreamPool = RequestStreamPool()
  ) throws -> HTTP2ServerSession {
    let session = try HTTP2ServerSession(maxConcurrentStreams: maxConcurrentStreams, pool: pool)
    _ = session.drained()
    #expect(try session.feed(Frame.preface + Frame.settings + Frame.settingsAck).isEmpty)
    _ = session.drained()
    return session
  }

  /// Takes bytes of a client and hands out what they mean.
  func feed(_ bytes: [UInt8]) throws -> [Event] {
    try bytes.withUnsafeBytes { try receive($0) }
    return takeEvents()
  }

  func takeEvents() -> [Event] {
    var events: [Event] = []
    while let event = nextEvent() { events.append(event) }
    return events
  }

  /// The streams whose requests came with these bytes.
  func requests(_ bytes: [UInt8]) throws -> [RequestStream] {
    try feed(bytes).compactMap { if case .request(let stream) = $0 { stream } else { nil } }
  }

  /// The same when the bytes come in pieces of this size.
  func requests(_ bytes: [UInt8], inPiecesOf size: Int) throws -> [RequestStream] {
    try stride(from: 0, to: bytes.count, by: size).flatMap {
      try requests(Array(bytes[$0..<min($0 + size, bytes.count)]))
    }
  }

  /// The frames that now go out.
  func drained() -> [Frame] {
    var bytes: [UInt8] = []
    drain(into: &bytes)
    return Frame.all(in: bytes)
  }
}
