/// Operations on `seq` values in ascending order.
extension [Int] {
  /// Returns the position of a value, or the position at which it would be inserted.
  func position(ofSeq seq: Int) -> Int {
    // The value is nearly always larger than the last one.
    guard let last, last >= seq else { return endIndex }
    return partitioningIndex { $0 >= seq }
  }
}

/// A list of `seq` values and ranges of them, such as `4,7-9`.
struct SeqRanges: Sendable {
  /// The maximum number of values and ranges in a list.
  static let maxCount = 2000

  private(set) var ranges: [ClosedRange<Int>] = []

  /// Parses a list; nil if it is invalid, empty, not ascending, or has more than `maxCount` values and ranges.
  init?(_ text: String, maxCount: Int = Self.maxCount) {
    let parts = text.split(separator: ",", maxSplits: maxCount, omittingEmptySubsequences: false)
    guard parts.count <= maxCount else { return nil }
    var ranges: [ClosedRange<Int>] = []
    for part in parts {
      let bounds = part.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
      guard bounds.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
        let first = bounds.first.flatMap({ Int($0) }), let last = bounds.last.flatMap({ Int($0) }), first <= last,
        first > ranges.last?.upperBound ?? -1
      else { return nil }
      ranges.append(first...last)
    }
    self.ranges = ranges
  }

  /// Creates a list of these values, which must ascend.
  init(_ seqs: some Sequence<Int>) { for seq in seqs { append(seq) } }

  /// Appends a value that is larger than all others.
  mutating func append(_ seq: Int) {
    if let last = ranges.last, last.upperBound == seq - 1 {
      ranges[ranges.count - 1] = last.lowerBound...seq
    } else {
      ranges.append(seq...seq)
    }
  }

  /// The list as text, such as `4,7-9`.
  var text: String {
    ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }.joined(separator: ",")
  }

  /// Returns the parts of the list between two values, each of at most `span` values.
  func slices(after: Int, before: Int, span: Int) -> [RecordSlice] {
    ranges.flatMap { range -> [RecordSlice] in
      let (first, last) = (max(range.lowerBound, after + 1), min(range.upperBound, before - 1))
      guard first <= last else { return [] }
      return RecordSlice.parts(of: first...last, span: span)
    }
  }

  /// Returns whether a value is in the list.
  func contains(_ seq: Int) -> Bool {
    let index = ranges.partitioningIndex { $0.upperBound >= seq }
    return index < ranges.count && ranges[index].contains(seq)
  }
}

/// A set of `seq` values that uses one bit for each value between the smallest and the largest.
struct SeqSet: Sendable {
  private var words: [UInt64] = []
  /// The value divided by 64 that the first word represents.
  private var base = 0
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }
  /// The smallest value; nil if the set is empty.
  var first: Int? { prefix(1).first }

  /// - Returns: false if the value is already present.
  @discardableResult
  mutating func insert(_ seq: Int) -> Bool {
    let word = seq >> 6
    if words.isEmpty { base = word }
    if word < base {
      words.insert(contentsOf: repeatElement(0, count: base - word), at: 0)
      base = word
    }
    if word - base >= words.count {
      words.append(contentsOf: repeatElement(0, count: word - base - words.count + 1))
    }
    let bit: UInt64 = 1 << UInt64(seq & 63)
    guard words[word - base] & bit == 0 else { return false }
    words[word - base] |= bit
    count += 1
    return true
  }

  /// - Returns: false if the value is not present.
  @discardableResult
  mutating func remove(_ seq: Int) -> Bool {
    let index = (seq >> 6) - base
    let bit: UInt64 = 1 << UInt64(seq & 63)
    guard words.indices.contains(index), words[index] & bit != 0 else { return false }
    words[index] &= ~bit
    count -= 1
    return true
  }

  /// Removes all values up to `seq`.
  mutating func removeAll(through seq: Int) {
    guard seq >> 6 < base + words.count else {
      self = SeqSet()
      return
    }
    guard seq >> 6 >= base else { return }
    words.removeFirst((seq >> 6) - base)
    base = seq >> 6
    words[0] &= ~(UInt64.max >> UInt64(63 - seq & 63))
    count = words.reduce(0) { $0 + $1.nonzeroBitCount }
  }

  /// Returns the smallest values, at most `limit`, in ascending order.
  func prefix(_ limit: Int) -> [Int] {
    var found: [Int] = []
    for (index, word) in words.enumerated() {
      var rest = word
      while rest != 0, found.count < limit {
        found.append((base + index) * 64 + rest.trailingZeroBitCount)
        rest &= rest - 1
      }
      if found.count >= limit { break }
    }
    return found
  }
}
