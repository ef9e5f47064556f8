internal import APNSRules

extension InboxSnapshot {
  /// Returns the `seq` of each push that was accepted again after the same push was accepted, within the records of
  /// the inbox.
  ///
  /// Reads all records and temporarily uses up to forty bytes for each of them.
  ///
  /// - Returns: The `seq` values in ascending order.
  func duplicates() -> [Int] {
    var taken = PushKeySet(capacity: count)
    var duplicates: [Int] = []
    records.forEach(in: Selection()) { record in
      if record.accepted, !taken.insert(record.pushKey) { duplicates.append(record.seq) }
      return true
    }
    return duplicates
  }
}

/// A set of push keys: a hash table with open addressing.
private struct PushKeySet {
  // 0 marks a free slot; no key in the table is 0.
  private var places: [UInt64]
  private let shift: UInt64
  /// Random, so that a client cannot choose keys that collide.
  private let factor = UInt64.random(in: .min ... .max) | 1

  /// - Parameter capacity: The maximum number of keys.
  init(capacity: Int) {
    // At most half of the slots are used.
    let bits = max(4, Int.bitWidth - max(1, capacity).leadingZeroBitCount + 1)
    places = Array(repeating: 0, count: 1 << bits)
    shift = UInt64(UInt64.bitWidth - bits)
  }

  /// Inserts a key.
  ///
  /// - Returns: Whether it was not present.
  mutating func insert(_ key: PushKey) -> Bool {
    let wanted = max(1, key.number)
    var index = Int(truncatingIfNeeded: (wanted &* factor) >> shift)
    while places[index] != 0 {
      if places[index] == wanted { return false }
      index = (index + 1) & (places.count - 1)
    }
    places[index] = wanted
    return true
  }
}
