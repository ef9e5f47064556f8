internal import APNSMockNotation
internal import Synchronization

/// The number of attempts of each push, by push key.
struct AttemptTable {
  /// The maximum number of keys.
  static let limit = 1 << 15

  private struct Entry {
    var attempts: Int32
    /// The time of the last attempt, in monotonic nanoseconds.
    var last: MonotonicTime

    /// The number of the next attempt.
    func next(now: MonotonicTime) -> Int32 {
      // The pause may be negative: two threads may read the clock in another order than they take the lock.
      guard now &- last < AttemptCounter.retryWindow else { return 1 }
      return max(attempts, attempts &+ 1)
    }
  }

  private var entries: [UInt64: Entry] = [:]

  /// The number of pushes in the table.
  var count: Int { entries.count }

  /// Returns the number of the push's next attempt; nil if the push is not in the table.
  ///
  /// - Parameter now: The time in monotonic nanoseconds.
  func next(_ key: UInt64, now: MonotonicTime) -> Int32? { entries[key]?.next(now: now) }

  /// Counts a further attempt for a push in the table.
  ///
  /// - Returns: The number of the attempt; nil if the push is not in the table.
  mutating func count(_ key: UInt64, now: MonotonicTime) -> Int32? {
    guard let index = entries.index(forKey: key) else { return nil }
    let attempts = entries.values[index].next(now: now)
    entries.values[index] = Entry(attempts: attempts, last: now)
    return attempts
  }

  /// Adds a push that is not in the table. The table must be below its limit.
  mutating func insert(_ key: UInt64, attempts: Int32, now: MonotonicTime) {
    entries[key] = Entry(attempts: attempts, last: now)
  }

  /// Removes a push.
  ///
  /// - Returns: The number that its next attempt would have had; nil if it was not in the table.
  @discardableResult
  mutating func remove(_ key: UInt64, now: MonotonicTime = 0) -> Int32? {
    entries.removeValue(forKey: key)?.next(now: now)
  }

  /// Removes all pushes. Keeps the memory, which will likely be needed again.
  mutating func removeAll() { entries.removeAll(keepingCapacity: true) }
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
