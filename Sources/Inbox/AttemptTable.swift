/// How often pushes came, by their keys, in one flat piece of memory: to look at it is to wait for one line of the cache,
/// where a dictionary takes three.
struct AttemptTable {
  /// How many keys it takes: half of its places, so that none is far from where it is looked for.
  static let limit = AttemptPlaces.count / 2

  /// Where they stand, also those of a copy.
  let places = AttemptPlaces()
  private var entries: UnsafeMutablePointer<AttemptPlaces.Entry> { places.entries }
  /// Whether anything was ever written there. Most servers never refuse a push, and that memory stays untouched.
  private var isBegun = false
  /// How many pushes are counted.
  private(set) var count = 0

  /// The number of a push's next attempt; nil if it is not counted.
  ///
  /// - Parameter now: monotonic nanoseconds.
  func next(_ key: UInt64, now: Int64) -> Int32? { place(of: key).map { next(at: $0, now: now) } }

  /// Counts an attempt of a push that is counted already.
  ///
  /// - Returns: its number; nil if the push is not counted.
  mutating func count(_ key: UInt64, now: Int64) -> Int32? {
    guard let place = place(of: key) else { return nil }
    let attempts = next(at: place, now: now)
    entries[place] = AttemptPlaces.Entry(key: key, attempts: attempts, last: Self.ticks(now))
    return attempts
  }

  /// Begins to count a push that is not counted. Not for a table that has reached its limit.
  mutating func insert(_ key: UInt64, attempts: Int32, now: Int64) {
    if !isBegun { places.clear() }
    isBegun = true
    entries[walk(to: key)] = AttemptPlaces.Entry(key: key, attempts: attempts, last: Self.ticks(now))
    count += 1
  }

  /// Ends the count of a push.
  ///
  /// - Returns: the number that its next attempt would have had; nil if it was not counted.
  @discardableResult
  mutating func remove(_ key: UInt64, now: Int64 = 0) -> Int32? {
    guard let place = place(of: key) else { return nil }
    let attempts = next(at: place, now: now)
    count -= 1
    var gap = place
    var other = places.next(gap)
    // Those behind it are looked for from their first place on, up to the first gap.
    while entries[other].attempts > 0 {
      let first = places.first(for: entries[other].key)
      if places.distance(from: first, to: other) >= places.distance(from: gap, to: other) {
        entries[gap] = entries[other]
        gap = other
      }
      other = places.next(other)
    }
    entries[gap] = AttemptPlaces.Entry()
    return attempts
  }

  /// Forgets all. Keeps the memory, for there will be as many again.
  mutating func removeAll() {
    guard count > 0 else { return }
    places.clear()
    count = 0
  }

  private func next(at place: Int, now: Int64) -> Int32 {
    // Of two threads one may have looked at the clock before the other: then it is less than nothing.
    let silence = Int32(bitPattern: Self.ticks(now) &- entries[place].last)
    guard silence < Int32(Self.ticks(AttemptCounter.silence)) else { return 1 }
    let attempts = entries[place].attempts
    return max(attempts, attempts &+ 1)
  }

  /// Milliseconds, nearly, in few bits: they begin anew after weeks, and nobody asks for an entry that is older than twice
  /// the silence.
  private static func ticks(_ time: Int64) -> UInt32 { UInt32(truncatingIfNeeded: time >> 20) }

  /// Where a push is that is counted.
  private func place(of key: UInt64) -> Int? {
    if count == 0 { return nil }
    let place = walk(to: key)
    return entries[place].attempts > 0 ? place : nil
  }

  /// Where a key is, or else the first gap, where it would be.
  private func walk(to key: UInt64) -> Int {
    var place = places.first(for: key)
    while entries[place].attempts > 0, entries[place].key != key { place = places.next(place) }
    return place
  }
}

/// The memory of a table. Apart from it, for those who ask for what will be looked at ahead, while others count.
final class AttemptPlaces: Sendable {
  /// How many there are.
  static let count = 1 << bits
  private static let bits = 16

  /// A quarter of a line of the cache.
  struct Entry {
    var key: UInt64 = 0
    /// How often the push came; 0 in a gap.
    var attempts: Int32 = 0
    /// When it came last, in ticks of the table.
    var last: UInt32 = 0
  }

  /// They are there as long as this is, and mean nothing before `clear`. Safe to share: only the one table that this
  /// belongs to reads or writes them, behind the lock of its counter.
  nonisolated(unsafe) let entries: UnsafeMutablePointer<Entry>
  /// Drawn for each table: whoever makes keys on purpose does not know which of them belong into one place.
  private let factor = UInt64.random(in: .min ... .max) | 1

  init() { entries = .allocate(capacity: Self.count) }

  deinit { entries.deallocate() }

  /// Begins with nothing in any of them.
  func clear() { entries.initialize(repeating: Entry(), count: Self.count) }

  /// Where a key is looked for first.
  func first(for key: UInt64) -> Int { Int((key &* factor) >> UInt64(64 - Self.bits)) }

  /// Where it is looked for after that.
  func next(_ place: Int) -> Int { (place + 1) & (Self.count - 1) }

  /// How many steps it is from one to another.
  func distance(from one: Int, to other: Int) -> Int { (other - one) & (Self.count - 1) }

  /// Asks for the memory where a key is going to be looked for.
  func prefetch(_ key: UInt64) {
    CacheLines.prefetchForWriting(entries + first(for: key), count: 1)
  }
}
