internal import NIOCore
internal import NIOHTTPTypes

/// Cancels the work of a request when its client disconnects.
///
/// The web framework's own mechanism is not used: it terminates the process if the body of a request is not being
/// read at that time.
enum DisconnectCancellation {
  /// The connection of the current request.
  @TaskLocal static var channel: (any Channel)?

  /// A callback for the disconnection of a client, registered with `HalfCloseHandler` until `end` is called.
  final class Observer: Sendable {
    private let channel: any Channel
    /// The callback; called at most once, on any thread.
    let onDisconnect: @Sendable () -> Void

    fileprivate init(_ channel: any Channel, _ onDisconnect: @escaping @Sendable () -> Void) {
      self.channel = channel
      self.onDisconnect = onDisconnect
    }

    /// Removes the registration, so that a connection only holds the callbacks of active requests.
    func end() { channel.triggerUserOutboundEvent(HalfCloseHandler.Registration.remove(self), promise: nil) }
  }

  /// Registers a callback for the disconnection of a client.
  ///
  /// - Returns: The registration, which the caller must end.
  static func observe(_ channel: any Channel, _ onDisconnect: @escaping @Sendable () -> Void) -> Observer {
    let observer = Observer(channel, onDisconnect)
    let isRegistered = channel.eventLoop.makePromise(of: Void.self)
    // The connection is closed already.
    isRegistered.futureResult.whenFailure { _ in onDisconnect() }
    channel.triggerUserOutboundEvent(HalfCloseHandler.Registration.add(observer), promise: isRegistered)
    return observer
  }

  /// Runs `work`, and cancels it when the client of the current request closes the connection.
  static func run<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let task = Task { try await work() }
    let observer = channel.map { observe($0) { task.cancel() } }
    defer { observer?.end() }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }
}

/// Closes a connection after its client has closed its side, with a delay for a pending response, and calls the
/// connection's `DisconnectCancellation.Observer`s when it is closed. The web framework leaves such a connection half
/// open.
final class HalfCloseHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  /// An outbound event that adds or removes an observer.
  enum Registration: Sendable {
    case add(DisconnectCancellation.Observer)
    case remove(DisconnectCancellation.Observer)
  }

  /// The delay, for clients that close their side as soon as they have sent their request.
  static let closeDelay = TimeAmount.milliseconds(500)

  private var observers: [ObjectIdentifier: DisconnectCancellation.Observer] = [:]

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case .inputClosed? = event as? ChannelEvent {
      let channel = context.channel
      context.eventLoop.scheduleTask(in: Self.closeDelay) { channel.close(promise: nil) }
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
