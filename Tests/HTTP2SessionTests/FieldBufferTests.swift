import APNSMockHTTPMessage
import Testing

@testable import APNSMockHTTP2Session

/// Header blocks that are decoded into requests.
@Suite struct FieldBlockTests {
  /// Encodes a literal field without indexing; the name has one letter and the value fewer than 16 000 bytes.
  private func field(_ name: Character, _ value: String) -> [UInt8] {
    let count = value.utf8.count
    let length = count < 127 ? [UInt8(count)] : [0x7f, UInt8((count - 127) & 127 | 128), UInt8((count - 127) >> 7)]
    return [0x00, 0x01] + Array(String(name).utf8) + length + Array(value.utf8)
  }

  private func headers(_ stream: Int32, endStream: Bool = true, _ fields: [UInt8], isTrailer: Bool = false) -> [UInt8] {
    let request = isTrailer ? [] : Array(Frame.request(stream).dropFirst(9))
    return Frame.bytes(type: 1, flags: endStream ? 5 : 4, stream: stream, payload: request + fields)
  }

  /// Splits the bytes at every position and lets another connection of the same thread decode a request between the
  /// halves.
  @Test func sessionsOnOneThreadDoNotShareFields() throws {
    let fields = field("x", "one") + field("y", String(repeating: "z", count: 40))
    let bytes = headers(1, fields)
    for cut in 1..<bytes.count {
      let pool = RequestStreamPool()
      let (one, other) = (try HTTP2ServerSession.begun(pool: pool), try HTTP2ServerSession.begun(pool: pool))
      #expect(try one.requests(Array(bytes[..<cut])).isEmpty)
      let second = try #require(try other.requests(headers(1, field("x", "two"))).first)
      let first = try #require(try one.requests(Array(bytes[cut...])).first)
      #expect(first.request.headers["x"] == "one" && first.request.headers["y"]?.count == 40, "cut at \(cut)")
      #expect(first.request.headers.count == 6)
      #expect(second.request.headers["x"] == "two" && second.request.headers["y"] == nil)
    }
  }

  @Test func trailersAreIndependentOfTooLargeHeaders() throws {
    let session = try HTTP2ServerSession.begun()
    #expect(try session.requests(headers(1, endStream: false, field("x", "one"))).isEmpty)
    let tooLarge = try session.requests(headers(3, field("x", String(repeating: "z", count: 8100)) + field("y", "two")))
    #expect(tooLarge.map(\.request.headersTooLarge) == [true])
    #expect(tooLarge.first?.request.headers["y"] == nil, "nothing is kept behind what did not fit")
    let whole = try #require(try session.requests(headers(1, field("t", "end"), isTrailer: true)).first)
    #expect(!whole.request.headersTooLarge)
    #expect(whole.request.headers["x"] == "one" && whole.request.headers["t"] == nil)
  }

  /// The size of the trailers counts separately from the size of the headers, and trailers are not delivered.
  @Test(arguments: [(4000, false), (7900, false), (8000, true)])
  func trailersAreASeparateList(size: Int, isTooLarge: Bool) throws {
    let session = try HTTP2ServerSession.begun()
    #expect(try session.requests(headers(1, endStream: false, field("x", String(repeating: "z", count: 4000)))).isEmpty)
    let trailers = headers(1, field("t", String(repeating: "z", count: size)), isTrailer: true)
    let whole = try #require(try session.requests(trailers).first)
    #expect(whole.request.headersTooLarge == isTooLarge)
    #expect(whole.request.headers["x"]?.count == 4000 && whole.request.headers["t"] == nil)
  }
}
