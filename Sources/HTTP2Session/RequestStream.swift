public import HTTPMessage

/// One stream of a server session, from its HEADERS to its close.
///
/// The session owns it and uses it again for a later stream once this one is closed: whoever gets it from an event reads
/// it then and keeps nothing of it. Not Sendable; it lives where its session lives.
public final class RequestStream {
  /// The request as far as it has come.
  public internal(set) var request = HTTPRequest()

  /// The client has ended its side of the stream.
  public internal(set) var isComplete = false

  /// An answer was submitted, so nothing more is owed to this stream.
  public internal(set) var isAnswered = false

  /// It was handed out as an event and must not be handed out again.
  var isReported = false

  /// Where it stands among its session's open streams.
  var index = 0

  /// What is left to send of the answer's body.
  var responseBody: [UInt8] = []
  var responseSent = 0

  func reset(stream: Int32) {
    request.reset()
    request.stream = stream
    isComplete = false
    isAnswered = false
    isReported = false
    responseBody = []
    responseSent = 0
  }

  /// Gives nghttp2 the next bytes of the answer's body.
  func copyResponseBody(to buffer: UnsafeMutableBufferPointer<UInt8>) -> (count: Int, isLast: Bool) {
    let count = min(buffer.count, responseBody.count - responseSent)
    _ = buffer.update(fromContentsOf: responseBody[responseSent..<responseSent + count])
    responseSent += count
    return (count, responseSent == responseBody.count)
  }
}
