public import APNSRules
internal import NIOConcurrencyHelpers
internal import Synchronization

/// Numbers the attempts of each push, across all connections of a server.
///
/// Most pushes are accepted at once and never retried: they take no lock.
public final class Attempts: Sendable {
  private let counter: NIOLockedValueBox<AttemptCounter>
  private let marks: AttemptMarks
  private let places: (AttemptPlaces, AttemptPlaces)
  private let remembersSome = Atomic<Bool>(false)

  /// Creates attempt counts without pushes.
  public init() {
    let counter = AttemptCounter()
    marks = counter.marks
    places = (counter.young.places, counter.old.places)
    self.counter = NIOLockedValueBox(counter)
  }

  /// Whether no push waits for a retry.
  var isEmpty: Bool { !remembersSome.load(ordering: .acquiring) }

  private func mayRemember(_ push: PushKey) -> Bool { !isEmpty && marks.mayContain(push.number) }

  /// Prefetches the memory needed to look up a push.
  public func expect(_ push: PushKey) {
    if !isEmpty { marks.prefetch(push.number) }
  }

  /// Prefetches the memory needed to count an attempt that APNs' rules reject.
  public func expectRefused(_ push: PushKey) {
    places.0.prefetch(push.number)
    places.1.prefetch(push.number)
  }

  /// Returns the number that the push's next attempt will have, without counting it.
  ///
  /// - Parameter now: The time in monotonic nanoseconds, to distinguish a retry from a repeated push.
  public func peek(_ push: PushKey, now: Int64) -> Int32 {
    mayRemember(push) ? counter.withLockedValue { $0.peek(push, now: now) } : 1
  }

  /// Counts an attempt and returns its number, from 1.
  ///
  /// - Parameters:
  ///   - accepted: Whether the attempt is accepted, so that the next one is a new push.
  ///   - now: The time in monotonic nanoseconds.
  public func count(_ push: PushKey, accepted: Bool, now: Int64) -> Int32 {
    if accepted, !mayRemember(push) { return 1 }
    return counter.withLockedValue { counter in
      let attempt = counter.count(push, accepted: accepted, now: now)
      remembersSome.store(!counter.isEmpty, ordering: .releasing)
      return attempt
    }
  }

  /// Counts an attempt that was not processed, so that the client has to send the push again, and returns its
  /// number, from 1.
  ///
  /// - Parameter now: The time in monotonic nanoseconds.
  public func countUnprocessed(_ push: PushKey, now: Int64) -> Int32 {
    counter.withLockedValue { counter in
      let attempt = counter.countUnprocessed(push, now: now)
      remembersSome.store(true, ordering: .releasing)
      return attempt
    }
  }

  /// Returns the number of the push's attempts so far that were not processed. Rules do not count them: which pushes
  /// a GOAWAY or a reset overtakes depends on timing, and draws must not depend on it.
  public func unprocessedAttempts(of push: PushKey) -> Int32 {
    mayRemember(push) ? counter.withLockedValue { $0.unprocessedAttempts(of: push) } : 0
  }

  /// Marks a push as accepted whose attempt was counted before.
  public func accept(_ push: PushKey) {
    counter.withLockedValue { counter in
      counter.forget(push)
      remembersSome.store(!counter.isEmpty, ordering: .releasing)
    }
  }

  /// Continues the count for a push whose accepted attempt the client was not informed of.
  ///
  /// - Parameters:
  ///   - attempt: The number of that attempt; the next one gets the number after it.
  ///   - now: The time in monotonic nanoseconds.
  public func resume(_ push: PushKey, after attempt: Int32, now: Int64) {
    counter.withLockedValue { counter in
      counter.resume(push, after: attempt, now: now)
      remembersSome.store(!counter.isEmpty, ordering: .releasing)
    }
  }

  /// Removes all counts.
  public func removeAll() {
    counter.withLockedValue { counter in
      counter.removeAll()
      remembersSome.store(false, ordering: .releasing)
    }
  }
}
