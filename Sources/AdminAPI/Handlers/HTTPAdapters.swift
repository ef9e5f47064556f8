internal import Hummingbird
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes
internal import NIOHTTPTypesHTTP1
internal import APNSMockNotation

/// Sets the Host field of a request with an absolute-form target (`GET http://name/path`) to the target's authority,
/// as RFC 9112 section 3.2.2 requires.
///
/// Otherwise the check of the Host field would use a different name than the one the client requested: the next
/// codec drops the target's authority.
final class AbsoluteTargetHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .head(var head) = unwrapInboundIn(data), let authority = Self.authority(of: head.uri) else {
      return context.fireChannelRead(data)
    }
    head.headers.replaceOrAdd(name: "host", value: authority)
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }

  /// Returns the authority of a target in absolute form; nil for a path.
  private static func authority(of target: String) -> String? {
    guard !target.hasPrefix("/"), let scheme = target.firstRange(of: "://") else { return nil }
    return String(target[scheme.upperBound...].prefix { !"/?#".contains($0) })
  }

  /// Inserts the handler before the HTTP codec, a position that the web framework's list of handlers cannot express.
  final class Installer: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart

    func handlerAdded(context: ChannelHandlerContext) {
      do {
        let pipeline = context.pipeline.syncOperations
        let codec = try pipeline.handler(type: HTTP1ToHTTPServerCodec.self)
        try pipeline.addHandler(AbsoluteTargetHandler(), position: .before(codec))
      } catch {
        // Do not serve a connection whose requests cannot be checked.
        context.close(promise: nil)
      }
    }
  }
}

/// Removes the last chunk from responses to HEAD, which have no body.
///
/// A streamed response has no length, so the response to HEAD has `transfer-encoding: chunked`, as that to GET does.
/// The HTTP encoder would then write the last chunk, which the client would interpret as the beginning of the next
/// response.
final class HeadResponseHandler: ChannelOutboundHandler, RemovableChannelHandler {
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  private var dropsLastChunk = false

  /// Returns the response to HEAD that corresponds to `response` to GET.
  static func headResponse(for response: Response) -> Response {
    let isStreamed = response.body.contentLength == nil
    var headResponse = response.createHeadResponse()
    if isStreamed {
      headResponse.headers[.contentLength] = nil
      headResponse.headers[.transferEncoding] = "chunked"
    }
    return headResponse
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    // Only responses of `headResponse(for:)` have this field here; for all others the encoder adds it.
    case .head(let head): dropsLastChunk = head.headerFields[.transferEncoding] != nil
    case .body: break
    case .end where dropsLastChunk:
      dropsLastChunk = false
      promise?.succeed()
      return
    case .end: break
    }
    context.write(data, promise: promise)
  }
}

/// Adds a problem document to the bare 400 that the web framework sends for a malformed request.
final class MalformedRequestHandler: ChannelOutboundHandler, RemovableChannelHandler {
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
    for field in AdminMiddleware.fields { fields[field.name] = field.value }
    fields[.contentType] = Problem.type
    fields[.contentLength] = String(writer.bytes.count)
    context.write(
      wrapOutboundOut(.head(HTTPResponse(status: head.status, headerFields: fields))), promise: nil)
    context.write(wrapOutboundOut(.body(ByteBuffer(bytes: writer.bytes))), promise: promise)
  }
}

extension HTTPFields {
  /// Whether the client accepts the gzip format (RFC 9110, section 12.5.3).
  var acceptGzip: Bool {
    (self[.acceptEncoding] ?? "").split(separator: ",").contains { coding in
      let parts = coding.split(separator: ";").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
      guard parts.first == "gzip" else { return false }
      return !parts.dropFirst().contains { $0.hasPrefix("q=") && (Double($0.dropFirst(2)) ?? 0) == 0 }
    }
  }
}
