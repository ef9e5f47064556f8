import APNSMockHTTP2Session
import APNSMockHTTPMessage
import Testing

/// Time limits for headers, bodies and flow-control windows that a client must provide. One call of
/// `endOverdueStreams` simulates ten seconds.
@Suite struct OverdueStreamTests {
  private let patience = Int(HTTP2Limits.maxOverdueChecks)

  /// Returns the number of the first check that ends a stream, and the streams it ends; nil if none of twenty does.
  private func firstLook(_ session: HTTP2ServerSession) throws -> (number: Int, streams: [RequestStream])? {
    for number in 1...20 {
      let streams = try session.endOverdueStreams()
      if !streams.isEmpty { return (number, streams) }
    }
    return nil
  }

  private func failure(_ session: HTTP2ServerSession, afterLooks count: Int) -> HTTP2Failure? {
    #expect(throws: Never.self) { for _ in 0..<count { _ = try session.endOverdueStreams() } }
    return #expect(throws: HTTP2Failure.self) { try session.endOverdueStreams() }
  }

  @Test func missingBodyEndsTheStream() throws {
    let session = try HTTP2ServerSession.begun()
    #expect(try session.feed(Frame.request(1, endStream: false)).isEmpty)
    for _ in 0..<patience {
      #expect(try session.endOverdueStreams().isEmpty)
      // A byte now and then does not extend the limit.
      #expect(try session.feed(Frame.data(1, count: 1)).isEmpty)
    }
    let overdue = try session.endOverdueStreams()
    #expect(overdue.map(\.id) == [1])
    #expect(overdue.first?.isOverdue == true)
    #expect(
      session.drained().filter { $0.stream == 1 } == [Frame(type: 3, flags: 0, stream: 1, payload: [0, 0, 0, 8])])
    guard case .reset(let stream, .cancel)? = session.nextEvent() else {
      Issue.record("it is not reported")
      return
    }
    #expect(stream.isOverdue)
    #expect(session.openStreamCount == 0)
    #expect(try session.requests(Frame.request(3)).count == 1)
  }

  @Test func eachRequestHasItsOwnTimeout() throws {
    let session = try HTTP2ServerSession.begun()
    _ = try session.feed(Frame.request(1, endStream: false))
    _ = try session.endOverdueStreams()
    _ = try session.feed(Frame.request(3, endStream: false))
    #expect(try firstLook(session)?.streams.map(\.id) == [1])
    _ = session.drained()
    #expect(try firstLook(session)?.streams.map(\.id) == [3])
  }

  @Test func responseWithoutWindowEndsTheStream() throws {
    let session = try HTTP2ServerSession.begun()
    // SETTINGS_INITIAL_WINDOW_SIZE 0.
    _ = try session.feed(Frame.bytes(type: 4, payload: [0, 4, 0, 0, 0, 0]))
    let stream = try #require(try session.requests(Frame.request(1)).first)
    session.respond(to: stream, headers: HeaderList([(":status", "400")]), body: Array("body".utf8))
    _ = session.drained()
    #expect(try firstLook(session)?.number == patience + 1)
    #expect(session.drained().filter { $0.stream == 1 }.map(\.type) == [3])
    let codes = session.takeEvents().map { event -> HTTP2ErrorCode? in
      return if case .cancelled(let ended) = event { ended.resetSent } else { nil }
    }
    #expect(codes == [.cancel])
    #expect(session.openStreamCount == 0)
  }

  /// A response that can send one byte per check is slow, but not overdue.
  @Test func progressingResponseIsNotOverdue() throws {
    let session = try HTTP2ServerSession.begun()
    _ = try session.feed(Frame.bytes(type: 4, payload: [0, 4, 0, 0, 0, 0]))
    let stream = try #require(try session.requests(Frame.request(1)).first)
    session.respond(to: stream, headers: HeaderList([(":status", "400")]), body: [UInt8](repeating: 97, count: 30))
    _ = session.drained()
    for _ in 0..<10 {
      #expect(try session.endOverdueStreams().isEmpty)
      _ = try session.feed(Frame.bytes(type: 8, stream: 1, payload: [0, 0, 0, 1]))
      #expect(session.drained().contains { $0.type == 0 && $0.payload == [97] })
    }
    #expect(try firstLook(session)?.number == patience + 1)
  }

  @Test func delayedResponseIsNotOverdue() throws {
    let session = try HTTP2ServerSession.begun()
    let streams = try session.requests(Frame.request(1) + Frame.request(3))
    session.respond(
      to: try #require(streams.last), headers: HeaderList([(":status", "400")]), parts: [[97], [98]],
      waitsForRelease: true)
    _ = session.drained()
    #expect(try firstLook(session) == nil)
    #expect(session.openStreamCount == 2)
  }

  @Test func requestIsNotOverdueWhileItsWindowIsWithheld() throws {
    let session = try HTTP2ServerSession.begun()
    _ = try session.feed(Frame.request(1, endStream: false))
    session.withholdsWindow = true
    #expect(try firstLook(session) == nil)
    session.withholdsWindow = false
    #expect(try firstLook(session)?.number == patience + 1)
  }

  @Test func unfinishedHeaderBlockEndsTheSession() throws {
    let session = try HTTP2ServerSession.begun()
    _ = try session.feed(Frame.bytes(type: 1, stream: 1, payload: [0x83]))
    #expect(
      failure(session, afterLooks: patience)?.description == "the header block of stream 1 did not end within 30 s")
  }

  @Test(arguments: [[], Array(Frame.preface.prefix(20)), Frame.preface])
  func unfinishedPrefaceEndsTheSession(beginning: [UInt8]) throws {
    let session = try HTTP2ServerSession(maxConcurrentStreams: 1000)
    _ = try session.feed(beginning)
    #expect(failure(session, afterLooks: patience)?.description == "no HTTP/2 client preface within 30 s")
  }

  @Test func idleSessionIsKept() throws {
    #expect(try firstLook(HTTP2ServerSession.begun()) == nil)
  }

  // MARK: - Counted between two checks

  @Test func tooManyResetsEndTheSession() throws {
    let session = try HTTP2ServerSession.begun()
    for round in 0..<HTTP2Limits.maxResets {
      let id = Int32(2 * round + 1)
      _ = try session.feed(Frame.request(id) + Frame.rst(id))
    }
    let id = Int32(2 * HTTP2Limits.maxResets + 1)
    let failure = #expect(throws: HTTP2Failure.self) { try session.feed(Frame.request(id) + Frame.rst(id)) }
    #expect(failure?.description == "more than 10000 streams reset within 10 s")
  }

  @Test func eachCheckRestartsTheResetCount() throws {
    let session = try HTTP2ServerSession.begun()
    for round in 0..<HTTP2Limits.maxResets + 10 {
      if round == HTTP2Limits.maxResets / 2 { _ = try session.endOverdueStreams() }
      let id = Int32(2 * round + 1)
      _ = try session.feed(Frame.request(id) + Frame.rst(id))
    }
    #expect(session.openStreamCount == 0)
  }

  /// Field "x" with a value of 4000 bytes enters HPACK's table; each byte 0xbe refers to it.
  @Test func fieldsFarBeyondTheLimitEndTheSession() throws {
    let session = try HTTP2ServerSession.begun()
    let field: [UInt8] = [0x40, 0x01, 0x78, 0x7F, 0xA1, 0x1E] + [UInt8](repeating: 118, count: 4000)
    let start: [UInt8] = [0x83, 0x87, 0x84, 0x01, 0x01, 0x61] + field
    let some = try session.requests(
      Frame.bytes(type: 1, flags: 5, stream: 1, payload: start + [UInt8](repeating: 0xBE, count: 16)))
    #expect(some.first?.request.headersTooLarge == true, "within the excess it is a matter of 431")
    let failure = #expect(throws: HTTP2Failure.self) {
      try session.feed(
        Frame.bytes(
          type: 1, flags: 5, stream: 3,
          payload: [0x83, 0x87, 0x84, 0x01, 0x01, 0x61] + [UInt8](repeating: 0xBE, count: 20)))
    }
    #expect(failure?.description == "a header list of more than 73536 bytes")
  }

  @Test func requestBytesCountDeliveredRequests() throws {
    let session = try HTTP2ServerSession.begun()
    let stream = try #require(
      try session.requests(Frame.request(1, endStream: false) + Frame.data(1, count: 100, endStream: true)).first)
    let size = stream.request.headers.listSize + 100
    #expect(session.requestByteCount == size)
    _ = try session.feed(Frame.request(3, endStream: false) + Frame.data(3, count: 100) + Frame.rst(3))
    _ = try session.feed(Frame.bytes(type: 6, payload: [UInt8](repeating: 0, count: 8)))
    #expect(session.requestByteCount == size)
  }
}
