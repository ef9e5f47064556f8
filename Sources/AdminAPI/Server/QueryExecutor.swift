internal import Dispatch
internal import HTTPTypes
internal import Hummingbird
internal import MockAPNS
internal import NIOConcurrencyHelpers
internal import NIOCore
internal import Synchronization

/// A task executor that runs queries over the inbox on a thread of their own.
///
/// Swift's cooperative thread pool has as many threads as the machine has cores, and also runs signal handling,
/// health checks and waits, which a long query would delay. Queries share the executor's thread and take turns
/// wherever they suspend.
final class QueryExecutor: TaskExecutor {
  /// The maximum number of concurrent queries.
  static let maxQueries = 512

  private static let shared = QueryExecutor()
  private static let running = Atomic(0)

  private let queue = DispatchQueue(label: "apns-mock.queries")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }

  /// Runs `query` on the executor, and cancels it when the client closes its connection.
  static func run<Value: Sendable>(_ query: @escaping @Sendable () async throws -> Value) async throws -> Value {
    try await DisconnectCancellation.ends {
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

/// A limit on the admin requests that wait for pushes or follow events, so that connections remain for other
/// requests.
final class WaitLimit: Sendable {
  /// A waiting request. It counts until this object is released.
  final class Slot: Sendable {
    private let limit: WaitLimit

    fileprivate init(_ limit: WaitLimit) { self.limit = limit }

    deinit { limit.count.withLockedValue { $0 -= 1 } }
  }

  /// The maximum number of waiting requests: half of the connections to the admin listener.
  let most: Int
  private let count = NIOLockedValueBox(0)

  init(most: Int = max(1, Descriptors.forAdministration / 2)) { self.most = most }

  /// Counts a request that is about to wait.
  ///
  /// - Throws: `Problem` (503) if the limit is reached.
  func enter() throws(Problem) -> Slot {
    let isFull = count.withLockedValue { count in
      guard count < most else { return true }
      count += 1
      return false
    }
    guard !isFull else {
      throw Problem(
        status: .serviceUnavailable,
        detail: "\(most) requests wait for pushes or follow events, and no more may at once",
        hint: """
          Retry when one of them has finished, wait for several pushes in one request, or start the server with a higher \
          limit of open files (`ulimit -n`).
          """)
    }
    return Slot(self)
  }
}
