internal import Dispatch
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import Synchronization

/// A task executor that runs the work of requests on a thread of its own: one for queries over the inbox, one for all other
/// requests.
///
/// Swift's cooperative thread pool has as many threads as the machine has cores, and also accepts connections and runs
/// signal handling and the notifications of waits, which a long query or a large document would delay. The tasks on an
/// executor share its thread and take turns wherever they suspend.
final class QueryExecutor: TaskExecutor {
  /// The maximum number of concurrent queries.
  static let maxQueries = 512

  /// Runs queries, and the responses of waits.
  private static let shared = QueryExecutor("apns-mock.queries")
  /// Runs the handlers of all other requests.
  static let handlers = QueryExecutor("apns-mock.requests")
  private static let running = Atomic(0)

  private let queue: DispatchQueue

  private init(_ label: String) { queue = DispatchQueue(label: label) }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  /// Runs `query` on the executor, and cancels it when the client closes its connection.
  static func run<Value: Sendable>(_ query: @escaping @Sendable () async throws -> Value) async throws -> Value {
    try await DisconnectCancellation.run {
      try await withTaskExecutorPreference(shared) { try await query() }
    }
  }

  /// Runs `query` like `run(_:)`, unless `maxQueries` queries are already running.
  ///
  /// - Throws: `Problem` with status 503 if there are too many; any error that `query` throws.
  static func runLimited<Value: Sendable>(_ query: @escaping @Sendable () async throws -> Value) async throws -> Value {
    defer { running.subtract(1, ordering: .relaxed) }
    guard running.add(1, ordering: .relaxed).newValue <= maxQueries else {
      throw Problem(
        status: .serviceUnavailable, detail: "\(maxQueries) queries are already running",
        hint: "Repeat the request after a second. Wait for responses before sending more queries.",
        headers: [.retryAfter: "1"])
    }
    return try await run(query)
  }

  /// Runs one step of a long response on the executor.
  ///
  /// - Throws: `CancellationError` if the task was cancelled; any error that `step` throws.
  static func step<Value: Sendable>(_ step: () throws -> Value) async throws -> Value {
    try await withTaskExecutorPreference(shared) {
      await Task.yield()
      try Task.checkCancellation()
      return try step()
    }
  }
}

extension ResponseBodyWriter {
  /// Writes a piece of a long response once the client has read most of the previous ones.
  ///
  /// - Parameter eventLoop: The event loop of the client's connection. Only there the writer learns that the client
  ///   does not read: without a round trip, a busy event loop lets the writer accept hundreds of kilobytes first.
  mutating func write(_ piece: ByteBuffer, atPaceOf eventLoop: (any EventLoop)?) async throws {
    try await eventLoop?.submit {}.get()
    try await write(piece)
  }
}
