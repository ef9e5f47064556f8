internal import NIOConcurrencyHelpers

/// Ends the process if a thread waits for a store that must not: an event loop, on which connections depend, or one of Swift's
/// cooperative threads, of which there are as many as cores.
///
/// Only in builds with the flag `CHECKS_BLOCKING`, as those with a sanitizer, and after `begin`: tests of this module wait on
/// cooperative threads.
package enum BlockingCheck {
  private static let isEventLoop = NIOLockedValueBox<(@Sendable () -> Bool)?>(nil)

  /// Begins to check the threads of the process.
  ///
  /// - Parameter isEventLoop: Returns whether the thread that calls it is that of an event loop.
  package static func begin(isEventLoop: @escaping @Sendable () -> Bool) {
    Self.isEventLoop.withLockedValue { $0 = isEventLoop }
  }

  /// Returns whether the thread that calls it may wait for a store: one without a task of Swift's concurrency, or one of an executor of
  /// our own.
  package static func threadMayWait(isEventLoop: Bool) -> Bool {
    !isEventLoop && withUnsafeCurrentTask { task in task.map { $0.unownedTaskExecutor != nil } ?? true }
  }

  /// Checks that the thread may wait for a store.
  package static func checkThread() {
    #if CHECKS_BLOCKING
      guard let isEventLoop = isEventLoop.withLockedValue({ $0 })?() else { return }
      guard !threadMayWait(isEventLoop: isEventLoop) else { return }
      fatalError("\(isEventLoop ? "an event loop" : "a cooperative thread") must not wait for a store")
    #endif
  }
}
