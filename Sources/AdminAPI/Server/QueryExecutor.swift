internal import HTTPTypes
internal import Hummingbird
internal import APNSMockInbox
internal import NIOCore
internal import Synchronization

/// Runs the work of requests on threads of their own: some for queries over the inbox, one for all other requests.
enum QueryExecutor {
  /// The maximum number of concurrent queries.
  static let maxQueries = 512

  /// The threads of queries, and of the responses of waits.
  private static let threads = (0..<4).map { SerialTaskExecutor("apns-mock.queries.\($0)") }
  /// The number of these threads that the steps of the present request may use, one after the other: several if they wait for a
  /// store, so that another request's step need not wait too.
  @TaskLocal static var threadCount = 1
  private static let next = Atomic<UInt>(0)
  /// Runs the handlers of all other requests.
  static let handlers = SerialTaskExecutor("apns-mock.requests")
  private static let running = Atomic(0)
  /// Makes the reports of runs, so that no query waits for one.
  private static let reports = SerialTaskExecutor("apns-mock.reports")
  /// One report is made at a time: it needs up to a hundred megabytes until its text is complete.
  private static let reportPermit = AsyncSemaphore(1)
  private static let requestedReports = Atomic(0)
  /// The maximum number of reports that are made or waited for.
  static let maxReports = 16

  /// The next of the threads that the present request may use.
  private static var shared: SerialTaskExecutor {
    let count = min(threadCount, threads.count)
    return count == 1 ? threads[0] : threads[Int(next.wrappingAdd(1, ordering: .relaxed).oldValue % UInt(count))]
  }

  /// Runs `query` on a thread for queries, and cancels it when the client closes its connection.
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

  /// Makes a report on a thread of its own, after those requested before, and cancels it when the client closes its connection.
  ///
  /// - Throws: `Problem` with status 503 if too many are waited for; any error that `make` throws.
  static func runReport<Value: Sendable>(_ make: @escaping @Sendable () async throws -> Value) async throws -> Value {
    defer { requestedReports.subtract(1, ordering: .relaxed) }
    guard requestedReports.add(1, ordering: .relaxed).newValue <= maxReports else {
      throw Problem(
        status: .serviceUnavailable, detail: "\(maxReports) reports are already being made",
        hint: "Repeat the request after some seconds.", headers: [.retryAfter: "5"])
    }
    return try await DisconnectCancellation.run {
      try await reportPermit.withPermit {
        try await withTaskExecutorPreference(reports) { try await make() }
      }
    }
  }

  /// Runs one step of a long response on a thread for queries.
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
