internal import APNSRules

/// Token buckets by key, for `over_limit`.
///
/// Each bucket is stored as one number, the time at which it will be full again (generic cell rate algorithm).
struct RateBuckets {
  private var fullAt = KeyedTable<Int64>()

  /// The number of buckets in the table.
  var count: Int { fullAt.count }

  /// Takes a token from a bucket for one push.
  ///
  /// - Parameter now: monotonic nanoseconds.
  /// - Returns: `false` if the bucket was empty; the push then takes no token.
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
  /// Converts a number to nanoseconds: zero for a negative number, `Int64.max` for one that is too large or not a
  /// number.
  static func nanoseconds(_ value: Double) -> Int64 {
    value < 0 ? 0 : Int64(exactly: value.rounded()) ?? .max
  }
}
