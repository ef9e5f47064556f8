internal import Hummingbird
internal import NIOCore
internal import NIOHTTPTypes

/// Closes a connection whose client takes too long to send the body of a request, however often it sends a little of it.
/// How long the head may take is the listener's idle time-out, which no piece of a head puts off.
final class SlowRequests: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart

  private let patience: TimeAmount
  private var deadline: Scheduled<Void>?

  init(patience: TimeAmount) { self.patience = patience }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head:
      deadline?.cancel()
      let channel = context.channel
      deadline = context.eventLoop.scheduleTask(in: patience) { channel.close(promise: nil) }
    case .body: break
    case .end: forget()
    }
    context.fireChannelRead(data)
  }

  func channelInactive(context: ChannelHandlerContext) {
    forget()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { forget() }

  private func forget() {
    deadline?.cancel()
    deadline = nil
  }
}
