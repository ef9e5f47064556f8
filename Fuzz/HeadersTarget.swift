import APNSMockHTTP2Session
import APNSMockHTTPMessage

/// Fuzzes header blocks: receives each one in a whole frame, which is rewritten without Huffman code, and in two
/// pieces, which nghttp2 gets unchanged. The results must be equal.
///
/// Each block is preceded by its length in one byte; all blocks are sent on one connection.
struct HeadersTarget: FuzzTarget {
  init() {}

  func run(_ bytes: UnsafeRawBufferPointer) {
    guard var whole = Reader(), var cut = Reader() else { return }
    var input = Input(bytes)
    var stream: Int32 = 1
    while !input.isAtEnd {
      let block = Array(input.piece(Int(input.byte())))
      // HEADERS, with END_STREAM and END_HEADERS.
      let head: [UInt8] = [0, 0, UInt8(block.count), 1, 5, 0, 0, UInt8(stream >> 8), UInt8(stream & 255)]
      let (first, second) = (whole.receive([head + block]), cut.receive([head, block]))
      expect(first == second, "in one piece \(first ?? ["the end"]), in two \(second ?? ["the end"])")
      stream += 2
      if first == nil { return }
    }
  }
}

/// A session and its results.
private struct Reader {
  private let session: HTTP2ServerSession
  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]

  init?() {
    guard let session = try? HTTP2ServerSession(maxConcurrentStreams: 1000) else { return nil }
    self.session = session
    expect(receive([Self.preface]) != nil, "the preface was not accepted")
  }

  /// Returns the events and the output that a frame causes; nil if the session has ended.
  mutating func receive(_ pieces: [[UInt8]]) -> [String]? {
    var observed: [String] = []
    do {
      for piece in pieces { try piece.withUnsafeBytes { try session.receive($0) } }
    } catch {
      return nil
    }
    while let event = session.nextEvent() {
      switch event {
      case .request(let stream):
        observed.append("request \(stream.id)")
        stream.request.headers.forEachField { name, value in
          observed.append("\(stream.request.headers.string(name)): \(stream.request.headers.string(value))")
        }
        session.reset(stream, code: .cancel)
      case .reset(let stream, let code): observed.append("reset \(stream.id) \(code)")
      default: observed.append("something else")
      }
    }
    var output: [UInt8] = []
    session.appendOutput(to: &output)
    observed.append("\(output)")
    return observed
  }
}
