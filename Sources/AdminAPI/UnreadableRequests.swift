internal import Hummingbird
internal import NIOCore
internal import NIOHTTPTypes
internal import Notation

/// Adds a problem document to the bare 400 that the web framework sends for a malformed request.
final class UnreadableRequests: ChannelOutboundHandler, RemovableChannelHandler {
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private static let problem = Problem.badRequest(
    "not a valid HTTP/1.1 request, or the head exceeds \(Limits.head) bytes or a field \(Limits.field) bytes",
    hint: "Send one host, one content-length or chunks, short header fields, and no control characters.")

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    // Every other response has a content type, or no body and a status other than 400.
    guard case .head(let head) = unwrapOutboundIn(data), head.status == .badRequest,
      head.headerFields[.contentType] == nil
    else { return context.write(data, promise: promise) }
    var writer = JSONWriter()
    Self.problem.write(to: &writer)
    var fields = head.headerFields
    for field in Surroundings.fields { fields[field.name] = field.value }
    fields[.contentType] = Problem.type
    fields[.contentLength] = String(writer.bytes.count)
    context.write(
      wrapOutboundOut(.head(HTTPResponse(status: head.status, headerFields: fields))), promise: nil)
    context.write(wrapOutboundOut(.body(ByteBuffer(bytes: writer.bytes))), promise: promise)
  }
}
