internal import Synchronization

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
