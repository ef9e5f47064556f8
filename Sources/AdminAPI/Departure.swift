internal import NIOCore

/// Cancels the work of a request when its client disconnects.
///
/// Not by the web framework's means for it: they end the process if the body of a request is not read exactly then.
enum Departure {
  /// The connection of the request that is being answered.
  @TaskLocal static var channel: (any Channel)?

  /// A callback for the disconnection of a client, registered with `GoneClients` until `end` is called.
  final class Observer: Sendable {
    private let channel: any Channel
    /// Called once at most, on any thread.
    let onDisconnect: @Sendable () -> Void

    fileprivate init(_ channel: any Channel, _ onDisconnect: @escaping @Sendable () -> Void) {
      self.channel = channel
      self.onDisconnect = onDisconnect
    }

    /// Removes the registration, so that a connection only holds the callbacks of requests being answered.
    func end() { channel.triggerUserOutboundEvent(GoneClients.Registration.remove(self), promise: nil) }
  }

  /// Registers a callback for the disconnection of a client.
  ///
  /// - Returns: the registration, to be ended by the caller.
  static func observe(_ channel: any Channel, _ onDisconnect: @escaping @Sendable () -> Void) -> Observer {
    let observer = Observer(channel, onDisconnect)
    let isRegistered = channel.eventLoop.makePromise(of: Void.self)
    // The connection is closed already.
    isRegistered.futureResult.whenFailure { _ in onDisconnect() }
    channel.triggerUserOutboundEvent(GoneClients.Registration.add(observer), promise: isRegistered)
    return observer
  }

  /// Does work, and cancels it when the client that waits for it closes the connection.
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
