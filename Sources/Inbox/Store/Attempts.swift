package import APNSMockNotation
package import APNSMockRules
internal import NIOConcurrencyHelpers
internal import Synchronization

/// The keys by which a push's attempts are counted.
package struct AttemptKey: Sendable {
  /// Identifies the push.
  package let push: PushKey
  /// The key of the client's `apns-id`, by which an attempt whose body is not known is recognized; nil without one.
  package let id: PushKey?

  /// Creates keys.
  package init(push: PushKey, id: PushKey? = nil) {
    self.push = push
    self.id = id
  }
}

/// Numbers the attempts of each push, across all connections of a server.
///
/// Most pushes are accepted at once and never retried: they take no lock.
package final class Attempts: Sendable {
  private let counter: NIOLockedValueBox<AttemptCounter>
  private let marks: AttemptMarks
  private let hasEntries = Atomic<Bool>(false)
  /// The numbers and times of attempts whose body is not known.
  private let partial = NIOLockedValueBox(PartialAttempts<(number: Int32, at: MonotonicTime)>())
  /// 0 if there are none.
  private let partialCount = Atomic<Int>(0)

  /// Creates attempt counts without pushes.
  package init() {
    let counter = AttemptCounter()
    marks = counter.marks
    self.counter = NIOLockedValueBox(counter)
  }

  /// Whether no push waits for a retry.
  var isEmpty: Bool { !hasEntries.load(ordering: .acquiring) }

  private func mayContain(_ push: PushKey) -> Bool { !isEmpty && marks.mayContain(push.number) }

  /// Prefetches the memory needed to look up a push.
  package func prefetch(_ push: PushKey) {
    if !isEmpty { marks.prefetch(push.number) }
  }

  /// Returns the number that the push's next attempt will have, without counting it.
  ///
  /// - Parameter now: The time in monotonic nanoseconds, to distinguish a retry from a repeated push.
  package func peek(_ push: PushKey, now: MonotonicTime) -> Int32 {
    mayContain(push) ? counter.withLockedValue { $0.peek(push, now: now) } : 1
  }

  /// Whether attempts were counted whose body is not known, which `resume(_:headers:_:defaultTopic:now:)` looks for.
  package var hasPartialAttempts: Bool { partialCount.load(ordering: .acquiring) > 0 }

  /// Counts an attempt whose request did not become complete, and returns its number, from 1.
  ///
  /// - Parameters:
  ///   - headers: The packed header fields that `facts` were read from.
  ///   - defaultTopic: The topic of a push without `apns-topic`.
  ///   - now: The time in monotonic nanoseconds.
  package func countPartial(
    headers: UnsafeRawBufferPointer, _ facts: PushFacts, defaultTopic: String?, now: MonotonicTime
  ) -> Int32 {
    let push = PartialPush(headers: headers, facts, defaultTopic: defaultTopic)
    let known = push.id.flatMap { id in
      counter.withLockedValue { counter in
        let attempt = counter.countUnprocessed(withID: id, now: now)
        if attempt != nil { hasEntries.store(true, ordering: .releasing) }
        return attempt
      }
    }
    if let known { return known }
    return partial.withLockedValue { partial in
      let attempt = Self.successor(of: partial.takeMatch(push, arrivedAt: now), now: now) ?? 1
      partial.add(push, endedAt: now, (attempt, now))
      partialCount.store(1, ordering: .releasing)
      return attempt
    }
  }

  /// Continues the count of a push after an earlier attempt of it whose body was not known, if there is one.
  ///
  /// - Parameter push: The key by which further attempts are counted.
  package func resume(
    _ push: PushKey, headers: UnsafeRawBufferPointer, _ facts: PushFacts, defaultTopic: String?, now: MonotonicTime
  ) {
    let partialPush = PartialPush(headers: headers, facts, defaultTopic: defaultTopic)
    let earlier = partial.withLockedValue { partial in
      let match = partial.takeMatch(partialPush, arrivedAt: now)
      if now &- partial.lastEnd >= AttemptCounter.retryWindow { partial = PartialAttempts() }
      partialCount.store(partial.isEmpty ? 0 : 1, ordering: .releasing)
      return Self.successor(of: match, now: now)
    }
    guard let earlier else { return }
    counter.withLockedValue { counter in
      counter.add(earlier &- 1, to: push, now: now)
      hasEntries.store(true, ordering: .releasing)
    }
  }

  /// Returns the number after that of an attempt that is not too long ago.
  private static func successor(of attempt: (number: Int32, at: MonotonicTime)?, now: MonotonicTime) -> Int32? {
    attempt.flatMap { now &- $0.at < AttemptCounter.retryWindow ? $0.number &+ 1 : nil }
  }

  /// Counts an attempt and returns its number, from 1.
  ///
  /// - Parameters:
  ///   - accepted: Whether the attempt is accepted, so that the next one is a new push.
  ///   - now: The time in monotonic nanoseconds.
  package func count(_ key: AttemptKey, accepted: Bool, now: MonotonicTime) -> Int32 {
    if accepted, !mayContain(key.push) { return 1 }
    return counter.withLockedValue { counter in
      let attempt = counter.count(key.push, accepted: accepted, now: now)
      if !accepted { counter.remember(key) }
      hasEntries.store(!counter.isEmpty, ordering: .releasing)
      return attempt
    }
  }

  /// Counts an attempt that was not processed, so that the client has to send the push again, and returns its
  /// number, from 1.
  ///
  /// - Parameter now: The time in monotonic nanoseconds.
  package func countUnprocessed(_ key: AttemptKey, now: MonotonicTime) -> Int32 {
    counter.withLockedValue { counter in
      let attempt = counter.countUnprocessed(key.push, now: now)
      counter.remember(key)
      hasEntries.store(true, ordering: .releasing)
      return attempt
    }
  }

  /// Returns the number of the push's attempts so far that were not processed, because the server refused them, the connection
  /// ended before, or their request never became complete. Rules do not count them: which pushes
  /// a GOAWAY or a reset overtakes depends on timing, and draws must not depend on it.
  package func unprocessedAttempts(of push: PushKey) -> Int32 {
    mayContain(push) ? counter.withLockedValue { $0.unprocessedAttempts(of: push) } : 0
  }

  /// Marks a push as accepted whose attempt was counted before.
  package func accept(_ push: PushKey) {
    counter.withLockedValue { counter in
      counter.remove(push)
      hasEntries.store(!counter.isEmpty, ordering: .releasing)
    }
  }

  /// Continues the count for a push whose accepted attempt the client was not informed of.
  ///
  /// - Parameters:
  ///   - attempt: The number of that attempt; the next one gets the number after it.
  ///   - now: The time in monotonic nanoseconds.
  package func resume(_ key: AttemptKey, after attempt: Int32, now: MonotonicTime) {
    counter.withLockedValue { counter in
      counter.resume(key.push, after: attempt, now: now)
      counter.remember(key)
      hasEntries.store(!counter.isEmpty, ordering: .releasing)
    }
  }

  /// Continues the count of a push that the former server has counted.
  ///
  /// - Parameters:
  ///   - last: The number of its last attempt.
  ///   - unprocessed: The number of its attempts that were not processed.
  ///   - at: When its last attempt arrived, in monotonic nanoseconds.
  func restore(_ key: AttemptKey, last: Int32, unprocessed: Int32, at: MonotonicTime) {
    counter.withLockedValue { counter in
      if last > unprocessed { counter.resume(key.push, after: last - unprocessed, now: at) }
      if unprocessed > 0 { counter.add(unprocessed, to: key.push, now: at) }
      counter.remember(key)
      hasEntries.store(true, ordering: .releasing)
    }
  }

  /// Removes the counts of some pushes: further attempts are first ones.
  package func remove(_ pushes: some Sequence<PushKey>) {
    counter.withLockedValue { counter in
      for push in pushes { counter.remove(push) }
      hasEntries.store(!counter.isEmpty, ordering: .releasing)
    }
  }

  /// Removes all counts.
  package func removeAll() {
    counter.withLockedValue { counter in
      counter.removeAll()
      hasEntries.store(false, ordering: .releasing)
    }
    partial.withLockedValue { partial in
      partial = PartialAttempts()
      partialCount.store(0, ordering: .releasing)
    }
  }
}

/// Counts the attempts of each push: 1 for the first, 2 for its first retry, and so on.
///
/// Only pushes that were not accepted are stored, because an accepted attempt ends the count: the same push after it is
/// a new push. So is one more than ten minutes after its last attempt. Memory is bounded by two generations. The older
/// one is dropped as a whole when the younger one is full, has had too many entries come and go, or reaches the maximum
/// age of an entry.
struct AttemptCounter {
  /// The nanoseconds of machine time without an attempt after which a push's count restarts.
  static let retryWindow: Int64 = 600_000_000_000

  private var young = AttemptTable()
  private var old = AttemptTable()
  /// Marks of all pushes in the tables, and of some that were removed from them.
  let marks = AttemptMarks()
  /// The set of the marks that belongs to `young`.
  private var youngSet = 0
  /// The number of marks made in this set.
  private var marked = 0
  /// The time when the current `young` generation began.
  private var generationStart: MonotonicTime = 0

  /// The number of a push's attempts that were not processed, by push key. No rule was evaluated for them.
  private var unprocessed: [UInt64: Int32] = [:]
  /// The maximum size of `unprocessed`. Beyond it all entries are dropped, and draws of later retries count these
  /// attempts.
  private static let unprocessedLimit = 1 << 16

  /// The pushes of complete attempts that were not accepted, or whose response was lost, by the client's `apns-id`.
  private var pushesByID = GenerationalCache<PushKey, PushKey>(limit: AttemptTable.limit)

  /// Whether no push is stored, so that an accepted push need not be looked up.
  var isEmpty: Bool { young.count + old.count == 0 }

  /// The number of stored pushes.
  var remembered: Int { young.count + old.count }

  /// Counts an attempt and returns its number, from 1.
  ///
  /// - Parameter now: The machine's time in monotonic nanoseconds.
  mutating func count(_ push: PushKey, accepted: Bool, now: MonotonicTime) -> Int32 {
    dropOutdated(now: now)
    let key = push.number
    if accepted, !unprocessed.isEmpty { unprocessed[key] = nil }
    var earlier: Int32?
    // Most pushes have a single attempt.
    if marks.mayContain(key) {
      if accepted { return young.remove(key, now: now) ?? old.remove(key, now: now) ?? 1 }
      if let attempt = young.count(key, now: now) { return attempt }
      earlier = old.remove(key, now: now)
    }
    if accepted { return 1 }
    let attempt = earlier ?? 1
    insert(key, attempts: attempt, now: now)
    return attempt
  }

  /// Counts an attempt that was not processed and returns its number, from 1.
  mutating func countUnprocessed(_ push: PushKey, now: MonotonicTime) -> Int32 {
    let attempt = count(push, accepted: false, now: now)
    if attempt == 1 { unprocessed[push.number] = nil }
    if unprocessed.count >= Self.unprocessedLimit { unprocessed = [:] }
    unprocessed[push.number, default: 0] += 1
    return attempt
  }

  /// Counts an attempt whose body is not known, of the push that has its `apns-id`.
  ///
  /// - Returns: The number of the attempt, from 1; nil if no push has this id.
  mutating func countUnprocessed(withID id: PushKey, now: MonotonicTime) -> Int32? {
    pushesByID[id].map { countUnprocessed($0, now: now) }
  }

  /// Makes a push known by its `apns-id`.
  mutating func remember(_ key: AttemptKey) {
    if let id = key.id { pushesByID[id] = key.push }
  }

  /// Returns the number of the push's attempts that were not processed.
  func unprocessedAttempts(of push: PushKey) -> Int32 { unprocessed[push.number] ?? 0 }

  /// Continues a push's count after an attempt that ended it.
  mutating func resume(_ push: PushKey, after attempt: Int32, now: MonotonicTime) {
    // Before the insertion: otherwise the next attempt would drop the new entry together with outdated ones.
    dropOutdated(now: now)
    remove(push)
    // An imported record may have any number.
    insert(push.number, attempts: max(1, attempt), now: now)
  }

  /// Counts further attempts of a push that were not processed, and whose push was not known.
  mutating func add(_ attempts: Int32, to push: PushKey, now: MonotonicTime) {
    let former = unprocessed[push.number]
    resume(push, after: peek(push, now: now) &- 1 &+ attempts, now: now)
    if unprocessed.count >= Self.unprocessedLimit { unprocessed = [:] }
    unprocessed[push.number] = (former ?? 0) &+ attempts
  }

  /// Adds a push that is in neither table.
  private mutating func insert(_ key: UInt64, attempts: Int32, now: MonotonicTime) {
    if young.count >= AttemptTable.limit || marked >= AttemptMarks.limit { beginGeneration(now: now) }
    young.insert(key, attempts: attempts, now: now)
    marks.insert(key, in: youngSet)
    marked += 1
  }

  /// Begins a generation if the current one has reached the maximum age of an entry.
  private mutating func dropOutdated(now: MonotonicTime) {
    guard now - generationStart >= Self.retryWindow else { return }
    let isForgotten = now - generationStart >= 2 * Self.retryWindow
    beginGeneration(now: now)
    if isForgotten { dropOld() }
  }

  private mutating func beginGeneration(now: MonotonicTime) {
    dropOld()
    swap(&young, &old)
    youngSet = 1 - youngSet
    marked = 0
    generationStart = now
  }

  private mutating func dropOld() {
    old.removeAll()
    marks.removeAll(of: 1 - youngSet)
  }

  /// Returns the number that the next attempt will have.
  func peek(_ push: PushKey, now: MonotonicTime) -> Int32 {
    young.next(push.number, now: now) ?? old.next(push.number, now: now) ?? 1
  }

  /// Ends the count of one push.
  mutating func remove(_ push: PushKey) {
    young.remove(push.number)
    old.remove(push.number)
    unprocessed[push.number] = nil
  }

  /// Removes all counts.
  mutating func removeAll() {
    beginGeneration(now: generationStart)
    dropOld()
    unprocessed = [:]
    pushesByID = GenerationalCache(limit: AttemptTable.limit)
  }
}
