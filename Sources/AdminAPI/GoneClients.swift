internal import NIOCore
internal import NIOHTTPTypes

/// Closes a connection after its client has closed its side, with a delay for a pending response, and calls the
/// connection's `Departure.Observer`s when it is closed. The web framework leaves such a connection half open.
final class GoneClients: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// An outbound event that adds or removes an observer.
  enum Registration: Sendable {
    case add(Departure.Observer)
    case remove(Departure.Observer)
  }

  /// The delay, for clients that close their side as soon as they have sent their request.
  private static let patience = TimeAmount.milliseconds(500)

  private var observers: [ObjectIdentifier: Departure.Observer] = [:]

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .inputClosed? = event as? ChannelEvent {
      let channel = context.channel
      context.eventLoop.scheduleTask(in: Self.patience) { channel.close(promise: nil) }
    }
    context.fireUserInboundEventTriggered(event)
  }

  func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
    switch event as? Registration {
    case .add(let observer)?:
      // Fails for an inactive channel, which does not become inactive again.
      guard context.channel.isActive else { promise?.fail(ChannelError.alreadyClosed); return }
      observers[ObjectIdentifier(observer)] = observer
      promise?.succeed()
    case .remove(let observer)?:
      observers[ObjectIdentifier(observer)] = nil
      promise?.succeed()
    case nil: context.triggerUserOutboundEvent(event, promise: promise)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    notifyObservers()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { notifyObservers() }

  private func notifyObservers() {
    let observers = observers.values
    self.observers = [:]
    for observer in observers { observer.onDisconnect() }
  }
}
