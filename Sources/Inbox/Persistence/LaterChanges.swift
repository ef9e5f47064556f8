internal import Dispatch
internal import Synchronization

/// Changes of records that have left memory, made in the order in which they are added, on a thread that may wait for the store.
final class LaterChanges: Sendable {
  private let queue = DispatchQueue(label: "store.changing")
  private let count = Atomic<Int>(0)

  /// Whether there are changes that are not made yet.
  var areWaiting: Bool { count.load(ordering: .acquiring) > 0 }

  /// Makes a change later.
  func add(_ change: @escaping @Sendable () -> Void) {
    count.add(1, ordering: .relaxed)
    queue.async { [self] in
      change()
      count.subtract(1, ordering: .releasing)
    }
  }

  /// Waits until the changes added so far are made.
  ///
  /// - Parameter limit: The maximum time.
  /// - Returns: Whether they are.
  @discardableResult
  func wait(atMost limit: DispatchTimeInterval = .seconds(2)) -> Bool {
    let areMade = DispatchSemaphore(value: 0)
    add { areMade.signal() }
    return areMade.wait(timeout: .now() + limit) == .success
  }
}
