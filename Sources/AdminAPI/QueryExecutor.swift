internal import Dispatch
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import Synchronization

/// Runs queries over the inbox on one thread of their own.
///
/// Swift's cooperative thread pool has as few threads as the machine has cores, and signals, health checks and waits run
/// on it. A query that ran there would hold them up. Queries take turns on the queue's thread wherever they suspend.
final class QueryExecutor: TaskExecutor {
  /// The number of queries that may be under way at once.
  static let maxQueries = 512

  private static let shared = QueryExecutor()
  private static let running = Atomic(0)

  private let queue = DispatchQueue(label: "apns-mock.queries")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  /// Runs `query` on the queries' thread, and cancels it when the client closes its connection.
  static func run<Value: Sendable>(_ query: @escaping @Sendable () async throws -> Value) async throws -> Value {
    try await Departure.ends {
      try await withTaskExecutorPreference(shared) { try await query() }
    }
  }

  /// Runs `query` like `run(_:)`, unless `maxQueries` queries are already under way.
  ///
  /// - Throws: `Problem` with status 503 if there are too many; whatever `query` throws.
  static func runLimited<Value: Sendable>(_ query: @escaping @Sendable () async throws -> Value) async throws -> Value {
    defer { running.subtract(1, ordering: .relaxed) }
    guard running.add(1, ordering: .relaxed).newValue <= maxQueries else {
      throw Problem(
        status: .serviceUnavailable, detail: "\(maxQueries) queries are already under way",
        hint: "Repeat the request after a second. Wait for the answer to a query before sending many more.",
        headers: [.retryAfter: "1"])
    }
    return try await run(query)
  }

  /// Does one step of a long answer on the queries' thread.
  ///
  /// - Throws: `CancellationError` if the task was cancelled; whatever `step` throws.
  static func step<Value: Sendable>(_ step: () throws -> Value) async throws -> Value {
    try await withTaskExecutorPreference(shared) {
      await Task.yield()
      try Task.checkCancellation()
      return try step()
    }
  }
}

extension ResponseBodyWriter {
  /// Writes a piece of a long answer when the client has read most of what was written before.
  ///
  /// - Parameter eventLoop: that of the client's connection. The writer learns only there that the client does not read:
  ///   without a round trip to it, a busy event loop lets the writer accept hundreds of kilobytes first.
  mutating func write(_ piece: ByteBuffer, atPaceOf eventLoop: (any EventLoop)?) async throws {
    try await eventLoop?.submit {}.get()
    try await write(piece)
  }
}
