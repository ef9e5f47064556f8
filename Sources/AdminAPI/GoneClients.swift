internal import NIOCore
internal import NIOHTTPTypes

/// Closes a connection whose client has closed its side, after a moment for an answer that is under way. The web framework
/// leaves such a connection half open, so that nobody would hear that a client which waits has gone.
final class GoneClients: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart

  /// For clients that close their side as soon as they have sent their request.
  private static let patience = TimeAmount.milliseconds(500)

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .inputClosed? = event as? ChannelEvent {
      let channel = context.channel
      context.eventLoop.scheduleTask(in: Self.patience) { channel.close(promise: nil) }
    }
    context.fireUserInboundEventTriggered(event)
  }
}
