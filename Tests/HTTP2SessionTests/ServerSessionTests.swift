import APNSMockHTTP2Session
import APNSMockHTTPMessage
import Testing

@Suite struct ServerSessionTests {
  @Test func firstSettingsAreThoseOfAPNs() throws {
    let server = try HTTP2ServerSession(maxConcurrentStreams: 1)
    var bytes: [UInt8] = []
    server.appendOutput(to: &bytes)
    #expect(
      bytes == [
        0, 0, 24, 4, 0, 0, 0, 0, 0,
        0, 1, 0, 0, 0x10, 0,  // HEADER_TABLE_SIZE 4096
        0, 3, 0, 0, 0, 1,  // MAX_CONCURRENT_STREAMS 1
        0, 5, 0, 0, 0x40, 0,  // MAX_FRAME_SIZE 16384
        0, 6, 0, 0, 0x1F, 0x40,  // MAX_HEADER_LIST_SIZE 8000
      ])
  }

  @Test func requestAndResponse() throws {
    let pair = try Pair()
    let stream = try pair.push([("apns-topic", "com.example.app")], body: Array("{}".utf8))
    var requests: [HTTPRequest] = []
    try pair.pump { event in
      guard case .request(let stream) = event else { return }
      requests.append(stream.request)
      pair.server.respond(to: stream, headers: HeaderList([(":status", "200"), ("apns-id", "A-B")]))
    }
    #expect(requests.count == 1)
    #expect(requests.first?.headers["apns-topic"] == "com.example.app")
    #expect(requests.first?.headers[":path"] == "/3/device/00")
    #expect(requests.first?.body == Array("{}".utf8))
    var expected = HTTPResponse()
    expected.headers = HeaderList([(":status", "200"), ("apns-id", "A-B")])
    #expect(pair.clientEvents.contains(.response(stream: stream, expected)))
    #expect(pair.server.openStreamCount == 0)
  }

  @Test func acceptedResponseEndsWithItsHeaders() throws {
    let pair = try Pair()
    try pair.push()
    try pair.pump { event in
      guard case .request(let stream) = event else { return }
      pair.server.respond(to: stream, headers: HeaderList([(":status", "200")]))
    }
    let answer = Frame.all(in: pair.fromServer).filter { $0.stream == 1 && $0.type != 8 }
    #expect(answer.map(\.type) == [1])
    #expect(answer.map { $0.flags & 1 } == [1])
  }

  @Test func errorBodyIsOneDataFrameThatEndsTheStream() throws {
    let pair = try Pair()
    try pair.push()
    let body = Array(#"{"reason":"BadDeviceToken"}"#.utf8)
    try pair.pump { event in
      guard case .request(let stream) = event else { return }
      pair.server.respond(to: stream, headers: HeaderList([(":status", "400")]), body: body)
    }
    let answer = Frame.all(in: pair.fromServer).filter { $0.stream == 1 && $0.type != 8 }
    #expect(answer.map(\.type) == [1, 0])
    #expect(answer.map { $0.flags & 1 } == [0, 1])
    #expect(answer.last?.payload == body)
  }

  @Test func streamsOpenedBeforeTheLimitWasAcknowledgedAreServed() throws {
    let pair = try Pair(maxConcurrentStreams: 1)
    for _ in 0..<200 { try pair.push() }
    var served = 0
    try pair.pump { event in
      switch event {
      case .request(let stream):
        served += 1
        pair.server.respond(to: stream, headers: HeaderList([(":status", "200")]))
      case .excessStreams: Issue.record("counted as an excess")
      default: break
      }
    }
    #expect(served == 200)
  }

  @Test func moreStreamsThanTheAcknowledgedLimitAreReportedOnce() throws {
    let server = try HTTP2ServerSession(maxConcurrentStreams: 1)
    var sent: [UInt8] = []
    server.appendOutput(to: &sent)
    _ = try server.feed(Frame.preface + Frame.settings + Frame.request(1, endStream: false))
    #expect(try server.feed(Frame.request(3, endStream: false)).isEmpty)
    let events = try server.feed(
      Frame.settingsAck + Frame.request(5, endStream: false) + Frame.request(7, endStream: false))
    #expect(events.count == 1)
    guard case .excessStreams(stream: 5, limit: 1)? = events.first else {
      Issue.record("no excess reported")
      return
    }
  }

  @Test func raisedLimitAppliesImmediatelyAndIsAnnounced() throws {
    let server = try HTTP2ServerSession(maxConcurrentStreams: 1)
    var sent: [UInt8] = []
    server.appendOutput(to: &sent)
    _ = try server.feed(Frame.preface + Frame.settings + Frame.settingsAck)
    server.announce(maxConcurrentStreams: 1000)
    sent = []
    server.appendOutput(to: &sent)
    let raised = Frame.all(in: sent).first { $0.type == 4 && $0.flags == 0 }
    #expect(raised?.payload == [0, 3, 0, 0, 0x03, 0xE8])
    let events = try server.feed(Frame.request(1, endStream: false) + Frame.request(3, endStream: false))
    #expect(events.isEmpty)
  }

  @Test func longBodyIsRespondedToEarlyAndReset() throws {
    let pair = try Pair()
    try pair.push(body: [UInt8](repeating: 32, count: 200_000))
    var sizes: [Int] = []
    var kept = 0
    try pair.pump { event in
      guard case .request(let stream) = event else { return }
      sizes.append(stream.request.bodySize)
      kept = stream.request.body.count
      pair.server.respond(to: stream, headers: HeaderList([(":status", "413")]), body: Array("{}".utf8))
    }
    #expect(sizes.count == 1)
    #expect(sizes.allSatisfy { $0 > HTTP2Limits.maxBodySize && $0 < 200_000 })
    #expect(kept == HTTPRequest.bodyLimit)
    let answer = Frame.all(in: pair.fromServer).filter { $0.stream == 1 && $0.type != 8 }
    #expect(answer.map(\.type) == [1, 0, 3], "HEADERS, DATA, RST_STREAM")
    #expect(answer.last?.payload == [0, 0, 0, 0], "NO_ERROR")
    #expect(pair.clientEvents.contains { if case .response = $0 { true } else { false } })
  }

  @Test func largeHeaderListIsReported() throws {
    let pair = try Pair()
    try pair.push([("x-large", String(repeating: "a", count: 9000))])
    var flagged: [Bool] = []
    try pair.pump { event in
      guard case .request(let stream) = event else { return }
      flagged.append(stream.request.headersTooLarge)
      pair.server.respond(to: stream, headers: HeaderList([(":status", "431")]))
    }
    #expect(flagged == [true])
  }

  @Test func controlCharactersInAValueReachTheRules() throws {
    let pair = try Pair()
    try pair.push([("apns-topic", "com.\u{1}example")])
    var topics: [String?] = []
    try pair.pump { event in
      guard case .request(let stream) = event else { return }
      topics.append(stream.request.headers["apns-topic"])
    }
    #expect(topics == ["com.\u{1}example"])
  }

  @Test func spaceAfterAValueReachesTheRules() throws {
    let pair = try Pair()
    try pair.push([("authorization", "bearer x ")])
    var values: [String?] = []
    try pair.pump { event in
      guard case .request(let stream) = event else { return }
      values.append(stream.request.headers["authorization"])
    }
    #expect(values == ["bearer x "])
  }

  /// Written by hand, because nghttp2's client side would convert the name to lower case.
  @Test func upperCaseNameIsResetWithProtocolError() throws {
    let server = try HTTP2ServerSession(maxConcurrentStreams: 1)
    var sent: [UInt8] = []
    server.appendOutput(to: &sent)
    let upperCase: [UInt8] = [0x83, 0x87, 0x84, 0x01, 0x01, 0x61, 0x00, 0x01, UInt8(ascii: "X"), 0x01, 0x61]
    let events = try server.feed(
      Frame.preface + Frame.settings + Frame.bytes(type: 1, flags: 5, stream: 1, payload: upperCase))
    #expect(!events.contains { if case .request = $0 { true } else { false } })
    sent = []
    server.appendOutput(to: &sent)
    #expect(Frame.all(in: sent).contains(Frame(type: 3, flags: 0, stream: 1, payload: [0, 0, 0, 1])))
    guard case .reset(let stream, .protocolError)? = server.nextEvent() else {
      Issue.record("the reset is not reported")
      return
    }
    #expect(stream.request.stream == 1)
  }

  @Test func clientGoAwayIsReported() throws {
    let server = try HTTP2ServerSession(maxConcurrentStreams: 1)
    var sent: [UInt8] = []
    server.appendOutput(to: &sent)
    _ = try server.feed(Frame.preface + Frame.settings + Frame.request(1, endStream: false))
    let events = try server.feed(Frame.bytes(type: 3, stream: 1, payload: [0, 0, 0, 8]))
    guard case .aborted(let stream)? = events.first else {
      Issue.record("not reported as aborted")
      return
    }
    #expect(stream.request.headers[":method"] == "POST")
    #expect(server.openStreamCount == 0)
  }

  @Test(arguments: ["GET / HTTP/1.1\r\nhost: a\r\n\r\n", "PRI * HTTP/1.0\r\n\r\n", "\u{0}\u{1}\u{2}garbage"])
  func invalidPrefaceIsReported(beginning: String) throws {
    let server = try HTTP2ServerSession(maxConcurrentStreams: 1)
    var sent: [UInt8] = []
    server.appendOutput(to: &sent)
    let failure = #expect(throws: HTTP2Failure.self) {
      try Array(beginning.utf8).withUnsafeBytes { try server.receive($0) }
    }
    #expect(failure?.kind == .badPreface)
    // It can still send a GOAWAY.
    server.submitGoAway(lastStream: 0, code: .protocolError, debugData: Array("why".utf8))
    sent = []
    server.appendOutput(to: &sent)
    let goAway = Frame.all(in: sent).last
    #expect(goAway?.type == 7)
    #expect(goAway?.payload == [0, 0, 0, 0, 0, 0, 0, 1] + Array("why".utf8))
  }

  @Test func pingIsAnswered() throws {
    let server = try HTTP2ServerSession(maxConcurrentStreams: 1)
    var sent: [UInt8] = []
    server.appendOutput(to: &sent)
    _ = try server.feed(Frame.preface + Frame.settings + Frame.bytes(type: 6, payload: [1, 2, 3, 4, 5, 6, 7, 8]))
    sent = []
    server.appendOutput(to: &sent)
    #expect(Frame.all(in: sent).contains(Frame(type: 6, flags: 1, stream: 0, payload: [1, 2, 3, 4, 5, 6, 7, 8])))
  }

  @Test func shutdownSendsTwoGoAwayFrames() throws {
    let pair = try Pair()
    try pair.push()
    try pair.pump { event in
      guard case .request(let stream) = event else { return }
      pair.server.respond(to: stream, headers: HeaderList([(":status", "200")]))
    }
    pair.fromServer = []
    pair.server.announceShutdown()
    try pair.pump()
    pair.server.submitGoAway(code: .noError, debugData: Array("bye".utf8))
    try pair.pump()
    let goodbyes = Frame.all(in: pair.fromServer).filter { $0.type == 7 }.map(\.payload)
    #expect(goodbyes == [[0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0] + Array("bye".utf8)])
  }

  /// One field of 100 KB, such as a JWT of that size.
  @Test func oversizedHeaderBlockEndsTheConnection() throws {
    let server = try HTTP2ServerSession(maxConcurrentStreams: 1)
    var sent: [UInt8] = []
    server.appendOutput(to: &sent)
    // Literal without indexing, name "x", value length 100 000 as an integer with a 7-bit prefix, then the value.
    let field: [UInt8] = [0x83, 0x87, 0x84, 0x00, 0x01, 0x78, 0x7F, 0xA1, 0x8C, 0x06]
    var bytes = Frame.preface + Frame.settings
    bytes += Frame.bytes(type: 1, flags: 1, stream: 1, payload: field + [UInt8](repeating: 97, count: 16000))
    for _ in 0..<5 {
      bytes += Frame.bytes(type: 9, stream: 1, payload: [UInt8](repeating: 97, count: 16000))
    }
    bytes += Frame.bytes(type: 9, flags: 4, stream: 1, payload: [UInt8](repeating: 97, count: 4000))
    _ = try server.feed(bytes)
    sent = []
    server.appendOutput(to: &sent)
    let goAway = try #require(Frame.all(in: sent).last { $0.type == 7 })
    #expect(goAway.payload[4..<8] == [0, 0, 0, 9], "COMPRESSION_ERROR")
    #expect(String(decoding: goAway.payload[8...], as: UTF8.self).contains("header field over 65536 bytes"))
    #expect(server.isFinished)
  }

  @Test func endlessContinuationIsFatal() throws {
    let server = try HTTP2ServerSession(maxConcurrentStreams: 1)
    var sent: [UInt8] = []
    server.appendOutput(to: &sent)
    var bytes = Frame.preface + Frame.settings + Frame.bytes(type: 1, flags: 1, stream: 1, payload: [0x83, 0x87, 0x84])
    for _ in 0..<1000 { bytes += Frame.bytes(type: 9, stream: 1) }
    let failure = #expect(throws: HTTP2Failure.self) { try server.feed(bytes) }
    #expect(failure?.kind == .fatal)
  }
}
