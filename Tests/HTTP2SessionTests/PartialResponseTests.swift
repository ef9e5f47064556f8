import APNSMockHTTP2Session
import APNSMockHTTPMessage
import Testing

/// Responses whose body is sent in parts, late or never completely.
@Suite struct PartialResponseTests {
  private let headers = HeaderList([(":status", "400")])

  /// Describes the frames of stream 1 by type, END_STREAM and payload; for HEADERS and RST_STREAM only what matters
  /// here.
  private func shape(_ frames: [Frame]) -> [String] {
    frames.filter { $0.stream == 1 }.map { frame in
      let end = frame.flags & 1 == 1 ? " end" : ""
      switch frame.type {
      case 0: return "DATA \(String(decoding: frame.payload, as: UTF8.self))\(end)"
      case 1: return "HEADERS\(end)"
      case 3: return "RST \(frame.number(at: 0))"
      default: return "\(frame.type)"
      }
    }
  }

  private func answered(
    _ parts: [String], waitsForRelease: Bool = false, request: [UInt8] = Frame.request(1)
  ) throws -> (session: HTTP2ServerSession, stream: RequestStream) {
    let session = try HTTP2ServerSession.begun()
    let stream = try #require(try session.requests(request).first)
    session.respond(
      to: stream, headers: headers, parts: parts.map { Array($0.utf8) }, waitsForRelease: waitsForRelease)
    return (session, stream)
  }

  @Test(
    arguments: [
      ([], ["HEADERS end"]), (["ab"], ["HEADERS", "DATA ab end"]),
      (["ab", "c", "def"], ["HEADERS", "DATA ab", "DATA c", "DATA def end"]),
      (["", "a", ""], ["HEADERS", "DATA ", "DATA a", "DATA  end"]),
    ] as [([String], [String])])
  func eachPartIsAFrame(parts: [String], frames: [String]) throws {
    let (session, _) = try answered(parts)
    #expect(shape(session.drained()) == frames)
    #expect(session.openStreamCount == 0)
  }

  @Test(
    arguments: [
      ([], [["HEADERS"], ["DATA  end"]]), (["ab"], [["HEADERS"], ["DATA ab end"]]),
      (["ab", "c"], [["HEADERS"], ["DATA ab"], ["DATA c end"]]),
    ] as [([String], [[String]])])
  func delayedPartsAreSentOneByOne(parts: [String], steps: [[String]]) throws {
    let (session, stream) = try answered(parts, waitsForRelease: true)
    #expect(shape(session.drained()) == steps[0])
    for (index, step) in steps.enumerated().dropFirst() {
      #expect(session.drained().isEmpty, "no part is sent before its release")
      #expect(session.openStreamCount == 1)
      #expect(session.releasePart(of: stream) == (index < steps.count - 1))
      #expect(shape(session.drained()) == step)
    }
    #expect(session.openStreamCount == 0)
    #expect(!session.releasePart(of: stream))
    #expect(session.drained().isEmpty)
  }

  @Test func partsReleasedBeforeTheHeadersAreSentWithThem() throws {
    let (session, stream) = try answered(["ab", "c", "d"], waitsForRelease: true)
    session.releasePart(of: stream)
    session.releasePart(of: stream)
    #expect(shape(session.drained()) == ["HEADERS", "DATA ab", "DATA c"])
    session.releasePart(of: stream)
    #expect(shape(session.drained()) == ["DATA d end"])
  }

  @Test func delayedResponseDoesNotDelayOthers() throws {
    let (session, stream) = try answered(["ab"], waitsForRelease: true)
    let other = try #require(try session.requests(Frame.request(3)).first)
    session.respond(to: other, headers: headers, body: [1])
    #expect(session.drained().filter { $0.stream == 3 }.map(\.type) == [1, 0])
    session.releasePart(of: stream)
    #expect(shape(session.drained()) == ["DATA ab end"])
  }

  @Test func aPartWaitsForTheWindow() throws {
    let session = try HTTP2ServerSession.begun()
    // INITIAL_WINDOW_SIZE 3
    _ = try session.feed(Frame.bytes(type: 4, payload: [0, 4, 0, 0, 0, 3]))
    _ = session.drained()
    let stream = try #require(try session.requests(Frame.request(1)).first)
    session.respond(to: stream, headers: headers, parts: [Array("abcd".utf8), Array("e".utf8)], waitsForRelease: true)
    session.releasePart(of: stream)
    #expect(shape(session.drained()) == ["HEADERS", "DATA abc"])
    session.releasePart(of: stream)
    #expect(session.drained().isEmpty)
    _ = try session.feed(Frame.bytes(type: 8, stream: 1, payload: [0, 0, 0, 9]))
    #expect(shape(session.drained()) == ["DATA d", "DATA e end"])
  }

  @Test func unfinishedRequestIsResetAfterTheResponse() throws {
    let long = Frame.request(1, endStream: false) + (0..<5).flatMap { _ in Frame.data(1, count: 16_000) }
    let session = try HTTP2ServerSession.begun()
    #expect(try session.feed(Array(long.prefix(60_000))).isEmpty)
    #expect(session.drained().contains { $0.type == 8 }, "only then a client sends more than fits the first window")
    let stream = try #require(try session.requests(Array(long.dropFirst(60_000))).first)
    session.respond(to: stream, headers: headers, parts: [[97], [98]], waitsForRelease: true)
    session.releasePart(of: stream)
    #expect(shape(session.drained().filter { $0.type != 8 }) == ["HEADERS", "DATA a"])
    session.releasePart(of: stream)
    #expect(shape(session.drained()) == ["DATA b end", "RST 0"])
  }

  /// After a client cancels its stream, releasing parts of the old response affects neither the next stream nor its
  /// response.
  @Test func delayedResponseIsDroppedWithItsClient() throws {
    let (session, stream) = try answered(["old", "older"], waitsForRelease: true)
    _ = session.drained()
    #expect(session.stream(withID: 1) === stream)
    guard case .cancelled(let left)? = try session.feed(Frame.rst(1)).first else {
      Issue.record("the reset is not reported")
      return
    }
    #expect(left === stream)
    #expect(session.stream(withID: 1) == nil)
    let next = try #require(try session.requests(Frame.request(3)).first)
    session.respond(to: next, headers: headers, parts: [[97], [98]], waitsForRelease: true)
    _ = session.drained()
    #expect(session.releasePart(of: stream))
    #expect(!session.releasePart(of: stream))
    #expect(session.drained().isEmpty)
    session.releasePart(of: next)
    #expect(session.drained() == [Frame(type: 0, flags: 0, stream: 3, payload: [97])])
  }

  @Test func clientReadsAResponseInParts() throws {
    let pair = try Pair()
    let id = try pair.push()
    var held: [RequestStream] = []
    try pair.pump { event in
      guard case .request(let stream) = event else { return }
      pair.server.respond(
        to: stream, headers: headers, parts: [Array("{\"rea".utf8), Array("son\"}".utf8)], waitsForRelease: true)
      held.append(stream)
    }
    #expect(!pair.clientEvents.contains { if case .response = $0 { true } else { false } })
    while let stream = held.first, pair.server.releasePart(of: stream) { try pair.pump() }
    try pair.pump()
    var expected = HTTPResponse()
    expected.headers = headers
    expected.body = Array("{\"reason\"}".utf8)
    #expect(pair.clientEvents.contains(.response(stream: id, expected)))
  }

  @Test(arguments: [0, 2, 7, 11, 14, 0xDEAD_BEEF, UInt32.max])
  func anyErrorCodeCanBeSent(code: UInt32) throws {
    let session = try HTTP2ServerSession.begun()
    let stream = try #require(try session.requests(Frame.request(1)).first)
    session.reset(stream, rawCode: code)
    #expect(shape(session.drained()) == ["RST \(code)"])
    #expect(session.openStreamCount == 0)
    #expect(session.takeEvents().isEmpty)
  }
}
