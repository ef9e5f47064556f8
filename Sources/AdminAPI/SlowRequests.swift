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

  private let connections: AdminConnections

  init(patience: TimeAmount, connections: AdminConnections) {
    self.patience = patience
    self.connections = connections
  }

  func channelActive(context: ChannelHandlerContext) {
    expect(in: min(patience, Self.beginning), context)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head:
      if isIdle { connections.removeIdle(context.channel) }
      unanswered += 1
      isReceiving = true
      expect(in: patience, context)
    case .body: break
    case .end:
      isReceiving = false
      forget()
      if isIdle { connections.addIdle(context.channel) }
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .end = unwrapOutboundIn(data) {
      unanswered -= 1
      if isReceiving, unanswered == 0 { expect(in: Self.afterAnswer, context) }
    }
    guard isIdle, case .end = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
    // Idle only once the response has left: closing the connection earlier would lose it.
    let isWritten = promise ?? context.eventLoop.makePromise()
    let channel = context.channel
    isWritten.futureResult.assumeIsolated().whenSuccess { [self] in
      if isIdle { connections.addIdle(channel) }
    }
    context.write(data, promise: isWritten)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard event is AdminConnections.CloseIfIdle else { return context.fireUserInboundEventTriggered(event) }
    if isIdle { context.close(promise: nil) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    forget()
    connections.removeIdle(context.channel)
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    forget()
    connections.removeIdle(context.channel)
  }

  private var isIdle: Bool { unanswered == 0 && !isReceiving }

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
