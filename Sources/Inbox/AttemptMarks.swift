internal import Synchronization

/// A bit for each push that may be remembered, at a place by its key: what has none is not remembered. Most pushes that
/// are asked for are not, and are so told from those that are without a lock or a look into a table of megabytes.
///
/// There are two sets of them, as there are two generations of remembered pushes. Any thread may ask; who changes them
/// does so one after the other.
final class AttemptMarks: Sendable {
  /// How many pushes may be marked in one set before it is time to begin another: then one in four others has a mark too.
  static let limit = 1 << 17
  private static let bits: UInt64 = 20
  private static let count = 2 << (bits - 6)

  /// The words of both sets in turns, so that one look at memory is enough for both. They are there as long as this is;
  /// safe to share, because all of them are atomics.
  private nonisolated(unsafe) let words: UnsafeMutablePointer<Atomic<UInt64>>

  /// Marks of nothing.
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

  /// Takes all marks of one set away.
  func removeAll(of set: Int) {
    for index in stride(from: set, to: Self.count, by: 2) { words[index].store(0, ordering: .releasing) }
  }

  /// Asks for the memory that `mayContain` will look at.
  func prefetch(_ key: UInt64) {
    CacheLines.prefetch(UnsafeRawBufferPointer(start: words + Self.word(of: key), count: 1))
  }

  /// Whether a push may be marked in one of the sets.
  func mayContain(_ key: UInt64) -> Bool {
    let word = Self.word(of: key)
    let marks = words[word].load(ordering: .acquiring) | words[word + 1].load(ordering: .acquiring)
    return marks & Self.bit(of: key) != 0
  }

  /// Where the word of the first set is.
  private static func word(of key: UInt64) -> Int { Int(key >> (64 - bits + 6)) * 2 }

  private static func bit(of key: UInt64) -> UInt64 { 1 << (key >> (64 - bits) & 63) }
}
