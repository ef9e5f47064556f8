internal import NIOCore

/// Cancels the work of a request when its client disconnects.
///
/// The web framework's own mechanism is not used: it terminates the process if the body of a request is not being
/// read at that time.
enum Departure {
  /// The connection of the current request.
  @TaskLocal static var channel: (any Channel)?

  /// A callback for the disconnection of a client, registered with `GoneClients` until `end` is called.
  final class Observer: Sendable {
    private let channel: any Channel
    /// The callback; called at most once, on any thread.
    let onDisconnect: @Sendable () -> Void

    fileprivate init(_ channel: any Channel, _ onDisconnect: @escaping @Sendable () -> Void) {
      self.channel = channel
      self.onDisconnect = onDisconnect
    }

    /// Removes the registration, so that a connection only holds the callbacks of active requests.
    func end() { channel.triggerUserOutboundEvent(GoneClients.Registration.remove(self), promise: nil) }
  }

  /// Registers a callback for the disconnection of a client.
  ///
  /// - Returns: The registration, which the caller must end.
  static func observe(_ channel: any Channel, _ onDisconnect: @escaping @Sendable () -> Void) -> Observer {
    let observer = Observer(channel, onDisconnect)
    let isRegistered = channel.eventLoop.makePromise(of: Void.self)
    // The connection is closed already.
    isRegistered.futureResult.whenFailure { _ in onDisconnect() }
    channel.triggerUserOutboundEvent(GoneClients.Registration.add(observer), promise: isRegistered)
    return observer
  }

  /// Runs `work`, and cancels it when the client of the current request closes the connection.
  static func ends<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
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
