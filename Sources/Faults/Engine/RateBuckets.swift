internal import APNSRules

/// Token buckets, one for each key, for `over_limit`.
///
/// Each costs one number: the time at which it will be full again (the generic cell rate algorithm).
struct RateBuckets {
  private var fullAt = KeyedTable<Int64>()

  /// How many buckets are remembered.
  var count: Int { fullAt.count }

  /// Takes one push out of a bucket.
  ///
  /// - Parameter now: monotonic nanoseconds.
  /// - Returns: `false` if the bucket was empty; such a push takes nothing.
  mutating func admit(_ key: Int, rate: Trigger.Rate, now: Int64) -> Bool {
    let interval = Int64.nanoseconds(Double(max(rate.per.nanoseconds, 1)) / rate.limit)
    let tolerance = Int64.nanoseconds(Double(interval) * (rate.burst - 1))
    let full = max(fullAt[key] ?? now, now)
    guard full - now <= tolerance else { return false }
    let (next, isNever) = full.addingReportingOverflow(interval)
    fullAt[key] = isNever ? .max : next
    return true
  }
}

extension Int64 {
  /// Nanoseconds from a number that may be anything: none below zero, the most there are when it is too large or no
  /// number at all.
  static func nanoseconds(_ value: Double) -> Int64 {
    value < 0 ? 0 : Int64(exactly: value.rounded()) ?? .max
  }
}
