internal import APNSRules

/// Counts the attempts of each push: 1 for the first, 2 for its first retry, and so on.
///
/// Only pushes that were not accepted are stored, because an accepted attempt ends the count: the same push after it
/// is a new push. So is one after ten minutes of silence. Memory is bounded by two generations. The older one is
/// dropped as a whole when the younger one is full, has had too many entries come and go, or reaches the maximum age
/// of an entry.
struct AttemptCounter {
  /// The nanoseconds of machine time without an attempt after which a push's count restarts.
  static let silence: Int64 = 600_000_000_000

  private(set) var young = AttemptTable()
  private(set) var old = AttemptTable()
  /// Marks of all pushes in the tables, and of some that were removed from them.
  let marks = AttemptMarks()
  /// The set of the marks that belongs to `young`.
  private var youngSet = 0
  /// The number of marks made in this set.
  private var marked = 0
  /// The time when the current `young` generation began.
  private var bornAt: Int64 = 0

  /// The number of a push's attempts that were not processed, by push key. No rule was evaluated for them.
  private var unprocessed: [UInt64: Int32] = [:]
  /// The maximum size of `unprocessed`. Beyond it all entries are dropped, and draws of later retries count these
  /// attempts.
  private static let unprocessedLimit = 1 << 16

  /// Whether no push is stored, so that an accepted push need not be looked up.
  var isEmpty: Bool { young.count + old.count == 0 }

  /// The number of stored pushes.
  var remembered: Int { young.count + old.count }

  /// Counts an attempt and returns its number, from 1.
  ///
  /// - Parameter now: The machine's time in monotonic nanoseconds.
  mutating func count(_ push: PushKey, accepted: Bool, now: Int64) -> Int32 {
    if now - bornAt >= Self.silence {
      let isForgotten = now - bornAt >= 2 * Self.silence
      beginGeneration(now: now)
      if isForgotten { dropOld() }
    }
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
    remember(key, attempts: attempt, now: now)
    return attempt
  }

  /// Counts an attempt that was not processed and returns its number, from 1.
  mutating func countUnprocessed(_ push: PushKey, now: Int64) -> Int32 {
    let attempt = count(push, accepted: false, now: now)
    if attempt == 1 { unprocessed[push.number] = nil }
    if unprocessed.count >= Self.unprocessedLimit { unprocessed = [:] }
    unprocessed[push.number, default: 0] += 1
    return attempt
  }

  /// Returns the number of the push's attempts that were not processed.
  func unprocessedAttempts(of push: PushKey) -> Int32 { unprocessed[push.number] ?? 0 }

  /// Continues a push's count after an attempt that ended it.
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

  /// Returns the number that the next attempt will have.
  func peek(_ push: PushKey, now: Int64) -> Int32 {
    // All entries are out of date, and older than the ticks of the tables can represent.
    if now - bornAt >= 2 * Self.silence { return 1 }
    return young.next(push.number, now: now) ?? old.next(push.number, now: now) ?? 1
  }

  /// Ends the count of one push.
  mutating func forget(_ push: PushKey) {
    young.remove(push.number)
    old.remove(push.number)
    unprocessed[push.number] = nil
  }

  /// Removes all counts.
  mutating func removeAll() {
    beginGeneration(now: bornAt)
    dropOld()
    unprocessed = [:]
  }
}
