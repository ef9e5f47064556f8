internal import APNSRules

/// Counts how often the same push came: 1 for the first time, 2 for its first retry, and so on.
///
/// Only pushes that APNs did not take are remembered, because an accepted one ends the story: the same push after it is
/// a new push. So is one after ten minutes of silence. The table is bounded: it is two generations of which the older is
/// dropped as a whole, when the younger one is full, or has seen enough come and go, or is as old as an entry may get.
struct AttemptCounter {
  /// After this many nanoseconds of machine time without an attempt, counting starts anew.
  static let silence: Int64 = 600_000_000_000
  /// How many pushes each generation remembers.
  static let generationLimit = 32_768

  private struct Entry {
    var attempts: Int32
    /// Monotonic nanoseconds.
    var last: Int64

    /// The number of an attempt that comes now.
    func next(now: Int64) -> Int32 { now - last < AttemptCounter.silence ? attempts &+ 1 : 1 }
  }

  // By the numbers of the keys, which take less time to hash than the keys.
  private var young: [UInt64: Entry] = [:]
  private var old: [UInt64: Entry] = [:]
  /// Of these, and of some that were among them.
  let marks = AttemptMarks()
  /// Which set of the marks is that of `young`.
  private var youngSet = 0
  /// How many marks were made in it.
  private var marked = 0
  /// When `young` was begun.
  private var bornAt: Int64 = 0

  /// Whether nothing is remembered, so that an accepted push need not be looked up.
  var isEmpty: Bool { young.isEmpty && old.isEmpty }

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
    let push = push.number
    var attempt: Int32 = 1
    // Most pushes come once.
    if marks.mayContain(push) {
      if accepted {
        let earlier = young.removeValue(forKey: push) ?? old.removeValue(forKey: push)
        return earlier?.next(now: now) ?? 1
      }
      // In its place, which is looked for once.
      if let place = young.index(forKey: push) {
        attempt = young.values[place].next(now: now)
        young.values[place] = Entry(attempts: attempt, last: now)
        return attempt
      }
      if let earlier = old.removeValue(forKey: push) { attempt = earlier.next(now: now) }
    }
    if accepted { return 1 }
    if young.count >= Self.generationLimit || marked >= AttemptMarks.limit { beginGeneration(now: now) }
    young[push] = Entry(attempts: attempt, last: now)
    marks.insert(push, in: youngSet)
    marked += 1
    return attempt
  }

  private mutating func beginGeneration(now: Int64) {
    dropOld()
    swap(&young, &old)
    youngSet = 1 - youngSet
    marked = 0
    bornAt = now
  }

  /// Keeps the memory, for there will be as many again.
  private mutating func dropOld() {
    old.removeAll(keepingCapacity: true)
    marks.removeAll(of: 1 - youngSet)
  }

  /// The number that the next attempt will have.
  func peek(_ push: PushKey, now: Int64) -> Int32 {
    (young[push.number] ?? old[push.number])?.next(now: now) ?? 1
  }

  /// Ends the story of one push.
  mutating func forget(_ push: PushKey) {
    young[push.number] = nil
    old[push.number] = nil
  }

  /// Forgets everything.
  mutating func removeAll() {
    beginGeneration(now: bornAt)
    dropOld()
  }
}
