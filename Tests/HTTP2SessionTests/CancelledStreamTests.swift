import APNSMockHTTP2Session
import APNSMockHTTPMessage
import Testing

/// Open streams that the client cancels before they have a response.
@Suite struct CancelledStreamTests {
  private func cancelled(_ events: [HTTP2ServerSession.Event]) -> [RequestStream] {
    events.compactMap { if case .cancelled(let stream) = $0 { stream } else { nil } }
  }

  @Test func clientResetOfADelayedStreamIsReported() throws {
    let session = try HTTP2ServerSession.begun()
    let stream = try #require(try session.requests(Frame.request(1)).first)
    #expect(session.stream(withID: 1) === stream)
    let events = try session.feed(Frame.rst(1))
    #expect(events.count == 1)
    #expect(cancelled(events).first === stream)
    #expect(stream.request.stream == 1)
    #expect(stream.request.headers[":method"] == "POST")
    #expect(session.stream(withID: 1) == nil)
    #expect(session.openStreamCount == 0)
  }

  /// The cancellation is reported unless the response is in the output: otherwise it is never sent.
  @Test(arguments: [true, false]) func clientResetOfAnAnsweredStream(isSent: Bool) throws {
    let session = try HTTP2ServerSession.begun()
    let stream = try #require(try session.requests(Frame.request(1)).first)
    session.respond(to: stream, headers: HeaderList([(":status", "200")]))
    if isSent { #expect(session.drained().contains { $0.stream == 1 }) }
    #expect(cancelled(try session.feed(Frame.rst(1))).count == (isSent ? 0 : 1))
    #expect(session.openStreamCount == 0)
    #expect(session.drained().filter { $0.stream == 1 }.isEmpty)
  }

  /// A request and its RST_STREAM in one batch of bytes: no response can be sent.
  @Test(arguments: [true, false]) func requestAndResetTogether(isAnswered: Bool) throws {
    let session = try HTTP2ServerSession.begun()
    try (Frame.request(1) + Frame.rst(1)).withUnsafeBytes { try session.receive($0) }
    guard case .request(let stream)? = session.nextEvent() else {
      Issue.record("the request is not handed out")
      return
    }
    #expect(stream.request.stream == 1)
    if isAnswered { session.respond(to: stream, headers: HeaderList([(":status", "200")])) }
    #expect(cancelled(session.takeEvents()).count == 1)
    #expect(session.drained().filter { $0.stream != 0 }.isEmpty)
  }

  /// A stream object that an undelivered event refers to is not reused for a new stream.
  @Test func streamInAnEventIsNotReused() throws {
    let session = try HTTP2ServerSession.begun()
    // Fill the pool first.
    for stream in try session.requests(Frame.request(1) + Frame.request(3)) {
      session.respond(to: stream, headers: HeaderList([(":status", "200")]))
    }
    _ = session.drained()
    var bytes: [UInt8] = []
    for id in stride(from: Int32(5), to: 25, by: 2) { bytes += Frame.request(id) + Frame.rst(id) }
    let events = try session.feed(bytes)
    #expect(cancelled(events).map(\.request.stream) == Array(stride(from: 5, to: 25, by: 2)))
    let later = try session.requests(Frame.request(25) + Frame.request(27))
    #expect(later.map(\.request.stream) == [25, 27])
    #expect(cancelled(events).map(\.request.stream) == Array(stride(from: 5, to: 25, by: 2)))
  }

  /// nghttp2 closes the streams above the last stream id of its own GOAWAY.
  @Test func streamsAboveAGoAwayAreReported() throws {
    let session = try HTTP2ServerSession.begun()
    let streams = try session.requests(Frame.request(1) + Frame.request(3))
    session.submitGoAway(lastStream: 1, code: .noError)
    _ = session.drained()
    #expect(cancelled(session.takeEvents()).map(\.request.stream) == [3])
    #expect(session.unansweredStreams.map(\.request.stream) == [1])
    #expect(streams.count == 2)
  }

  /// The bytes after the requests end the session: its GOAWAY is sent first, and no response follows it.
  @Test(arguments: [[], [1, 2, 3]] as [[UInt8]]) func unsentResponsesAreReported(body: [UInt8]) throws {
    let session = try HTTP2ServerSession.begun()
    let shortPing = Frame.bytes(type: 6, payload: [UInt8](repeating: 0, count: 7))
    let streams = try session.requests(Frame.request(1) + Frame.request(3) + Frame.request(5) + shortPing)
    for stream in streams.prefix(2) {
      session.respond(to: stream, headers: HeaderList([(":status", "200")]), body: body)
    }
    #expect(session.drained().map(\.type) == [7])
    let dropped = session.takeEvents().map {
      if case .responseDropped(let stream) = $0 { stream.id } else { Int32(-1) }
    }
    #expect(dropped == [1, 3])
    #expect(!session.hasPendingWork)
    #expect(session.isFinished)
  }

  @Test func undeliveredRequestIsAborted() throws {
    let session = try HTTP2ServerSession.begun()
    let events = try session.feed(Frame.request(1, endStream: false) + Frame.rst(1))
    guard case .aborted? = events.first, events.count == 1 else {
      Issue.record("\(events)")
      return
    }
  }

  @Test func unknownStreamIDsReturnNil() throws {
    let session = try HTTP2ServerSession.begun()
    for id: Int32 in [0, 1, 2, -1, .max, .min] { #expect(session.stream(withID: id) == nil) }
  }

  @Test func delayedStreamIsNoPendingWork() throws {
    let session = try HTTP2ServerSession.begun()
    #expect(!session.hasPendingWork)
    let delayed = try #require(try session.requests(Frame.request(1)).first)
    #expect(!session.hasPendingWork)
    _ = try session.feed(Frame.request(3, endStream: false))
    #expect(session.hasPendingWork, "a request is coming")
    _ = try session.feed(Frame.rst(3))
    #expect(!session.hasPendingWork)
    session.respond(to: delayed, headers: HeaderList([(":status", "400")]), parts: [[1]], waitsForRelease: true)
    _ = session.drained()
    #expect(session.hasPendingWork, "an answer is not wholly out")
    session.releasePart(of: delayed)
    _ = session.drained()
    #expect(!session.hasPendingWork)
  }
}
