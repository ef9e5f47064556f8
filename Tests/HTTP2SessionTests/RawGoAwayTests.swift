import APNSMockHTTP2Session
import APNSMockHTTPMessage
import Testing

/// GOAWAY frames that are sent without nghttp2's knowledge.
@Suite struct RawGoAwayTests {
  @Test func rawGoAwayIsSentUnchanged() throws {
    let session = try HTTP2ServerSession.begun()
    session.sendUntrackedGoAway(lastStream: 5, rawCode: 0xABCD_EF01, debugData: Array(#"{"reason":"Shutdown"}"#.utf8))
    #expect(session.goAwaySent == nil, "not before it is drained")
    let debug = Array(#"{"reason":"Shutdown"}"#.utf8)
    #expect(
      session.drained() == [
        Frame(type: 7, flags: 0, stream: 0, payload: [0, 0, 0, 5, 0xAB, 0xCD, 0xEF, 1] + debug)
      ])
    #expect(session.goAwaySent?.lastStream == 5)
    #expect(session.goAwaySent?.errorCode == 0xABCD_EF01)
    #expect(session.goAwaySent?.text == #"{"reason":"Shutdown"}"#)
    #expect(session.drained().isEmpty, "once")
  }

  @Test func errorGoAwayHasNoDebugData() throws {
    let session = try HTTP2ServerSession.begun()
    session.sendUntrackedGoAway(lastStream: 0, rawCode: 1)
    #expect(session.drained().map(\.payload) == [[0, 0, 0, 0, 0, 0, 0, 1]])
  }

  @Test(arguments: [Int32.min, -1, .max]) func reservedBitIsClear(lastStream: Int32) throws {
    let session = try HTTP2ServerSession.begun()
    session.sendUntrackedGoAway(lastStream: lastStream, rawCode: 0)
    #expect(session.drained().first?.number(at: 0) == UInt32(bitPattern: lastStream) & 0x7FFF_FFFF)
  }

  @Test func rawGoAwayFollowsResponsesAndKeepsTheSession() throws {
    let session = try HTTP2ServerSession.begun()
    let streams = try session.requests(Frame.request(1) + Frame.request(3))
    try #require(streams.count == 2)
    session.sendUntrackedGoAway(lastStream: 1, rawCode: 0)
    session.sendUntrackedGoAway(lastStream: 1, rawCode: 2)
    session.respond(to: streams[0], headers: HeaderList([(":status", "503")]), body: [123, 125])
    let frames = session.drained()
    #expect(frames.map(\.type) == [1, 0, 7, 7])
    #expect(session.goAwaySent?.errorCode == 2)
    #expect(!session.isFinished)
    // The stream above the GOAWAY's last stream is still open, for faults that respond on it anyway, and new streams
    // are accepted.
    #expect(session.stream(withID: 3) != nil)
    #expect(try session.requests(Frame.request(5)).map(\.request.stream) == [5])
    session.respond(to: streams[1], headers: HeaderList([(":status", "200")]))
    #expect(session.drained().map(\.stream) == [3])
    #expect(session.takeEvents().isEmpty)
  }

  @Test func debugDataIsLimitedToOneFrame() throws {
    let session = try HTTP2ServerSession.begun()
    session.sendUntrackedGoAway(lastStream: 0, rawCode: 0, debugData: [UInt8](repeating: 65, count: 100_000))
    #expect(session.drained().map(\.payload.count) == [16_384])
  }

  @Test func clientReadsItWhileItsStreamContinues() throws {
    let pair = try Pair()
    let id = try pair.push()
    var stream: RequestStream?
    try pair.pump { event in if case .request(let new) = event { stream = new } }
    pair.server.sendUntrackedGoAway(lastStream: id, rawCode: 0, debugData: Array("bye".utf8))
    try pair.pump()
    #expect(pair.clientEvents.contains(.goAway(lastStream: id, errorCode: 0, debugData: Array("bye".utf8))))
    pair.server.respond(to: try #require(stream), headers: HeaderList([(":status", "200")]))
    try pair.pump()
    #expect(pair.clientEvents.contains { if case .response(id, _) = $0 { true } else { false } })
  }
}
