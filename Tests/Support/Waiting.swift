import Foundation

/// An event that a test waited for and that did not happen.
package struct DidNotHappen: Error, CustomStringConvertible {
  package let description: String
}

/// Waits until a condition holds.
///
/// - Parameter event: What the condition describes, such as "the wait is registered".
/// - Throws: `DidNotHappen` after two minutes; on a busy machine everything may take long.
package func eventually(_ event: String, _ condition: () async throws -> Bool) async throws {
  let end = ContinuousClock.now + .seconds(120)
  while try await !condition() {
    guard ContinuousClock.now < end else { throw DidNotHappen(description: "within two minutes: \(event)") }
    try await Task.sleep(for: .milliseconds(2))
  }
}

/// Runs calls that block on a thread of their own, because all tests share as many threads as there are cores.
package func onOwnThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread { continuation.resume(returning: body()) }
  }
}
