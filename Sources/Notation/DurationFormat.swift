/// Formats and parses durations such as `1.8ms`, `1.5s`, `12m3s`, `1h` or `-5m`.
package enum DurationFormat {
  /// Returns the text of a duration. Below a second it uses the largest fitting unit with up to two decimals; from a
  /// second on, hours, minutes and seconds with up to three decimals, without parts that are zero.
  package static func text(_ duration: Duration) -> String {
    let (seconds, attoseconds) = duration.components
    if duration < .zero {
      // The most negative duration has no positive counterpart; its neighbor has the same text.
      return "-" + text(seconds == .min ? .seconds(Int64.max) : .zero - duration)
    }
    let nanoseconds = Int(attoseconds / 1_000_000_000)
    if seconds == 0 {
      switch nanoseconds {
      case 0: return "0s"
      case ..<1000: return "\(nanoseconds)ns"
      case ..<1_000_000: return decimal(nanoseconds, per: 1000) + "us"
      default: return decimal(nanoseconds, per: 1_000_000) + "ms"
      }
    }
    let milliseconds = nanoseconds / 1_000_000
    let hours = seconds / 3600
    let minutes = seconds / 60 % 60
    let rest = Int(seconds % 60)
    var text = hours > 0 ? "\(hours)h" : ""
    if minutes > 0 { text += "\(minutes)m" }
    if rest > 0 || milliseconds > 0 { text += "\(rest)\(fraction(milliseconds, digits: 3))s" }
    return text
  }

  /// Parses a duration: one or more numbers, decimals allowed, each with one of the units `ns us ms s m h d`, and
  /// optionally a minus sign before all. Nil if the text is invalid, or longer than 10 000 years.
  package static func duration(_ text: some StringProtocol) -> Duration? {
    var rest = text[...]
    let negative = rest.first == "-"
    if negative { rest.removeFirst() }
    guard !rest.isEmpty else { return nil }
    var total = 0.0
    while !rest.isEmpty {
      let digits = rest.prefix { ("0"..."9").contains($0) || $0 == "." }
      rest = rest.dropFirst(digits.count)
      let unit = rest.prefix { $0.isLetter }
      rest = rest.dropFirst(unit.count)
      guard let value = Double(digits), let factor = nanoseconds(perUnit: String(unit)) else { return nil }
      total += value * factor
    }
    guard total <= 10_000 * 366 * 86_400e9 else { return nil }
    let seconds = (total / 1e9).rounded(.down)
    let result = Duration.seconds(Int64(seconds)) + .nanoseconds(Int64((total - seconds * 1e9).rounded()))
    return negative ? .zero - result : result
  }

  private static func nanoseconds(perUnit unit: String) -> Double? {
    switch unit {
    case "ns": 1
    case "us", "µs": 1e3
    case "ms": 1e6
    case "s": 1e9
    case "m": 60e9
    case "h": 3600e9
    case "d": 86_400e9
    default: nil
    }
  }

  /// Returns `value / unit` with up to two decimals, truncated so that 999.999 µs does not become 1000 µs.
  private static func decimal(_ value: Int, per unit: Int) -> String {
    "\(value / unit)\(fraction(value % unit * 100 / unit, digits: 2))"
  }

  private static func fraction(_ value: Int, digits: Int) -> String {
    guard value > 0 else { return "" }
    var text = String(value)
    text = String(repeating: "0", count: digits - text.utf8.count) + text
    while text.last == "0" { text.removeLast() }
    return "." + text
  }
}
