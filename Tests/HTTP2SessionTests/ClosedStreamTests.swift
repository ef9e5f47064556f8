import APNSMockHTTP2Session
import APNSMockHTTPMessage
import APNSMockTestSupport
import Testing

/// Frames on closed streams (RFC 9113 section 5.1), where nghttp2 accepts everything.
/// Tests/Clients/http2/test_streams.py tests all frame types over a real connection.
@Suite struct ClosedStreamTests {
  /// Returns a session that has responded on these streams.
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

  /// Returns the error code of the pending GOAWAY; nil if there is none.
  private func goAway(of session: HTTP2ServerSession) -> UInt32? {
    session.drained().first { $0.type == 7 }?.number(at: 4)
  }

  @Test(
    arguments: [
      (Frame.request(1), 5), (Frame.request(1, endStream: false), 5), (Frame.request(3), 1), (Frame.rst(1), nil),
      (Frame.rst(3), nil), (Frame.data(1, count: 2), 5), (Frame.data(3, count: 2), 1), (Frame.data(1, count: 0), 5),
      (Frame.bytes(type: 8, stream: 1, payload: [0, 0, 0, 1]), nil),
    ] as [([UInt8], UInt32?)])
  func closedStream(bytes: [UInt8], error: UInt32?) throws {
    let session = try answered(1, 5)
    #expect(try session.feed(bytes).isEmpty)
    #expect(goAway(of: session) == error)
    #expect(session.isFinished == (error != nil))
    #expect(try session.requests(Frame.request(7)).isEmpty == (error != nil))
  }

  /// Refusing the open streams resets them with REFUSED_STREAM; the first late frame on each gets STREAM_CLOSED.
  @Test func refusedStreams() throws {
    let session = try HTTP2ServerSession.begun()
    let delayed = try #require(try session.requests(Frame.request(1)).first)
    let bytes = Frame.request(3) + Frame.request(5, endStream: false) + Frame.request(7)
    try bytes.withUnsafeBytes { try session.receive($0) }
    guard case .request(let rejected)? = session.nextEvent() else {
      Issue.record("the request is not handed out")
      return
    }
    #expect(rejected.id == 3)
    #expect(session.refuseStreams(except: rejected).map(\.id) == [delayed.id])
    session.respond(to: rejected, headers: HeaderList([(":status", "400")]))
    // A complete request that was not delivered yet is refused as well.
    guard case .reset(let waiting, .refusedStream)? = session.nextEvent() else {
      Issue.record("the waiting request is not refused")
      return
    }
    #expect(waiting.id == 7 && waiting.isRefused)
    let frames = session.drained()
    #expect(Set(frames.filter { $0.type == 3 && $0.number(at: 0) == 7 }.map(\.stream)) == [1, 5, 7])
    #expect(frames.contains { $0.type == 1 && $0.stream == 3 })
    guard case .reset(let partial, .refusedStream)? = session.nextEvent() else {
      Issue.record("the partial request is not refused")
      return
    }
    #expect(partial.id == 5)
    #expect(session.openStreamCount == 0)
    #expect(try session.feed(Frame.data(5, count: 2) + Frame.data(5, count: 2, endStream: true)).isEmpty)
    let late = session.drained().filter { $0.type == 3 }
    #expect(late.map(\.stream) == [5] && late.first?.number(at: 0) == 5)
    #expect(try session.requests(Frame.request(9)).map(\.id) == [9])
  }

  /// nghttp2 does not report DATA on a closed stream, so the session finds it in the bytes; frame headers arrive
  /// whole or in pieces.
  @Test(arguments: 1...40)
  func dataOnAClosedStreamInPieces(size: Int) throws {
    let session = try answered(1)
    let unknown = Frame.bytes(type: 0xBE, stream: 1, payload: [1, 2, 3, 4, 5])
    let good =
      unknown + Frame.request(3, endStream: false) + unknown + Frame.data(3, count: 20, endStream: true)
      + Frame.bytes(type: 6, payload: [0, 0, 0, 0, 0, 0, 0, 0])
    #expect(try session.requests(good, inPiecesOf: size).map(\.id) == [3])
    #expect(goAway(of: session) == nil)
    #expect(try session.requests(unknown + Frame.data(1, count: 3) + unknown, inPiecesOf: size).isEmpty)
    #expect(goAway(of: session) == 5)
  }

  /// About a hundred valid frames, some of unknown types, in pieces of any size: none is mistaken for DATA on a
  /// closed stream, and real DATA on a closed stream is detected.
  @Test(arguments: 1...200 as ClosedRange<UInt64>)
  func anyFramesInAnyPieces(seed: UInt64) throws {
    var random = SplitMix(state: seed)
    let session = try answered(1)
    var bytes: [UInt8] = []
    var ids: [Int32] = []
    for id in stride(from: Int32(3), to: 103, by: 2) {
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        let size = Int.random(in: 0..<200, using: &random)
        bytes += Frame.bytes(type: 0xBE, flags: 1, stream: id, payload: [UInt8](repeating: 0, count: size))
      case 1:
        bytes += Frame.request(id)
        ids.append(id)
      case 2:
        let size = Int.random(in: 0..<200, using: &random)
        bytes += Frame.request(id, endStream: false) + Frame.data(id, count: size, endStream: true)
        ids.append(id)
      default: bytes += Frame.request(id, endStream: false) + Frame.data(id, count: 20) + Frame.rst(id)
      }
    }
    for isWrong in [false, true] {
      if isWrong { bytes = Frame.bytes(type: 0xBE) + Frame.data(1, count: 1) }
      var served: [Int32] = []
      while !bytes.isEmpty {
        let size = Int.random(in: 1...300, using: &random)
        served += try session.requests(Array(bytes.prefix(size))).map(\.id)
        bytes = Array(bytes.dropFirst(size))
      }
      #expect(served == (isWrong ? [] : ids))
      #expect(goAway(of: session) == (isWrong ? 5 : nil))
    }
  }

  /// Valid and invalid frames in any order, whole or in pieces: the connection ends if the client sends more on a
  /// stream that it has ended. If nghttp2 resets the stream first, the connection may end or not.
  @Test(arguments: 1...300 as ClosedRange<UInt64>, [false, true])
  func wrongFramesInAnyPieces(seed: UInt64, isCut: Bool) throws {
    var random = SplitMix(state: seed)
    let session = try answered(1)
    let ids = Array(stride(from: Int32(3), to: 23, by: 2))
    var bytes = ids.flatMap { Frame.request($0, endStream: false) }
    var (ended, reset): (Set<Int32>, Set<Int32>) = ([1], [])
    var (mayEnd, mustEnd) = (false, false)
    for _ in 0..<Int.random(in: 2...8, using: &random) {
      let id = Int.random(in: 0..<20, using: &random) == 0 ? 1 : ids.randomElement(using: &random) ?? 1
      let kind = Int.random(in: 0..<6, using: &random)
      if (1...4).contains(kind), ended.contains(id) {
        mayEnd = true
        if !reset.contains(id) { mustEnd = true }
      }
      switch kind {
      case 0: bytes += Frame.bytes(type: 0xBE, flags: 1, stream: id, payload: [1, 2, 3])
      case 1, 2, 3:
        let endStream = Bool.random(using: &random)
        bytes += Frame.data(id, count: Int.random(in: 0..<30, using: &random), endStream: endStream)
        if endStream { ended.insert(id) }
      case 4:
        // A second header block with pseudo-header fields is not a valid trailer section.
        bytes += Frame.request(id)
        reset.insert(id)
        ended.insert(id)
      default:
        bytes += Frame.rst(id)
        ended.insert(id)
      }
    }
    while !bytes.isEmpty {
      let size = isCut ? Int.random(in: 1...40, using: &random) : bytes.count
      _ = try session.feed(Array(bytes.prefix(size)))
      bytes = Array(bytes.dropFirst(size))
    }
    let code = goAway(of: session)
    #expect(code == nil ? !mustEnd : mayEnd && code == 5)
  }

  @Test func requestsAfterInvalidDataCountInGoAway() throws {
    let session = try answered(1)
    #expect(try session.requests(Frame.data(1, count: 2) + Frame.request(3)).map(\.id) == [3])
    let goAway = try #require(session.drained().first { $0.type == 7 })
    #expect((goAway.number(at: 0), goAway.number(at: 4)) == (3, 5))
  }

  /// A response that is complete before its request: the client's END_STREAM closes the stream and does not count as
  /// DATA on a closed stream, even when the bytes are scanned because of another frame.
  @Test func endOfARequestAfterItsResponse() throws {
    let session = try HTTP2ServerSession.begun()
    #expect(try session.requests(Frame.request(1, endStream: false)).isEmpty)
    let stream = try #require(session.stream(withID: 1))
    session.respond(to: stream, headers: HeaderList([(":status", "200")]))
    var bytes: [UInt8] = []
    // Everything except the RST_STREAM that follows the response.
    #expect(!session.appendOutput(to: &bytes, upTo: 1))
    let unknown = Frame.bytes(type: 0xBE)
    _ = try session.feed(unknown + Frame.data(1, count: 2, endStream: true))
    #expect(goAway(of: session) == nil)
  }

  @Test func framesOnARefusedStreamAreIgnored() throws {
    let session = try HTTP2ServerSession(maxConcurrentStreams: 1000)
    _ = try session.feed(Frame.preface + Frame.settings)
    let last = 2 * Int32(HTTP2Limits.hardStreamLimit) + 1
    for id in stride(from: Int32(1), to: last, by: 2) { _ = try session.feed(Frame.request(id, endStream: false)) }
    _ = session.drained()
    #expect(try session.feed(Frame.request(last, endStream: false) + Frame.data(last, count: 2)).isEmpty)
    #expect(session.drained().map(\.type) == [3])
    #expect(try session.feed(Frame.data(last, count: 2)).isEmpty)
    #expect(session.drained().isEmpty)
  }

  @Test func framesInTransitToAResetStreamAreIgnored() throws {
    let session = try HTTP2ServerSession.begun()
    let stream = try #require(try session.requests(Frame.request(1)).first)
    session.reset(stream, code: .internalError)
    #expect(session.drained().map(\.type) == [3])
    #expect(try session.feed(Frame.data(1, count: 2) + Frame.request(1)).isEmpty)
    #expect(goAway(of: session) == nil)
    #expect(try session.requests(Frame.request(3)).count == 1)
  }

  @Test func framesAreIgnoredAfterDiscardedResets() throws {
    let session = try answered(1, 3)
    for id in stride(from: Int32(5), through: 133, by: 2) {
      let stream = try #require(try session.requests(Frame.request(id)).first)
      session.reset(stream, code: .internalError)
      #expect(session.drained().map(\.type) == [3])
    }
    // The session no longer remembers the reset of stream 5, so it cannot distinguish the closed streams 1 and 3 from
    // it.
    for id: Int32 in [1, 3, 5, 7, 133] {
      #expect(try session.feed(Frame.request(id) + Frame.data(id, count: 2)).isEmpty)
      #expect(goAway(of: session) == nil)
    }
    for stream in try session.requests(Frame.request(135)) {
      session.respond(to: stream, headers: HeaderList([(":status", "200")]))
    }
    #expect(session.drained().map(\.stream) == [135])
    #expect(try session.feed(Frame.data(135, count: 2)).isEmpty)
    #expect(goAway(of: session) == 5)
  }

  @Test func newStreamsAfterGoAwayAreIgnored() throws {
    let session = try HTTP2ServerSession.begun()
    #expect(try session.requests(Frame.request(1, endStream: false)).isEmpty)
    session.submitGoAway(code: .noError)
    #expect(goAway(of: session) == 0)
    #expect(try session.feed(Frame.request(5, endStream: false) + Frame.data(5, count: 2) + Frame.request(3)).isEmpty)
    #expect(goAway(of: session) == nil)
  }

  @Test func oversizedContinuationIsAFrameSizeError() throws {
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
