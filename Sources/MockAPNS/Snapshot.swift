import NIOConcurrencyHelpers
import Synchronization

/// A value that every push reads and hardly anybody changes: trusted keys, devices, rules and faults.
///
/// Readers keep a copy of their own (`SnapshotReader`) and look at one atomic number for each push, so no lock is taken
/// on the way of a push. A change makes a new value under a lock.
public final class Snapshot<Value: Sendable>: Sendable {
  private let current: NIOLockedValueBox<Value>
  private let changes = Atomic<UInt64>(0)

  /// Begins with `value`.
  public init(_ value: Value) {
    current = NIOLockedValueBox(value)
  }

  /// How often it was changed.
  public var version: UInt64 { changes.load(ordering: .acquiring) }

  /// The value now.
  public func load() -> Value {
    current.withLockedValue { $0 }
  }

  /// Changes the value; one change at a time. Readers see it from their next push on.
  public func update<Result>(_ change: (inout Value) throws -> Result) rethrows -> Result {
    try current.withLockedValue { value in
      defer { changes.add(1, ordering: .releasing) }
      return try change(&value)
    }
  }
}

/// One event loop's copy of a `Snapshot`.
struct SnapshotReader<Value: Sendable> {
  /// The value as of the last `refresh`.
  private(set) var value: Value
  private let source: Snapshot<Value>
  private var version: UInt64

  init(_ source: Snapshot<Value>) {
    self.source = source
    version = source.version
    value = source.load()
  }

  /// Looks whether the value changed, and takes over the new one.
  ///
  /// - Returns: whether it did.
  @discardableResult
  mutating func refresh() -> Bool {
    let latest = source.version
    guard latest != version else { return false }
    value = source.load()
    version = latest
    return true
  }
}
