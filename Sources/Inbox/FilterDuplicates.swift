internal import APNSRules

extension InboxSnapshot {
  /// The numbers of the pushes that APNs took though it had taken the same push before, as far back as the inbox goes.
  ///
  /// Takes a walk through the whole inbox and, for its time, up to forty bytes for each push there is.
  ///
  /// - Returns: them in ascending order.
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

/// Push keys that were seen: a table of numbers, each at its place or at the next free one.
private struct PushKeySet {
  // No key is 0 there: that is a free place.
  private var places: [UInt64]
  private let shift: UInt64
  /// Chosen by chance, so that nobody can send pushes that all want one place.
  private let factor = UInt64.random(in: .min ... .max) | 1

  /// - Parameter capacity: how many there can be at most.
  init(capacity: Int) {
    // At most half of them are taken.
    let bits = max(4, Int.bitWidth - max(1, capacity).leadingZeroBitCount + 1)
    places = Array(repeating: 0, count: 1 << bits)
    shift = UInt64(UInt64.bitWidth - bits)
  }

  /// - Returns: whether it was not there yet.
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
