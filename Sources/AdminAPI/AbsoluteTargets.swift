internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes
internal import NIOHTTPTypesHTTP1

/// Sets the Host field of a request with an absolute-form target (`GET http://name/path`) to the target's authority,
/// as RFC 9112 section 3.2.2 requires.
///
/// Otherwise the check of the Host field would use a different name than the one the client requested: the next
/// codec drops the target's authority.
final class AbsoluteTargets: ChannelInboundHandler, RemovableChannelHandler {
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
        try pipeline.addHandler(AbsoluteTargets(), position: .before(codec))
      } catch {
        // Do not serve a connection whose requests cannot be checked.
        context.close(promise: nil)
      }
    }
  }
}
