internal import NIOConcurrencyHelpers

/// A semaphore for tasks: a limited number of them do expensive work at a time, and others wait, in order.
final class AsyncSemaphore: Sendable {
  private struct State {
    var free: Int
    var nextID = 0
    var waiting: [(id: Int, continuation: CheckedContinuation<Void, any Error>)] = []
  }

  private let state: NIOLockedValueBox<State>

  /// - Parameter limit: The number of tasks at a time.
  init(_ limit: Int) { state = NIOLockedValueBox(State(free: limit)) }

  /// Runs `work` when fewer tasks than the limit do.
  ///
  /// - Throws: `CancellationError` if the task is cancelled before; any error that `work` throws.
  func withPermit<Value>(_ work: () async throws -> Value) async throws -> Value {
    try await begin()
    defer { end() }
    return try await work()
  }

  private func begin() async throws {
    let id = state.withLockedValue { state in
      state.nextID += 1
      return state.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let result: Result<Void, any Error>? = state.withLockedValue { state in
          if Task.isCancelled { return .failure(CancellationError()) }
          guard state.free == 0 else {
            state.free -= 1
            return .success(())
          }
          state.waiting.append((id, continuation))
          return nil
        }
        if let result { continuation.resume(with: result) }
      }
    } onCancel: {
      let waiting = state.withLockedValue { state in
        state.waiting.firstIndex { $0.id == id }.map { state.waiting.remove(at: $0) }
      }
      waiting?.continuation.resume(throwing: CancellationError())
    }
  }

  private func end() {
    let next = state.withLockedValue { state -> CheckedContinuation<Void, any Error>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst().continuation }
      state.free += 1
      return nil
    }
    next?.resume()
  }
}
