internal import APNSRules

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
