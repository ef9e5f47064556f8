import APNSRules
import FaultModel

/// A table that forgets keys not used recently. It has two generations; when the younger is full, the older is
/// dropped as a whole. The size is bounded however many keys a hostile client creates.
struct BoundedTable<Value: Sendable>: Sendable {
  /// The maximum number of keys in each generation.
  static var generationLimit: Int { 32_768 }

  private var young: [Int: Value] = [:]
  private var old: [Int: Value] = [:]

  /// The number of keys in the table.
  var count: Int { young.count + old.count }

  /// The value of a key, given by its hash; nil if there is none. Setting a value makes the key the most recently
  /// used.
  subscript(key: Int) -> Value? {
    get { young[key] ?? old[key] }
    set {
      old.removeValue(forKey: key)
      if newValue != nil, young.count >= Self.generationLimit, young[key] == nil {
        old = young
        young = [:]
      }
      young[key] = newValue
    }
  }
}

/// Token buckets by key, for `over_limit`.
///
/// Each bucket is stored as one number, the time at which it will be full again (generic cell rate algorithm).
struct RateBuckets {
  private var fullAt = BoundedTable<Int64>()

  /// The number of buckets in the table.
  var count: Int { fullAt.count }

  /// Removes a token from a bucket for one push.
  ///
  /// - Parameter now: Monotonic nanoseconds.
  /// - Returns: `false` if the bucket was empty; the push then removes no token.
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
