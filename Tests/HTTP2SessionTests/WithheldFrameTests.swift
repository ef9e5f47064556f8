import APNSMockHTTP2Session
import APNSMockHTTPMessage
import Testing

/// Acknowledgements and window updates that a session can withhold.
@Suite struct WithheldFrameTests {
  private func ping(_ byte: UInt8) -> [UInt8] {
    Frame.bytes(type: 6, payload: [UInt8](repeating: byte, count: 8))
  }

  @Test func settingsAreNotAcknowledged() throws {
    let session = try HTTP2ServerSession(maxConcurrentStreams: 1)
    session.acknowledgesSettings = false
    _ = try session.feed(Frame.preface + Frame.settings)
    #expect(session.drained().map(\.flags) == [0], "only our own SETTINGS")
    session.announce(HTTP2Settings(maxHeaderListSize: 1))
    _ = try session.feed(Frame.settings)
    #expect(session.drained().map(\.flags) == [0])
    session.acknowledgesSettings = true
    #expect(session.drained().isEmpty, "not made up for")
    _ = try session.feed(Frame.settings)
    #expect(session.drained() == [Frame(type: 4, flags: 1, stream: 0, payload: [])])
  }

  /// Values of the client's SETTINGS apply even if the SETTINGS are not acknowledged.
  @Test func unacknowledgedSettingsApply() throws {
    let session = try HTTP2ServerSession.begun()
    session.acknowledgesSettings = false
    _ = try session.feed(Frame.bytes(type: 4, payload: [0, 4, 0, 0, 0, 2]))
    let stream = try #require(try session.requests(Frame.request(1)).first)
    session.respond(to: stream, headers: HeaderList([(":status", "400")]), body: [1, 2, 3])
    #expect(session.drained().map(\.payload.count).last == 2)
  }

  @Test func pingsAreNotAcknowledged() throws {
    let session = try HTTP2ServerSession.begun()
    session.acknowledgesPings = false
    _ = try session.feed(ping(1))
    #expect(session.drained().isEmpty)
    session.acknowledgesPings = true
    #expect(session.drained().isEmpty, "not made up for")
    _ = try session.feed(ping(2) + ping(3))
    #expect(session.drained().map(\.payload) == [2, 3].map { [UInt8](repeating: $0, count: 8) })
  }

  @Test func pingAcknowledgementGetsNoResponse() throws {
    let session = try HTTP2ServerSession.begun()
    _ = try session.feed(Frame.bytes(type: 6, flags: 1, payload: [UInt8](repeating: 1, count: 8)))
    #expect(session.drained().isEmpty)
  }

  @Test func aFloodOfPingsEndsTheSession() throws {
    let session = try HTTP2ServerSession.begun()
    let failure = #expect(throws: HTTP2Failure.self) {
      for _ in 0..<20 { _ = try session.feed((0..<100).flatMap { ping($0) }) }
    }
    #expect(failure?.kind == .fatal)
    #expect(failure?.description.lowercased().contains("flooding") == true, "\(failure?.description ?? "")")
  }

  @Test func acknowledgedPingsAreNotAFlood() throws {
    let session = try HTTP2ServerSession.begun()
    var answers = 0
    for _ in 0..<20 {
      _ = try session.feed((0..<100).flatMap { ping($0) })
      answers += session.drained().count
    }
    #expect(answers == 2000)
  }

  @Test func aFloodOfSettingsEndsTheSessionAlsoWhileNotAcknowledged() throws {
    let session = try HTTP2ServerSession.begun()
    session.acknowledgesSettings = false
    let failure = #expect(throws: HTTP2Failure.self) {
      for _ in 0..<20 { _ = try session.feed((0..<100).flatMap { _ in Frame.settings }) }
    }
    #expect(failure?.kind == .fatal)
  }

  // MARK: - Window

  private func updates(_ frames: [Frame]) -> [Int32: UInt32] {
    frames.filter { $0.type == 8 }.reduce(into: [:]) { $0[$1.stream, default: 0] += $1.number(at: 0) }
  }

  @Test func windowIsUpdatedAtHalf() throws {
    let session = try HTTP2ServerSession.begun()
    _ = try session.feed(Frame.request(1, endStream: false) + Frame.data(1, count: 16_384))
    #expect(session.drained().isEmpty)
    _ = try session.feed(Frame.data(1, count: 16_384))
    #expect(updates(session.drained()) == [0: 32_768, 1: 32_768])
  }

  @Test func endedStreamGetsNoWindowUpdate() throws {
    let session = try HTTP2ServerSession.begun()
    _ = try session.feed(
      Frame.request(1, endStream: false) + Frame.data(1, count: 16_384) + Frame.data(1, count: 16_384, endStream: true))
    #expect(updates(session.drained()) == [0: 32_768])
  }

  /// Small pushes use up the connection's window together.
  @Test func manySmallBodiesKeepTheConnectionOpen() throws {
    let session = try HTTP2ServerSession.begun()
    var given: UInt32 = 0
    for id in stride(from: Int32(1), to: 201, by: 2) {
      for stream in try session.requests(
        Frame.request(id, endStream: false) + Frame.data(id, count: 1000, endStream: true))
      {
        session.respond(to: stream, headers: HeaderList([(":status", "200")]))
      }
      given += updates(session.drained())[0] ?? 0
    }
    #expect(given >= 100_000 - 32_768)
  }

  @Test func withheldWindowIsUpdatedAfterRelease() throws {
    let session = try HTTP2ServerSession.begun()
    session.withholdsWindow = true
    _ = try session.feed(Frame.request(1, endStream: false) + Frame.request(3, endStream: false))
    for _ in 0..<2 { _ = try session.feed(Frame.data(1, count: 16_384)) }
    _ = try session.feed(Frame.data(3, count: 16_384) + Frame.data(3, count: 16_382))
    #expect(session.drained().isEmpty)
    #expect(session.withholdsWindow)
    session.withholdsWindow = false
    #expect(updates(session.drained()) == [0: 65_534, 1: 32_768])
    // Less than half of the third stream's window is used, so there is no update yet; further bytes count as usual.
    _ = try session.feed(Frame.data(3, count: 1))
    #expect(updates(session.drained()) == [3: 32_767])
  }

  /// Pushes that arrived in the same bytes as the event that withholds the window were already received.
  @Test func windowWithheldAtAnEventIncludesItsOwnData() throws {
    let session = try HTTP2ServerSession.begun()
    let pushes = stride(from: Int32(1), to: 81, by: 2).flatMap { id in
      Frame.request(id, endStream: false) + Frame.data(id, count: 1000, endStream: true)
    }
    for stream in try session.requests(pushes) {
      session.withholdsWindow = true
      session.respond(to: stream, headers: HeaderList([(":status", "200")]))
    }
    #expect(updates(session.drained()).isEmpty)
    session.withholdsWindow = false
    #expect(updates(session.drained()) == [0: 40_000])
  }

  @Test func dataBeyondAWithheldWindowIsAProtocolError() throws {
    let session = try HTTP2ServerSession.begun()
    session.withholdsWindow = true
    _ = try session.feed(Frame.request(1, endStream: false))
    for _ in 0..<4 { _ = try session.feed(Frame.data(1, count: 16_384)) }
    let goAway = try #require(session.drained().last)
    #expect(goAway.type == 7)
    #expect(goAway.number(at: 4) == 3, "FLOW_CONTROL_ERROR")
  }

  /// The bytes of streams that close while the window is withheld are returned to the connection's window.
  @Test func closedStreamsReturnTheirWindowToTheConnection() throws {
    let session = try HTTP2ServerSession.begun()
    session.withholdsWindow = true
    for id: Int32 in [1, 3, 5] {
      _ = try session.feed(Frame.request(id, endStream: false) + Frame.data(id, count: 16_000) + Frame.rst(id))
    }
    #expect(session.drained().isEmpty)
    session.withholdsWindow = false
    #expect(updates(session.drained()) == [0: 48_000])
    // A reused stream object starts with no withheld bytes.
    session.withholdsWindow = true
    session.withholdsWindow = false
    #expect(session.drained().isEmpty)
  }

  @Test func clientWaitsAndContinues() throws {
    let pair = try Pair()
    pair.server.withholdsWindow = true
    try pair.push(body: [UInt8](repeating: 32, count: 60_000))
    try pair.push(body: [UInt8](repeating: 32, count: 60_000))
    var sizes: [Int] = []
    func serve(_ event: HTTP2ServerSession.Event) {
      if case .request(let stream) = event { sizes.append(stream.request.bodySize) }
    }
    try pair.pump(serve)
    #expect(!Frame.all(in: pair.fromServer).contains { $0.type == 8 })
    #expect(sizes.count < 2)
    pair.server.withholdsWindow = false
    try pair.pump(serve)
    #expect(sizes == [60_000, 60_000])
  }
}
