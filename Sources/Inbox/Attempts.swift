public import APNSRules
internal import NIOConcurrencyHelpers
internal import Synchronization

/// Numbers the attempts of each push, for all connections of a server.
///
/// Most pushes are accepted at once and never come again: they take no lock.
public final class Attempts: Sendable {
  private let counter: NIOLockedValueBox<AttemptCounter>
  private let marks: AttemptMarks
  private let places: (AttemptPlaces, AttemptPlaces)
  private let remembersSome = Atomic<Bool>(false)

  /// No push came yet.
  public init() {
    let counter = AttemptCounter()
    marks = counter.marks
    places = (counter.young.places, counter.old.places)
    self.counter = NIOLockedValueBox(counter)
  }

  /// Whether no push waits for a retry.
  var isEmpty: Bool { !remembersSome.load(ordering: .acquiring) }

  private func mayRemember(_ push: PushKey) -> Bool { !isEmpty && marks.mayContain(push.number) }

  /// Says that a push is going to be asked for, so that what is known of it comes from memory meanwhile.
  public func expect(_ push: PushKey) {
    if !isEmpty { marks.prefetch(push.number) }
  }

  /// Says that a push is going to be counted that APNs does not take.
  public func expectRefused(_ push: PushKey) {
    places.0.prefetch(push.number)
    places.1.prefetch(push.number)
  }

  /// The number that the next attempt of a push will have, without counting it.
  ///
  /// - Parameter now: monotonic nanoseconds, for telling a retry from a repetition.
  public func peek(_ push: PushKey, now: Int64) -> Int32 {
    mayRemember(push) ? counter.withLockedValue { $0.peek(push, now: now) } : 1
  }

  /// The number of this attempt, from 1.
  ///
  /// - Parameters:
  ///   - accepted: APNs takes it, so the next one like it is a new push.
  ///   - now: monotonic nanoseconds.
  public func count(_ push: PushKey, accepted: Bool, now: Int64) -> Int32 {
    if accepted, !mayRemember(push) { return 1 }
    return counter.withLockedValue { counter in
      let attempt = counter.count(push, accepted: accepted, now: now)
      remembersSome.store(!counter.isEmpty, ordering: .releasing)
      return attempt
    }
  }

  /// The number of an attempt that was not processed, from 1: the client has to send the push again.
  ///
  /// - Parameter now: monotonic nanoseconds.
  public func countUnprocessed(_ push: PushKey, now: Int64) -> Int32 {
    counter.withLockedValue { counter in
      let attempt = counter.countUnprocessed(push, now: now)
      remembersSome.store(true, ordering: .releasing)
      return attempt
    }
  }

  /// How many of the attempts of a push so far were not processed. Rules do not count them, because which pushes a GOAWAY or
  /// a reset overtakes depends on time, and draws must not.
  public func unprocessedAttempts(of push: PushKey) -> Int32 {
    mayRemember(push) ? counter.withLockedValue { $0.unprocessedAttempts(of: push) } : 0
  }

  /// Says that an attempt counted before was taken by APNs after all.
  public func accept(_ push: PushKey) {
    counter.withLockedValue { counter in
      counter.forget(push)
      remembersSome.store(!counter.isEmpty, ordering: .releasing)
    }
  }

  /// Continues the count of a push whose accepted attempt the client was not informed of.
  ///
  /// - Parameters:
  ///   - attempt: the number of that attempt; the next one gets the number after it.
  ///   - now: monotonic nanoseconds.
  public func resume(_ push: PushKey, after attempt: Int32, now: Int64) {
    counter.withLockedValue { counter in
      counter.resume(push, after: attempt, now: now)
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
