internal import NIOConcurrencyHelpers
internal import Synchronization

/// A number that only grows, and what is to be done when it has reached a value.
///
/// Safe to use from any thread.
final class Milestone: Sendable {
  private struct Waiter: Sendable {
    let number: Int
    let resume: @Sendable () -> Void
  }

  private let reached = Atomic<Int>(0)
  private let waiters = NIOLockedValueBox<[Waiter]>([])

  /// Returns whether the number is at least `number`.
  func isReached(_ number: Int) -> Bool { reached.load(ordering: .acquiring) >= number }

  /// Calls `resume` on any thread when the number is at least `number`.
  ///
  /// - Returns: Whether it was already, so that `resume` was called at once.
  @discardableResult
  func whenReached(_ number: Int, _ resume: @escaping @Sendable () -> Void) -> Bool {
    let isDone = waiters.withLockedValue { waiters in
      if isReached(number) { return true }
      waiters.append(Waiter(number: number, resume: resume))
      return false
    }
    if isDone { resume() }
    return isDone
  }

  /// Sets the number, unless it is larger.
  func reach(_ number: Int) {
    let ready = waiters.withLockedValue { waiters in
      reached.max(number, ordering: .releasing)
      let ready = waiters.filter { $0.number <= number }
      if !ready.isEmpty { waiters.removeAll { $0.number <= number } }
      return ready
    }
    for waiter in ready { waiter.resume() }
  }
}
