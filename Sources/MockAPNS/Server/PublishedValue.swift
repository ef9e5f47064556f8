package import APNSMockRules
import NIOConcurrencyHelpers
import Synchronization

/// A value that every push reads and that rarely changes: trusted keys, known apps, rules of APNs and faults.
///
/// Readers keep a copy (`PublishedValueReader`) and compare one atomic number per read batch, so that no lock is needed
/// while pushes are processed. A change replaces the value under a lock.
package final class PublishedValue<Value: Sendable>: Sendable {
  private let current: NIOLockedValueBox<Value>
  private let changes = Atomic<UInt64>(0)

  /// Publishes `value`.
  package init(_ value: Value) {
    current = NIOLockedValueBox(value)
  }

  /// The number of changes so far.
  package var version: UInt64 { changes.load(ordering: .acquiring) }

  /// Returns the current value.
  package func load() -> Value {
    current.withLockedValue { $0 }
  }

  /// Changes the value; changes are serialized. Readers see the new value from their next push on.
  package func update<Result>(_ change: (inout Value) throws -> Result) rethrows -> Result {
    try current.withLockedValue { value in
      defer { changes.add(1, ordering: .releasing) }
      return try change(&value)
    }
  }
}

/// The result of adding an item to a collection of limited size.
package enum InsertionResult: Sendable {
  case added
  /// An item with the same key was replaced.
  case replaced
  /// Nothing changed.
  case limitReached
}

extension PublishedValue<TrustedKeySet> {
  /// Adds a key, or replaces the one with its id.
  package func add(_ key: TrustedKey) -> InsertionResult {
    update { keys in
      let isNew = keys.keys[key.keyID] == nil
      guard !isNew || keys.keys.count < TrustedKeySet.limit else { return .limitReached }
      keys = keys.adding(key)
      return isNew ? .added : .replaced
    }
  }
}

/// A copy of a `PublishedValue`'s value for use on one event loop.
struct PublishedValueReader<Value: Sendable> {
  /// The value as of the last `refresh`.
  private(set) var value: Value
  private let source: PublishedValue<Value>
  private var version: UInt64

  init(_ source: PublishedValue<Value>) {
    self.source = source
    version = source.version
    value = source.load()
  }

  /// Copies the value if it has changed.
  ///
  /// - Returns: Whether it has.
  @discardableResult
  mutating func refresh() -> Bool {
    let latest = source.version
    guard latest != version else { return false }
    value = source.load()
    version = latest
    return true
  }
}
