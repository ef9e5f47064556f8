public import HTTPMessage

/// One stream of a server session, from its HEADERS until it is closed.
///
/// Exclusivity is not checked at run time: only the session's callbacks and the handler of its events access the
/// properties, one after the other on one thread, and the checks would cost a twentieth of a push's time.
///
/// The session owns the object and reuses it for a later stream, of any session with the same `RequestStreamPool`,
/// once the stream is answered and closed. A handler that receives it in an event must read it at once and keep
/// only the stream identifier; `HTTP2ServerSession.stream(withID:)` returns the object while the stream is open.
/// Not Sendable: it is confined to its session's event loop.
public final class RequestStream {
  /// The stream identifier.
  public var id: Int32 { number }
  // Separate from `id`, because reads from other modules would be checked.
  @exclusivity(unchecked) private var number: Int32 = 0

  /// The request as received so far.
  @exclusivity(unchecked) public internal(set) var request = HTTPRequest()

  /// Whether the client has ended its side of the stream.
  @exclusivity(unchecked) public internal(set) var isComplete = false

  /// Whether a response or RST_STREAM was submitted.
  @exclusivity(unchecked) public internal(set) var isAnswered = false

  /// Whether the stream was reset because its request was not completed, or its response not accepted, in time.
  @exclusivity(unchecked) public internal(set) var isOverdue = false

  /// Whether the server refused the stream because it reduced the stream limit.
  @exclusivity(unchecked) public internal(set) var isRefused = false

  /// The violation of HTTP/2 for which the stream was reset.
  @exclusivity(unchecked) public internal(set) var breach: MessageBreach?

  /// Whether the stream was reported as an event and must not be reported again.
  @exclusivity(unchecked) public internal(set) var isReported = false

  /// The error code of the RST_STREAM that was sent on this stream.
  @exclusivity(unchecked) var resetSent: HTTP2ErrorCode?

  /// The validation of the request.
  @exclusivity(unchecked) var check = MessageCheck()

  /// Whether the header block is complete.
  @exclusivity(unchecked) var hasHeaders = false

  /// The number of `endOverdueStreams` calls at which the client owed something on this stream.
  @exclusivity(unchecked) var looks: UInt8 = 0

  /// The index in the session's `open`.
  @exclusivity(unchecked) var index = 0

  /// The response's body, if it has one.
  @exclusivity(unchecked) var answer: AnswerBody?

  /// Body bytes withheld from the stream's flow-control window.
  @exclusivity(unchecked) var heldBack = 0

  /// Moves the request out for processing, which avoids retaining its buffers. Call `putBack` afterwards.
  public func takeRequest() -> HTTPRequest {
    var taken = HTTPRequest()
    swap(&taken, &request)
    return taken
  }

  /// Returns a request that `takeRequest` moved out.
  public func putBack(_ taken: consuming HTTPRequest) { request = taken }

  func reset(stream: Int32) {
    number = stream
    request.reset()
    request.stream = stream
    isComplete = false
    isAnswered = false
    isReported = false
    isOverdue = false
    isRefused = false
    breach = nil
    check = MessageCheck()
    hasHeaders = false
    looks = 0
    resetSent = nil
    answer = nil
    heldBack = 0
  }
}
