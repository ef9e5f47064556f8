internal import Hummingbird
internal import NIOCore
internal import NIOHTTPTypes

/// Keeps the end of a chunked body from answers to HEAD, which have none.
///
/// What a GET would stream has no length, and so the answer to HEAD has none: it says `transfer-encoding: chunked` as
/// the other does. The encoder below would then write the last chunk, which the client took for its next answer.
final class HeadAnswers: ChannelOutboundHandler, RemovableChannelHandler {
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private var isEndKept = false

  /// The answer to HEAD where GET gets `response`.
  static func answer(for response: Response) -> Response {
    let isStreamed = response.body.contentLength == nil
    var answer = response.createHeadResponse()
    if isStreamed {
      answer.headers[.contentLength] = nil
      answer.headers[.transferEncoding] = "chunked"
    }
    return answer
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    // Only the answer above says so; for all others the encoder does.
    case .head(let head): isEndKept = head.headerFields[.transferEncoding] != nil
    case .body: break
    case .end where isEndKept:
      isEndKept = false
      promise?.succeed()
      return
    case .end: break
    }
    context.write(data, promise: promise)
  }
}
