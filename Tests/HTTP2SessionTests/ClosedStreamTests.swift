import HTTP2Session
import HTTPMessage
import Testing

/// What may come on a stream that is closed (RFC 9113 section 5.1), where nghttp2 lets everything pass. From outside, and
/// with all other frames: Tests/Clients/test_h2_streams.py.
@Suite struct ClosedStreamTests {
  /// A session on which these streams were answered.
  private func answered(_ ids: Int32...) throws -> HTTP2ServerSession {
    let session = try HTTP2ServerSession.begun()
    for id in ids {
      for stream in try session.requests(Frame.request(id)) {
        session.respond(to: stream, headers: HeaderList([(":status", "200")]))
      }
      #expect(session.drained().map(\.stream) == [id])
    }
    return session
  }

  /// The code of the GOAWAY that now goes out; nil if none does.
  private func goAway(of session: HTTP2ServerSession) -> UInt32? {
    session.drained().first { $0.type == 7 }?.number(at: 4)
  }

  @Test(
    arguments: [
      (Frame.request(1), 5), (Frame.request(1, endStream: false), 5), (Frame.request(3), 1), (Frame.rst(1), nil),
      (Frame.rst(3), nil), (Frame.data(1, count: 2), nil), (Frame.data(3, count: 2), nil),
      (Frame.bytes(type: 8, stream: 1, payload: [0, 0, 0, 1]), nil),
    ] as [([UInt8], UInt32?)])
  func aClosedStream(bytes: [UInt8], error: UInt32?) throws {
    let session = try answered(1, 5)
    #expect(try session.feed(bytes + Frame.request(7)).isEmpty == (error != nil))
    #expect(goAway(of: session) == error)
    #expect(session.isFinished == (error != nil))
  }

  @Test func whatIsStillOnItsWayToAStreamThatWasResetIsIgnored() throws {
    let session = try HTTP2ServerSession.begun()
    let stream = try #require(try session.requests(Frame.request(1)).first)
    session.reset(stream, code: .internalError)
    #expect(session.drained().map(\.type) == [3])
    #expect(try session.feed(Frame.data(1, count: 2) + Frame.request(1)).isEmpty)
    #expect(goAway(of: session) == nil)
    #expect(try session.requests(Frame.request(3)).count == 1)
  }

  @Test func whatWasResetLongAgoIsForgotten() throws {
    let session = try HTTP2ServerSession.begun()
    for id in stride(from: Int32(1), through: 129, by: 2) {
      let stream = try #require(try session.requests(Frame.request(id)).first)
      session.reset(stream, code: .internalError)
      #expect(session.drained().map(\.type) == [3])
    }
    #expect(try session.feed(Frame.request(3)).isEmpty)
    #expect(goAway(of: session) == nil)
    #expect(try session.feed(Frame.request(1)).isEmpty)
    #expect(goAway(of: session) == 5)
  }

  @Test func afterGoAwayWhatComesOnNewStreamsIsIgnored() throws {
    let session = try HTTP2ServerSession.begun()
    #expect(try session.requests(Frame.request(1, endStream: false)).isEmpty)
    session.goAway(code: .noError)
    #expect(goAway(of: session) == 0)
    #expect(try session.feed(Frame.request(5, endStream: false) + Frame.data(5, count: 2) + Frame.request(3)).isEmpty)
    #expect(goAway(of: session) == nil)
  }

  @Test func aContinuationThatIsTooLargeIsAFrameSizeError() throws {
    let session = try HTTP2ServerSession.begun()
    let fields: [UInt8] = [0x83, 0x87, 0x84, 0x01, 0x01, 0x61]
    let rest = [UInt8](repeating: 0x20, count: 16_385)
    let events = try session.feed(
      Frame.bytes(type: 1, flags: 1, stream: 1, payload: fields)
        + Frame.bytes(type: 9, flags: 4, stream: 1, payload: rest))
    #expect(!events.contains { if case .request = $0 { true } else { false } })
    #expect(goAway(of: session) == 6)
  }
}
