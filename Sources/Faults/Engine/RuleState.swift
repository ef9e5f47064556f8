import FaultModel
internal import APNSRules

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

/// The values that failed a test, with their counts. Bounded in number and in size.
struct ObservedValues {
  /// The maximum number of distinct values counted separately.
  static let limit = 32
  /// The maximum length of a value; longer values are truncated.
  private static let length = 80

  /// The number of occurrences of each value; nil is an absent value.
  private(set) var counts: [String?: Int] = [:]
  /// The number of occurrences of all other values.
  private(set) var others = 0

  mutating func add(_ value: SubjectValue?, of subject: Condition.Subject) {
    let text = value.map { Self.shown($0, of: subject) }
    if counts[text] == nil, counts.count >= Self.limit {
      others &+= 1
    } else {
      counts[text, default: 0] &+= 1
    }
  }

  /// The values, the most frequent first.
  var common: [(value: String?, count: Int)] {
    counts.map { (value: $0.key, count: $0.value) }
      .sorted { ($1.count, $0.value ?? "") < ($0.count, $1.value ?? "") }
  }

  private static func shown(_ value: SubjectValue, of subject: Condition.Subject) -> String {
    let text = value.shown
    switch subject {
    case .deviceToken: return DeviceToken.abbreviated(text)
    // Never show a signature, not even in a wrong header: every JWT contains this text.
    case .header(let name) where name == "authorization" || text.contains("eyJ"): return "(not shown)"
    default:
      // Truncate by scalars: one character may consist of any number of them.
      let cut = text.unicodeScalars.prefix(length)
      return cut.endIndex == text.unicodeScalars.endIndex ? text : String(cut)
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

extension Trigger.Window {
  /// Returns the start of the opening that contains `elapsed`; nil if the window is closed then. Times are in
  /// nanoseconds since activation.
  func opening(at elapsed: Int64) -> Int64? {
    guard elapsed >= firstOpening else { return nil }
    var begin = firstOpening
    if let period { begin += (elapsed - firstOpening) / period * period }
    if let length, elapsed - begin >= length.nanoseconds { return nil }
    return begin
  }

  /// Returns the start of the next opening after `elapsed`; nil for none. Times are in nanoseconds since activation.
  func nextOpening(after elapsed: Int64) -> Int64? {
    if elapsed < firstOpening { return firstOpening }
    guard let period else { return nil }
    let (next, isNever) = (firstOpening + (elapsed - firstOpening) / period * period).addingReportingOverflow(period)
    return isNever ? nil : next
  }

  /// Returns the index, from 0, of the opening that starts at `opening`.
  func ordinal(of opening: Int64) -> Int {
    period.map { Int((opening - firstOpening) / $0) } ?? 0
  }

  private var firstOpening: Int64 { after > .zero ? after.nanoseconds : period ?? 0 }

  private var period: Int64? { every.flatMap { $0 > .zero ? $0.nanoseconds : nil } }
}
