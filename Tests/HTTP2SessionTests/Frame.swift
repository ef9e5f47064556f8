import APNSMockHTTP2Session
import Testing

/// An HTTP/2 frame: the fields of its header and its payload.
struct Frame: Equatable {
  let type: UInt8
  let flags: UInt8
  let stream: Int32
  let payload: [UInt8]

  /// Returns the complete frames in a byte stream.
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

  /// Returns the encoded bytes of a frame.
  static func bytes(type: UInt8, flags: UInt8 = 0, stream: Int32 = 0, payload: [UInt8] = []) -> [UInt8] {
    let count = payload.count
    return [UInt8(count >> 16 & 255), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags]
      + (0..<4).map { UInt8(truncatingIfNeeded: stream >> (24 - 8 * $0)) } + payload
  }

  static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
  static let settings = bytes(type: 4)
  static let settingsAck = bytes(type: 4, flags: 1)

  /// Returns a request's HEADERS frame: :method POST, :scheme https, :path /, :authority "a", from HPACK's static
  /// table and one literal.
  static func request(_ stream: Int32, endStream: Bool = true) -> [UInt8] {
    bytes(type: 1, flags: endStream ? 5 : 4, stream: stream, payload: [0x83, 0x87, 0x84, 0x01, 0x01, 0x61])
  }

  static func data(_ stream: Int32, count: Int, endStream: Bool = false) -> [UInt8] {
    bytes(type: 0, flags: endStream ? 1 : 0, stream: stream, payload: [UInt8](repeating: 32, count: count))
  }

  static func rst(_ stream: Int32, code: UInt8 = 8) -> [UInt8] {
    bytes(type: 3, stream: stream, payload: [0, 0, 0, code])
  }

  /// Returns four bytes of the payload as a big-endian number.
  func number(at offset: Int) -> UInt32 { payload.dropFirst(offset).prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }
}

extension HTTP2ServerSession {
  /// Returns a session that has sent its first SETTINGS and has received the acknowledgement.
  static func begun(
    maxConcurrentStreams: UInt32 = 1000, pool: RequestStreamPool = RequestStreamPool()
  ) throws -> HTTP2ServerSession {
    let session = try HTTP2ServerSession(maxConcurrentStreams: maxConcurrentStreams, pool: pool)
    _ = session.drained()
    #expect(try session.feed(Frame.preface + Frame.settings + Frame.settingsAck).isEmpty)
    _ = session.drained()
    return session
  }

  /// Receives bytes from the client and returns the events they cause.
  func feed(_ bytes: [UInt8]) throws -> [Event] {
    try bytes.withUnsafeBytes { try receive($0) }
    return takeEvents()
  }

  func takeEvents() -> [Event] {
    var events: [Event] = []
    while let event = nextEvent() { events.append(event) }
    return events
  }

  /// Returns the streams whose requests are completed by these bytes.
  func requests(_ bytes: [UInt8]) throws -> [RequestStream] {
    try feed(bytes).compactMap { if case .request(let stream) = $0 { stream } else { nil } }
  }

  /// Returns the streams whose requests are completed by these bytes, which arrive in pieces of `size` bytes.
  func requests(_ bytes: [UInt8], inPiecesOf size: Int) throws -> [RequestStream] {
    try stride(from: 0, to: bytes.count, by: size).flatMap {
      try requests(Array(bytes[$0..<min($0 + size, bytes.count)]))
    }
  }

  /// Returns the frames that are ready to be sent.
  func drained() -> [Frame] {
    var bytes: [UInt8] = []
    appendOutput(to: &bytes)
    return Frame.all(in: bytes)
  }
}
