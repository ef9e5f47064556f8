public import APNSRules
internal import NIOConcurrencyHelpers
internal import Synchronization

/// Numbers the attempts of each push, for all connections of a server.
///
/// Most pushes are accepted at once and never come again. While nothing waits for a retry, one is known to be a first
/// attempt by a look at `isEmpty`, without a lock and without reading it.
public final class Attempts: Sendable {
  private let counter = NIOLockedValueBox(AttemptCounter())
  private let remembersSome = Atomic<Bool>(false)

  /// No push came yet.
  public init() {}

  /// Whether no push waits for a retry.
  public var isEmpty: Bool { !remembersSome.load(ordering: .acquiring) }

  /// The number that the next attempt of a push will have, without counting it.
  ///
  /// - Parameter now: monotonic nanoseconds, for telling a retry from a repetition.
  public func peek(_ push: PushKey, now: Int64) -> Int32 {
    isEmpty ? 1 : counter.withLockedValue { $0.peek(push, now: now) }
  }

  /// The number of this attempt, from 1.
  ///
  /// - Parameters:
  ///   - accepted: APNs takes it, so the next one like it is a new push.
  ///   - now: monotonic nanoseconds.
  public func count(_ push: PushKey, accepted: Bool, now: Int64) -> Int32 {
    counter.withLockedValue { counter in
      let attempt = counter.count(push, accepted: accepted, now: now)
      remembersSome.store(!counter.isEmpty, ordering: .releasing)
      return attempt
    }
  }

  /// Says that an attempt counted before was taken by APNs after all.
  public func accept(_ push: PushKey) {
    counter.withLockedValue { counter in
      counter.forget(push)
      remembersSome.store(!counter.isEmpty, ordering: .releasing)
    }
  }

  /// Begins anew for every push.
  public func removeAll() {
    counter.withLockedValue { counter in
      counter.removeAll()
      remembersSome.store(false, ordering: .releasing)
    }
  }
}
