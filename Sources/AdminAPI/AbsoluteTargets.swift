internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTPTypes
internal import NIOHTTPTypesHTTP1

/// Gives a request whose target has the absolute form (`GET http://name/path`) the target's authority as its Host field, as
/// RFC 9112 section 3.2.2 demands.
///
/// Without it, the check of the Host field would judge another name than the one the client asked for: the codec behind this
/// handler drops the authority of a target.
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

  /// What is between `scheme://` and the path of a target; nil for a target that is a path.
  private static func authority(of target: String) -> String? {
    guard !target.hasPrefix("/"), let scheme = target.firstRange(of: "://") else { return nil }
    return String(target[scheme.upperBound...].prefix { !"/?#".contains($0) })
  }

  /// Adds the handler in front of the codec, which the web framework's own list of handlers begins behind.
  final class Installer: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart

    func handlerAdded(context: ChannelHandlerContext) {
      do {
        let pipeline = context.pipeline.syncOperations
        let codec = try pipeline.handler(type: HTTP1ToHTTPServerCodec.self)
        try pipeline.addHandler(AbsoluteTargets(), position: .before(codec))
      } catch {
        // A connection whose requests cannot be checked is not served.
        context.close(promise: nil)
      }
    }
  }
}
