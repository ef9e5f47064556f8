import APNSMockHTTPMessage
import Testing

@testable import APNSMockHTTP2Session

/// The pool of stream objects that sessions share.
@Suite struct RequestStreamPoolTests {
  private let accepted = HeaderList([(":status", "200")])

  /// Opens `count` streams at once, responds on them and lets them close.
  private func serve(_ count: Int32, with pool: RequestStreamPool) throws {
    let session = try HTTP2ServerSession.begun(pool: pool)
    let bytes = (0..<count).flatMap { Frame.request(2 * $0 + 1) }
    for stream in try session.requests(bytes) { session.respond(to: stream, headers: accepted) }
    _ = session.drained()
    #expect(session.openStreamCount == 0)
  }

  @Test func poolIsBounded() throws {
    let pool = RequestStreamPool()
    try serve(3, with: pool)
    #expect(pool.count == 3)
    try serve(Int32(RequestStreamPool.limit) + 10, with: pool)
    #expect(pool.count == RequestStreamPool.limit)
  }

  @Test func reusedStreamIsReset() throws {
    let pool = RequestStreamPool()
    let first = try HTTP2ServerSession.begun(pool: pool)
    let used = try #require(try first.requests(Frame.request(1)).first)
    let fields = used.request.headers.count
    first.respond(to: used, headers: accepted, body: [1, 2, 3])
    _ = first.drained()
    let second = try HTTP2ServerSession.begun(pool: pool)
    let again = try #require(try second.requests(Frame.request(5)).first)
    #expect(again === used)
    #expect(again.id == 5 && again.request.stream == 5)
    #expect(again.request.headers.count == fields && again.request.body.isEmpty && again.request.bodySize == 0)
    #expect(!again.isEndedByServer)
    #expect(first.stream(withID: 1) == nil)
    #expect(pool.count == 0)
  }

  /// A stream that is open when its connection ends is freed and does not return to the pool.
  @Test func endedSessionReleasesItsStreams() throws {
    let pool = RequestStreamPool()
    weak var open: RequestStream?
    do {
      let session = try HTTP2ServerSession.begun(pool: pool)
      open = try session.requests(Frame.request(1)).first
      #expect(open != nil)
    }
    #expect(open == nil)
    #expect(pool.count == 0)
  }

  @Test func movedRequestIsComplete() throws {
    let session = try HTTP2ServerSession.begun()
    let stream = try #require(try session.requests(Frame.request(1)).first)
    let whole = stream.request
    let taken = stream.takeRequest()
    #expect(taken == whole)
    #expect(stream.request == HTTPRequest())
    stream.putBack(taken)
    #expect(stream.request == whole)
  }
}
