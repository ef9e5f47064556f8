import APNSMockHTTP2Session
import APNSMockHTTPMessage
import Testing

/// SETTINGS that differ from those of APNs, at the start of a connection and later.
@Suite struct SettingsTests {
  private func entries(_ frame: Frame?) -> [[UInt32]] {
    guard let frame, frame.type == 4, frame.flags == 0 else { return [] }
    return stride(from: 0, to: frame.payload.count, by: 6).map { start in
      [UInt32(frame.payload[start]) << 8 | UInt32(frame.payload[start + 1]), frame.number(at: start + 2)]
    }
  }

  @Test(
    arguments: [
      (HTTP2Settings(), [[1, 4096], [3, 7], [5, 16384], [6, 8000]]),
      (HTTP2Settings(maxConcurrentStreams: 2), [[1, 4096], [3, 2], [5, 16384], [6, 8000]]),
      (HTTP2Settings(initialWindowSize: 10), [[1, 4096], [3, 7], [4, 10], [5, 16384], [6, 8000]]),
      (HTTP2Settings(maxHeaderListSize: 0), [[1, 4096], [3, 7], [5, 16384], [6, 0]]),
      (
        HTTP2Settings(maxConcurrentStreams: 0, initialWindowSize: .max, maxHeaderListSize: .max),
        [[1, 4096], [3, 0], [4, 0x7FFF_FFFF], [5, 16384], [6, UInt32.max]]
      ),
    ] as [(HTTP2Settings, [[UInt32]])])
  func firstSettings(settings: HTTP2Settings, expected: [[UInt32]]) throws {
    let session = try HTTP2ServerSession(maxConcurrentStreams: 7, settings: settings)
    let frames = session.drained()
    #expect(frames.count == 1)
    #expect(entries(frames.first) == expected)
  }

  @Test(
    arguments: [
      (HTTP2Settings(maxConcurrentStreams: 1), [[3, 1]]), (HTTP2Settings(initialWindowSize: 0), [[4, 0]]),
      (HTTP2Settings(maxHeaderListSize: 100), [[6, 100]]),
      (
        HTTP2Settings(maxConcurrentStreams: 5, initialWindowSize: 6, maxHeaderListSize: 7), [[3, 5], [4, 6], [6, 7]]
      ),
    ] as [(HTTP2Settings, [[UInt32]])])
  func laterSettings(settings: HTTP2Settings, expected: [[UInt32]]) throws {
    let session = try HTTP2ServerSession.begun()
    session.announce(settings)
    let frames = session.drained()
    #expect(frames.count == 1)
    #expect(entries(frames.first) == expected)
  }

  @Test func unchangedSettingsAreNotSent() throws {
    let session = try HTTP2ServerSession.begun()
    session.announce(HTTP2Settings())
    #expect(session.drained().isEmpty)
  }

  @Test func acknowledgementsAreMatchedInOrder() throws {
    let session = try HTTP2ServerSession.begun(maxConcurrentStreams: 10)
    session.announce(HTTP2Settings(maxHeaderListSize: 100))
    session.announce(HTTP2Settings(maxConcurrentStreams: 1))
    #expect(session.drained().flatMap { entries($0) } == [[6, 100], [3, 1]])
    // The first acknowledgement does not include the stream limit, so further streams are still allowed.
    let early = try session.feed(Frame.settingsAck + Frame.request(1) + Frame.request(3))
    #expect(!early.contains { if case .excessStreams = $0 { true } else { false } })
    let late = try session.feed(Frame.settingsAck + Frame.request(5))
    #expect(late.contains { if case .excessStreams(stream: 5, limit: 1) = $0 { true } else { false } })
  }

  @Test func smallWindowAppliesOnceAcknowledged() throws {
    let session = try HTTP2ServerSession.begun()
    session.announce(HTTP2Settings(initialWindowSize: 100))
    _ = session.drained()
    // Not acknowledged yet, so the old window applies.
    #expect(
      try session.requests(Frame.request(1, endStream: false) + Frame.data(1, count: 2000, endStream: true)).count == 1)
    #expect(session.drained().isEmpty)
    _ = try session.feed(Frame.settingsAck + Frame.request(3, endStream: false) + Frame.data(3, count: 101))
    let reset = session.drained().filter { $0.type == 3 || $0.type == 7 }
    #expect(reset.map { $0.number(at: $0.type == 7 ? 4 : 0) } == [3], "FLOW_CONTROL_ERROR")
  }

  @Test func smallWindowIsReplenished() throws {
    let pair = try Pair(settings: HTTP2Settings(initialWindowSize: 100))
    try pair.pump()
    let id = try pair.push(body: [UInt8](repeating: 32, count: 4000))
    var sizes: [Int] = []
    try pair.pump { event in
      guard case .request(let stream) = event else { return }
      sizes.append(stream.request.bodySize)
    }
    #expect(sizes == [4000])
    let updates = Frame.all(in: pair.fromServer).filter { $0.type == 8 && $0.stream == id }
    #expect(updates.count >= 20)
  }

  /// The client has sent 2000 bytes when it learns that 1000 are allowed: without a WINDOW_UPDATE it could never send
  /// again.
  @Test func windowThatShrinksOnAnOpenStreamIsUpdated() throws {
    let session = try HTTP2ServerSession.begun()
    _ = try session.feed(Frame.request(1, endStream: false) + Frame.data(1, count: 2000))
    session.announce(HTTP2Settings(initialWindowSize: 1000))
    #expect(session.drained().map(\.type) == [4])
    _ = try session.feed(Frame.settingsAck)
    #expect(session.drained() == [Frame(type: 8, flags: 0, stream: 1, payload: [0, 0, 0x07, 0xD0])])
  }

  @Test func shrunkWindowStaysClosedWhileWithheld() throws {
    let session = try HTTP2ServerSession.begun()
    session.withholdsWindow = true
    _ = try session.feed(Frame.request(1, endStream: false) + Frame.data(1, count: 2000))
    session.announce(HTTP2Settings(initialWindowSize: 1000))
    _ = session.drained()
    _ = try session.feed(Frame.settingsAck)
    #expect(session.drained().isEmpty)
    session.withholdsWindow = false
    #expect(session.drained() == [Frame(type: 8, flags: 0, stream: 1, payload: [0, 0, 0x07, 0xD0])])
  }

  // MARK: - The client's SETTINGS

  /// Returns a session that received SETTINGS which make every stream's window one byte larger, while the window of
  /// stream 1 is `room` bytes below the maximum. The SETTINGS arrive in two pieces, between which responses are
  /// queued and not sent.
  private func raisedWindows(room: UInt32, cutAt cut: Int) throws -> HTTP2ServerSession {
    let session = try HTTP2ServerSession.begun()
    func payload(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }
    _ = try session.feed(
      Frame.request(1, endStream: false)
        + Frame.bytes(type: 8, stream: 1, payload: payload(0x7FFF_FFFF - 65535 - room)))
    let others = try session.requests(Frame.request(3) + Frame.request(5) + Frame.request(7))
    let settings = Frame.bytes(type: 4, payload: [0, 4] + payload(65536))
    #expect(try session.feed(Array(settings.prefix(cut))).isEmpty)
    for stream in others { session.respond(to: stream, headers: HeaderList([(":status", "200")]), body: [1, 2, 3]) }
    #expect(try session.feed(Array(settings.dropFirst(cut))).isEmpty)
    return session
  }

  @Test(arguments: 0...15)
  func windowAboveTheMaximumIsAConnectionError(cut: Int) throws {
    let session = try raisedWindows(room: 0, cutAt: cut)
    #expect(session.drained().first { $0.type == 7 }?.number(at: 4) == 3)
    #expect(session.isFinished)
  }

  @Test(arguments: 0...15)
  func maximumWindowIsNoError(cut: Int) throws {
    let session = try raisedWindows(room: 1, cutAt: cut)
    let types = session.drained().map(\.type)
    #expect(types.filter { $0 == 1 }.count == 3 && !types.contains(3) && !types.contains(7))
    #expect(!session.isFinished)
  }

  /// On the acknowledgement of the server's SETTINGS, nghttp2 sends a WINDOW_UPDATE on each stream; this is not a
  /// client error.
  @Test func windowsThatShrinkOnSeveralStreamsAreUpdated() throws {
    let session = try HTTP2ServerSession.begun()
    let ids: [Int32] = [1, 3, 5, 7]
    for id in ids { _ = try session.feed(Frame.request(id, endStream: false) + Frame.data(id, count: 2000)) }
    session.announce(HTTP2Settings(initialWindowSize: 2000))
    _ = session.drained()
    #expect(try session.feed(Frame.settingsAck).isEmpty)
    let frames = session.drained()
    #expect(frames.map(\.type) == [8, 8, 8, 8] && Set(frames.map(\.stream)) == Set(ids))
  }
}
