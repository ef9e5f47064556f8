import HTTP2Session
import HTTPMessage

/// A server session and a client session joined in memory.
final class Pair {
  let server: HTTP2ServerSession
  let client: HTTP2ClientSession
  var clientEvents: [HTTP2ClientSession.Event] = []
  /// Everything the server sent.
  var fromServer: [UInt8] = []

  init(maxConcurrentStreams: UInt32 = 1000) throws {
    server = try HTTP2ServerSession(maxConcurrentStreams: maxConcurrentStreams)
    client = try HTTP2ClientSession()
  }

  /// Carries bytes both ways until nothing moves; `serve` sees each event of the server.
  func pump(_ serve: (HTTP2ServerSession.Event) -> Void = { _ in }) throws {
    var moved = true
    while moved {
      var up: [UInt8] = []
      client.drain(into: &up)
      try up.withUnsafeBytes { try server.receive($0) }
      while let event = server.nextEvent() { serve(event) }
      var down: [UInt8] = []
      server.drain(into: &down)
      fromServer += down
      clientEvents += try down.withUnsafeBytes { try client.receive($0) }
      moved = !up.isEmpty || !down.isEmpty
    }
  }

  /// A push as providers send it.
  @discardableResult
  func push(_ extra: [(String, String)] = [], body: [UInt8] = Array(#"{"aps":{}}"#.utf8)) throws -> Int32 {
    try client.request(
      headers: HeaderList(
        [(":method", "POST"), (":scheme", "https"), (":path", "/3/device/00"), (":authority", "localhost")] + extra),
      body: body)
  }
}

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
}
