internal import APNSMockNotation
import APNSMockRules
import APNSMockFaultModel

extension Trigger {
  /// Whether the trigger counts matching pushes, not only injections.
  var isCounting: Bool { first != nil || after != nil || every != nil }

  /// Returns whether the trigger's count allows firing for the `number`-th push.
  func allows(_ number: Int) -> Bool {
    let after = number - (after ?? 0)
    return after > 0 && after <= first ?? .max && after % max(every ?? 1, 1) == 0
  }
}

extension Trigger.Probability {
  /// Returns the probability, from 0 to 1, at `elapsed` nanoseconds after activation.
  func value(at elapsed: Int64) -> Double {
    switch self {
    case .fixed(let number): return number
    case .ramp(let from, let to, let over):
      let whole = Double(over.nanoseconds)
      guard Double(elapsed) < whole else { return to }
      return from + (to - from) * max(0, Double(elapsed)) / whole
    }
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

extension TokenBuckets {
  /// Removes a token from a bucket for one push, for `over_limit`.
  ///
  /// - Parameter now: Monotonic nanoseconds.
  /// - Returns: `false` if the bucket was empty; the push then removes no token.
  mutating func admit(_ key: Int, rate: Trigger.Rate, now: MonotonicTime) -> Bool {
    let interval = Int64.nanoseconds(Double(max(rate.per.nanoseconds, 1)) / rate.limit)
    return takeToken(key, interval: interval, tolerance: .nanoseconds(Double(interval) * (rate.burst - 1)), now: now)
  }
}

extension Int64 {
  /// Converts a number to nanoseconds: zero for a negative number, `Int64.max` for one that is too large or not a
  /// number.
  static func nanoseconds(_ value: Double) -> Int64 {
    value < 0 ? 0 : Int64(exactly: value.rounded()) ?? .max
  }
}
