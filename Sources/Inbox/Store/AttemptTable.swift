internal import APNSMockNotation

internal import Synchronization

/// The number of attempts of each push, by push key, in a flat hash table with open addressing. A lookup loads one
/// cache line; a dictionary loads three. Measured: a dictionary takes 1.8 % more instructions per rejected push
/// (`Benchmarks/instructions.py --only 413`), not counting cache misses.
struct AttemptTable {
  /// The maximum number of keys: half of the slots, so that probe sequences stay short.
  static let limit = AttemptSlots.count / 2

  /// The slots; copies of the table share them.
  let slots = AttemptSlots()
  private var entries: UnsafeMutablePointer<AttemptSlots.Entry> { slots.entries }
  /// Whether the slots were ever written. Most servers never reject a push, and their memory stays untouched.
  private var isInitialized = false
  /// The number of pushes in the table.
  private(set) var count = 0

  /// Returns the number of the push's next attempt; nil if the push is not in the table.
  ///
  /// - Parameter now: The time in monotonic nanoseconds.
  func next(_ key: UInt64, now: MonotonicTime) -> Int32? { existingSlot(of: key).map { next(at: $0, now: now) } }

  /// Counts a further attempt for a push in the table.
  ///
  /// - Returns: The number of the attempt; nil if the push is not in the table.
  mutating func count(_ key: UInt64, now: MonotonicTime) -> Int32? {
    guard let slot = existingSlot(of: key) else { return nil }
    let attempts = next(at: slot, now: now)
    entries[slot] = AttemptSlots.Entry(key: key, attempts: attempts, last: Self.ticks(now))
    return attempts
  }

  /// Adds a push that is not in the table. The table must be below its limit.
  mutating func insert(_ key: UInt64, attempts: Int32, now: MonotonicTime) {
    if !isInitialized { slots.clear() }
    isInitialized = true
    entries[findSlot(for: key)] = AttemptSlots.Entry(key: key, attempts: attempts, last: Self.ticks(now))
    count += 1
  }

  /// Removes a push.
  ///
  /// - Returns: The number that its next attempt would have had; nil if it was not in the table.
  @discardableResult
  mutating func remove(_ key: UInt64, now: MonotonicTime = 0) -> Int32? {
    guard let slot = existingSlot(of: key) else { return nil }
    let attempts = next(at: slot, now: now)
    count -= 1
    var gap = slot
    var other = slots.next(gap)
    // Close the gap: lookups of the following keys begin at their first slot and stop at a gap.
    while entries[other].attempts > 0 {
      let first = slots.first(for: entries[other].key)
      if slots.distance(from: first, to: other) >= slots.distance(from: gap, to: other) {
        entries[gap] = entries[other]
        gap = other
      }
      other = slots.next(other)
    }
    entries[gap] = AttemptSlots.Entry()
    return attempts
  }

  /// Removes all pushes. Keeps the memory, which will likely be needed again.
  mutating func removeAll() {
    guard count > 0 else { return }
    slots.clear()
    count = 0
  }

  private func next(at slot: Int, now: MonotonicTime) -> Int32 {
    // May be negative: two threads may read the clock in another order than they take the lock.
    let pause = Int32(bitPattern: Self.ticks(now) &- entries[slot].last)
    guard pause < Int32(Self.ticks(AttemptCounter.retryWindow)) else { return 1 }
    let attempts = entries[slot].attempts
    return max(attempts, attempts &+ 1)
  }

  /// Converts nanoseconds to ticks of about a millisecond. 32 bits wrap around after weeks, and entries older than
  /// twice the retry window are never looked up.
  private static func ticks(_ time: Int64) -> UInt32 { UInt32(truncatingIfNeeded: time >> 20) }

  /// Returns a push's slot; nil if the push is not in the table.
  private func existingSlot(of key: UInt64) -> Int? {
    if count == 0 { return nil }
    let slot = findSlot(for: key)
    return entries[slot].attempts > 0 ? slot : nil
  }

  /// Returns the slot of a key, or else the gap where it would be inserted.
  private func findSlot(for key: UInt64) -> Int {
    var slot = slots.first(for: key)
    while entries[slot].attempts > 0, entries[slot].key != key { slot = slots.next(slot) }
    return slot
  }
}

/// The slots of a table. A class of its own, so that slots can be prefetched while another thread counts.
final class AttemptSlots: Sendable {
  /// The number of slots.
  static let count = 1 << bits
  private static let bits = 16

  /// A slot of 16 bytes, a quarter of a cache line.
  struct Entry {
    var key: UInt64 = 0
    /// The number of attempts; 0 in a gap.
    var attempts: Int32 = 0
    /// The time of the last attempt, in ticks of the table.
    var last: UInt32 = 0
  }

  /// Valid while this object exists, uninitialized before `clear`. Safe to share: only the one table that owns the
  /// slots reads or writes them, protected by the lock of its counter.
  nonisolated(unsafe) let entries: UnsafeMutablePointer<Entry>
  /// Random for each table, so that a client cannot choose keys that collide.
  private let factor = UInt64.random(in: .min ... .max) | 1

  init() { entries = .allocate(capacity: Self.count) }

  deinit { entries.deallocate() }

  /// Clears all slots.
  func clear() { entries.initialize(repeating: Entry(), count: Self.count) }

  /// Returns the first slot in the probe sequence of a key.
  func first(for key: UInt64) -> Int { Int((key &* factor) >> UInt64(64 - Self.bits)) }

  /// Returns the next slot in a probe sequence.
  func next(_ slot: Int) -> Int { (slot + 1) & (Self.count - 1) }

  /// Returns the number of steps from one slot to another.
  func distance(from one: Int, to other: Int) -> Int { (other - one) & (Self.count - 1) }

  /// Prefetches the first slot of a key.
  func prefetch(_ key: UInt64) {
    CacheLines.prefetchForWriting(entries + first(for: key), count: 1)
  }
}

/// A Bloom filter with one bit per push key, for pushes that may be in the attempt table: a push without a bit is
/// not in it. Most lookups are for such pushes, and the filter answers them without a lock or a read from a table of
/// megabytes.
///
/// There are two sets of bits, one for each generation of the table. Any thread may read; callers that write must be
/// serialized.
final class AttemptMarks: Sendable {
  /// The number of pushes marked in one set after which a new set must begin. Then about one in four other pushes is
  /// a false positive.
  static let limit = 1 << 17
  private static let bits: UInt64 = 20
  private static let count = 2 << (bits - 6)

  /// The words of both sets, interleaved so that one memory access reads both. Allocated for the lifetime of the
  /// object; safe to share, because all of them are atomics.
  private nonisolated(unsafe) let words: UnsafeMutablePointer<Atomic<UInt64>>

  /// Creates two empty sets.
  init() {
    words = .allocate(capacity: Self.count)
    for index in 0..<Self.count { (words + index).initialize(to: Atomic(0)) }
  }

  deinit {
    words.deinitialize(count: Self.count)
    words.deallocate()
  }

  /// Marks a push in one of the sets, 0 or 1.
  func insert(_ key: UInt64, in set: Int) {
    let word = Self.word(of: key) + set
    words[word].store(words[word].load(ordering: .relaxed) | Self.bit(of: key), ordering: .releasing)
  }

  /// Clears one of the sets.
  func removeAll(of set: Int) {
    for index in stride(from: set, to: Self.count, by: 2) { words[index].store(0, ordering: .releasing) }
  }

  /// Prefetches the memory that `mayContain(_:)` reads.
  func prefetch(_ key: UInt64) {
    CacheLines.prefetch(UnsafeRawBufferPointer(start: words + Self.word(of: key), count: 1))
  }

  /// Returns whether a push may be marked in one of the sets.
  func mayContain(_ key: UInt64) -> Bool {
    let word = Self.word(of: key)
    let marks = words[word].load(ordering: .acquiring) | words[word + 1].load(ordering: .acquiring)
    return marks & Self.bit(of: key) != 0
  }

  /// Returns the index of the key's word in the first set.
  private static func word(of key: UInt64) -> Int { Int(key >> (64 - bits + 6)) * 2 }

  private static func bit(of key: UInt64) -> UInt64 { 1 << (key >> (64 - bits) & 63) }
}
