internal import APNSRules

extension Trigger.Window {
  /// When the opening began in which a moment lies; nil if the window is closed then. All times in nanoseconds since
  /// the activation.
  func opening(at elapsed: Int64) -> Int64? {
    guard elapsed >= firstOpening else { return nil }
    var begin = firstOpening
    if let period { begin += (elapsed - firstOpening) / period * period }
    if let length, elapsed - begin >= length.nanoseconds { return nil }
    return begin
  }

  /// When it opens next after a moment; nil for never. All times in nanoseconds since the activation.
  func nextOpening(after elapsed: Int64) -> Int64? {
    if elapsed < firstOpening { return firstOpening }
    guard let period else { return nil }
    let (next, isNever) = (firstOpening + (elapsed - firstOpening) / period * period).addingReportingOverflow(period)
    return isNever ? nil : next
  }

  /// Which opening it is that began at a moment, from 0.
  func ordinal(of opening: Int64) -> Int {
    period.map { Int((opening - firstOpening) / $0) } ?? 0
  }

  private var firstOpening: Int64 { after > .zero ? after.nanoseconds : period ?? 0 }

  private var period: Int64? { every.flatMap { $0 > .zero ? $0.nanoseconds : nil } }
}
