internal import NIOCore

/// A client that goes away while it is being answered.
///
/// Not by the web framework's means for it: they end the process if the body of a request is not read exactly then.
enum Departure {
  /// The connection of the request that is being answered.
  @TaskLocal static var channel: (any Channel)?

  /// Work that can be cancelled. The connection only knows of it while it is done.
  private final class Work<Value: Sendable>: Sendable {
    let task: Task<Value, any Error>

    init(_ task: Task<Value, any Error>) { self.task = task }
  }

  /// Does work, and cancels it when the client that waits for it closes the connection.
  static func ends<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let work = Work(Task { try await work() })
    channel?.closeFuture.whenComplete { [weak work] _ in work?.task.cancel() }
    return try await withTaskCancellationHandler {
      try await work.task.value
    } onCancel: {
      work.task.cancel()
    }
  }
}
