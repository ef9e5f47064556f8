internal import Hummingbird
internal import NIOCore
internal import NIOHTTPTypes

/// Removes the last chunk from responses to HEAD, which have no body.
///
/// A streamed response has no length, so the response to HEAD has `transfer-encoding: chunked`, as that to GET does.
/// The HTTP encoder would then write the last chunk, which the client would interpret as the beginning of the next
/// response.
final class HeadAnswers: ChannelOutboundHandler, RemovableChannelHandler {
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private var isEndKept = false

  /// Returns the response to HEAD that corresponds to `response` to GET.
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
    // Only responses of `answer(for:)` have this field here; for all others the encoder adds it.
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
