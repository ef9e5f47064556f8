internal import APNSRules

/// Counts how often the same push came: 1 for the first time, 2 for its first retry, and so on.
///
/// Only pushes that APNs did not take are remembered, because an accepted one ends the story: the same push after it is
/// a new push. So is one after ten minutes of silence. What is remembered is bounded: it is two generations of which the
/// older is dropped as a whole, when the younger one is full, or has seen enough come and go, or is as old as an entry may
/// get.
struct AttemptCounter {
  /// After this many nanoseconds of machine time without an attempt, counting starts anew.
  static let silence: Int64 = 600_000_000_000

  private(set) var young = AttemptTable()
  private(set) var old = AttemptTable()
  /// Of these, and of some that were among them.
  let marks = AttemptMarks()
  /// Which set of the marks is that of `young`.
  private var youngSet = 0
  /// How many marks were made in it.
  private var marked = 0
  /// When `young` was begun.
  private var bornAt: Int64 = 0

  /// How many attempts of a push were not processed, by the key of the push: they met no rule.
  private var unprocessed: [UInt64: Int32] = [:]
  /// The most pushes in `unprocessed`. Beyond it all are forgotten, and draws of their retries count these attempts.
  private static let unprocessedLimit = 1 << 16

  /// Whether nothing is remembered, so that an accepted push need not be looked up.
  var isEmpty: Bool { young.count + old.count == 0 }

  /// How many pushes are remembered.
  var remembered: Int { young.count + old.count }

  /// The number of this attempt, from 1.
  ///
  /// - Parameter now: monotonic nanoseconds of the machine.
  mutating func count(_ push: PushKey, accepted: Bool, now: Int64) -> Int32 {
    if now - bornAt >= Self.silence {
      let isForgotten = now - bornAt >= 2 * Self.silence
      beginGeneration(now: now)
      if isForgotten { dropOld() }
    }
    let key = push.number
    if accepted, !unprocessed.isEmpty { unprocessed[key] = nil }
    var earlier: Int32?
    // Most pushes come once.
    if marks.mayContain(key) {
      if accepted { return young.remove(key, now: now) ?? old.remove(key, now: now) ?? 1 }
      if let attempt = young.count(key, now: now) { return attempt }
      earlier = old.remove(key, now: now)
    }
    if accepted { return 1 }
    let attempt = earlier ?? 1
    remember(key, attempts: attempt, now: now)
    return attempt
  }

  /// The number of an attempt that was not processed, from 1.
  mutating func countUnprocessed(_ push: PushKey, now: Int64) -> Int32 {
    let attempt = count(push, accepted: false, now: now)
    if attempt == 1 { unprocessed[push.number] = nil }
    if unprocessed.count >= Self.unprocessedLimit { unprocessed = [:] }
    unprocessed[push.number, default: 0] += 1
    return attempt
  }

  /// How many attempts of a push were not processed.
  func unprocessedAttempts(of push: PushKey) -> Int32 { unprocessed[push.number] ?? 0 }

  /// Continues the count of a push after an attempt that ended its count.
  mutating func resume(_ push: PushKey, after attempt: Int32, now: Int64) {
    forget(push)
    remember(push.number, attempts: attempt, now: now)
  }

  /// Adds a push that is in neither table.
  private mutating func remember(_ key: UInt64, attempts: Int32, now: Int64) {
    if young.count >= AttemptTable.limit || marked >= AttemptMarks.limit { beginGeneration(now: now) }
    young.insert(key, attempts: attempts, now: now)
    marks.insert(key, in: youngSet)
    marked += 1
  }

  private mutating func beginGeneration(now: Int64) {
    dropOld()
    swap(&young, &old)
    youngSet = 1 - youngSet
    marked = 0
    bornAt = now
  }

  private mutating func dropOld() {
    old.removeAll()
    marks.removeAll(of: 1 - youngSet)
  }

  /// The number that the next attempt will have.
  func peek(_ push: PushKey, now: Int64) -> Int32 {
    // Nobody has counted for so long that all of it is out of date, and more than the tables can tell.
    if now - bornAt >= 2 * Self.silence { return 1 }
    return young.next(push.number, now: now) ?? old.next(push.number, now: now) ?? 1
  }

  /// Ends the story of one push.
  mutating func forget(_ push: PushKey) {
    young.remove(push.number)
    old.remove(push.number)
    unprocessed[push.number] = nil
  }

  /// Forgets everything.
  mutating func removeAll() {
    beginGeneration(now: bornAt)
    dropOld()
    unprocessed = [:]
  }
}
