internal import NIOCore
internal import NIOHTTPTypes

/// Closes a connection whose client is too slow to send a request, even if it keeps sending small pieces, and one that is
/// idle for too long.
final class RequestTimeoutHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// The time limit for the first request. Silent connections would otherwise exclude other clients.
  private static let firstRequestTimeout = TimeAmount.seconds(10)
  /// The time limit for the rest of a body after the response was written: enough for the client to read the
  /// response, without accepting unused data for ever.
  private static let unusedBodyTimeout = TimeAmount.seconds(1)

  private let timeout: TimeAmount
  private var closeTask: Scheduled<Void>?
  private var isReceiving = false
  /// The number of requests whose response is not complete.
  private var pendingResponses = 0

  private let connections: AdminConnections
  private let isRegular: Bool

  /// - Parameter isRegular: Whether the connection is not one of the reserve.
  init(timeout: TimeAmount, connections: AdminConnections, isRegular: Bool) {
    self.timeout = timeout
    self.connections = connections
    self.isRegular = isRegular
  }

  func channelActive(context: ChannelHandlerContext) {
    scheduleClose(in: min(timeout, Self.firstRequestTimeout), context)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head:
      if isIdle { connections.removeIdle(context.channel) }
      pendingResponses += 1
      isReceiving = true
      scheduleClose(in: timeout, context)
    case .body: break
    case .end:
      isReceiving = false
      cancelClose()
      if isIdle { becomeIdle(context) }
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .end = unwrapOutboundIn(data) {
      pendingResponses -= 1
      if isReceiving, pendingResponses == 0 { scheduleClose(in: Self.unusedBodyTimeout, context) }
    }
    guard isIdle, case .end = unwrapOutboundIn(data) else { return context.write(data, promise: promise) }
    // The connection is idle only after the response was written: closing it earlier would lose the response.
    let isWritten = promise ?? context.eventLoop.makePromise()
    isWritten.futureResult.assumeIsolated().whenSuccess { [self] in
      if isIdle, context.channel.isActive { becomeIdle(context) }
    }
    context.write(data, promise: isWritten)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard event is AdminConnections.CloseIfIdle else { return context.fireUserInboundEventTriggered(event) }
    if isIdle { context.close(promise: nil) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    cancelClose()
    connections.removeIdle(context.channel)
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    cancelClose()
    connections.removeIdle(context.channel)
  }

  private func becomeIdle(_ context: ChannelHandlerContext) {
    scheduleClose(in: timeout, context)
    // Last, because it may close the connection.
    connections.addIdle(context.channel, isRegular: isRegular)
  }

  private var isIdle: Bool { pendingResponses == 0 && !isReceiving }

  private func scheduleClose(in time: TimeAmount, _ context: ChannelHandlerContext) {
    cancelClose()
    let channel = context.channel
    closeTask = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
  }

  private func cancelClose() {
    closeTask?.cancel()
    closeTask = nil
  }
}
