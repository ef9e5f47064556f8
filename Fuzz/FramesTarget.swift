import APNSMockHTTP2Session
import APNSMockHTTPMessage

/// Fuzzes an HTTP/2 session with received bytes, in pieces of any size, and all kinds of responses.
///
/// The first byte configures the session and whether the connection preface is prepended; the second one seeds the
/// sizes of the pieces and the choice of responses.
struct FramesTarget: FuzzTarget {
  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]

  init() {}

  func run(_ bytes: UnsafeRawBufferPointer) {
    var input = Input(bytes)
    let mode = input.byte()
    var choices = ChoiceGenerator(input.byte())
    guard let session = try? HTTP2ServerSession(maxConcurrentStreams: mode & 2 == 0 ? 100 : 1) else { return }
    var conversation = Conversation(session: session)
    if mode & 4 != 0 { session.acknowledgesSettings = false }
    if mode & 8 != 0 { session.acknowledgesPings = false }
    if mode & 16 != 0 { session.withholdsWindow = true }
    if mode & 1 == 0, !Self.preface.withUnsafeBytes({ conversation.receive($0, &choices) }) { return }
    while !input.isAtEnd {
      let size = mode & 32 == 0 ? 1 + choices.next(below: 64) : Int.max
      guard conversation.receive(input.piece(size), &choices) else { return }
      if choices.next(below: 8) == 0, (try? session.endOverdueStreams()) == nil { return }
    }
    session.withholdsWindow = false
    conversation.end()
  }
}

/// A session and its simulated server.
private struct Conversation {
  let session: HTTP2ServerSession
  private var output: [UInt8] = []
  /// Stream identifiers, because the objects of closed streams are reused.
  private var held: [Int32] = []
  private static let headers = HeaderList([(":status", "200"), ("apns-id", "9D3220FE-444B-633E-D1F1-5D0DCB4F537A")])
  private static let body = Array(#"{"reason":"BadDeviceToken"}"#.utf8)

  init(session: HTTP2ServerSession) { self.session = session }

  /// Processes bytes; returns whether the session continues.
  mutating func receive(_ bytes: UnsafeRawBufferPointer, _ choices: inout ChoiceGenerator) -> Bool {
    do {
      try session.receive(bytes)
    } catch {
      return false
    }
    while let event = session.nextEvent() {
      switch event {
      case .request(let stream): respond(to: stream, &choices)
      case .aborted(let stream), .reset(let stream, _): inspect(stream.request)
      case .cancelled(let stream), .responseDropped(let stream): held.removeAll { $0 == stream.id }
      case .excessStreams: session.submitGoAway(code: .refusedStream)
      case .responseSent, .goAway: break
      }
    }
    if let first = held.first, !release(first) { held.removeFirst() }
    session.appendOutput(to: &output)
    expect(output.count < 64 << 20, "a session wrote \(output.count) bytes")
    return !session.isFinished
  }

  private mutating func respond(to stream: RequestStream, _ choices: inout ChoiceGenerator) {
    let request = stream.takeRequest()
    inspect(request)
    switch choices.next(below: 10) {
    case 0: session.respond(to: stream, headers: Self.headers, body: Self.body)
    case 1: session.respond(to: stream, headers: Self.headers, parts: [Self.body, [], Self.body])
    case 2:
      session.respond(to: stream, headers: Self.headers, parts: [Self.body, Self.body], waitsForRelease: true)
      held.append(stream.id)
    case 3: session.reset(stream, rawCode: 7)
    case 4: session.reset(stream, code: .cancel)
    case 5: session.announce(maxConcurrentStreams: UInt32(choices.next(below: 3)))
    case 6: session.sendUntrackedGoAway(lastStream: stream.id, rawCode: 0, debugData: Self.body)
    case 7: session.announceShutdown()
    default: session.respond(to: stream, headers: Self.headers)
    }
    stream.putBack(request)
  }

  private func release(_ id: Int32) -> Bool { session.stream(withID: id).map { session.releasePart(of: $0) } ?? false }

  private func inspect(_ request: HTTPRequest) {
    expect(request.body.count <= HTTPRequest.bodyLimit, "a body of \(request.body.count) bytes was stored")
    request.headers.forEachField { name, value in
      _ = request.headers.string(name) + request.headers.string(value)
    }
  }

  mutating func end() {
    for stream in session.unansweredStreams { session.reset(stream, code: .cancel) }
    while let first = held.popLast() { while release(first) {} }
    session.appendOutput(to: &output)
    _ = session.hasPendingWork
  }
}
