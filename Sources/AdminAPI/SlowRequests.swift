internal import Hummingbird
internal import NIOCore
internal import NIOHTTPTypes

/// Closes a connection whose client takes too long: for its first request, or for the body of any, however often it sends a
/// little of it. How long later heads may take is the listener's idle time-out, which no piece of a head puts off.
final class SlowRequests: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// For the first request. Silent connections would shut out those that have something to ask.
  private static let beginning = TimeAmount.seconds(10)
  /// For the rest of a body when its request was answered without it: so that the client reads the answer, but does not send
  /// for ever what nobody wants.
  private static let afterAnswer = TimeAmount.seconds(1)

  private let patience: TimeAmount
  private var deadline: Scheduled<Void>?
  private var isReceiving = false
  /// Requests that began, less answers that ended.
  private var unanswered = 0

  init(patience: TimeAmount) { self.patience = patience }

  func channelActive(context: ChannelHandlerContext) {
    expect(in: min(patience, Self.beginning), context)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head:
      unanswered += 1
      isReceiving = true
      expect(in: patience, context)
    case .body: break
    case .end:
      isReceiving = false
      forget()
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .end = unwrapOutboundIn(data) {
      unanswered -= 1
      if isReceiving, unanswered == 0 { expect(in: Self.afterAnswer, context) }
    }
    context.write(data, promise: promise)
  }

  func channelInactive(context: ChannelHandlerContext) {
    forget()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { forget() }

  private func expect(in time: TimeAmount, _ context: ChannelHandlerContext) {
    forget()
    let channel = context.channel
    deadline = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
  }

  private func forget() {
    deadline?.cancel()
    deadline = nil
  }
}
