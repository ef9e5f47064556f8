public import HTTPMessage

/// One stream of a server session, from its HEADERS to its close.
///
/// Its properties are not checked for overlapping access at run time: only its session's callbacks and the one who handles
/// its event touch it, one after the other on one thread, and the checks would be a twentieth of a push's cost.
///
/// The session owns it, and it is used again for a later stream, of any session with the same `RequestStreamPool`, once this
/// one is answered and closed: whoever gets it from an event reads it then and keeps nothing of it but the stream's number,
/// by which `HTTP2ServerSession.stream(withID:)` finds it as long as it is open. Not Sendable; it lives where its session lives.
public final class RequestStream {
  /// Its number.
  public var id: Int32 { number }
  // Apart from `id`, because other modules would be checked when they read it.
  @exclusivity(unchecked) private var number: Int32 = 0

  /// The request as far as it has come.
  @exclusivity(unchecked) public internal(set) var request = HTTPRequest()

  /// The client has ended its side of the stream.
  @exclusivity(unchecked) public internal(set) var isComplete = false

  /// An answer was submitted, so nothing more is owed to this stream.
  @exclusivity(unchecked) public internal(set) var isAnswered = false

  /// Its time is over: it was reset because its request did not come whole, or its answer was not taken.
  @exclusivity(unchecked) public internal(set) var isOverdue = false

  /// Whether the server refused it because it cut the stream limit.
  @exclusivity(unchecked) public internal(set) var isRefused = false

  /// What its request has that HTTP/2 forbids, so that it was reset.
  @exclusivity(unchecked) public internal(set) var breach: MessageBreach?

  /// It was handed out as an event and must not be handed out again.
  @exclusivity(unchecked) public internal(set) var isReported = false

  /// The code of a RST_STREAM that went out for it.
  @exclusivity(unchecked) var resetSent: HTTP2ErrorCode?

  /// What its request has to keep to.
  @exclusivity(unchecked) var check = MessageCheck()

  /// Its header block has come whole.
  @exclusivity(unchecked) var hasHeaders = false

  /// How many looks found that the client owes it something.
  @exclusivity(unchecked) var looks: UInt8 = 0

  /// Where it stands among its session's open streams.
  @exclusivity(unchecked) var index = 0

  /// The answer's body, while it has one.
  @exclusivity(unchecked) var answer: AnswerBody?

  /// Body bytes for which the window was not opened again.
  @exclusivity(unchecked) var heldBack = 0

  /// Takes the request out for the one who works on it, which spares him holding its buffers. `putBack` follows.
  public func takeRequest() -> HTTPRequest {
    var taken = HTTPRequest()
    swap(&taken, &request)
    return taken
  }

  /// Puts back what `takeRequest` took.
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
