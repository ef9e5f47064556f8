import Notation

/// Parses and formats times for commands.
enum TimeArgument {
  /// The description of what `milliseconds(_:now:)` accepts.
  static let allowed =
    "expected RFC 3339 (2026-01-31T12:00:00Z), seconds since 1970, or a duration from now (-10m, 5m)"

  /// Returns milliseconds since 1970; nil if `text` is not a time.
  static func milliseconds(_ text: String, now: Int64) -> Int64? {
    if let time = WrittenTime.milliseconds(text) { return time }
    if let seconds = Int64(text) {
      // RFC 3339 ends with the year 9999; larger numbers have the wrong unit.
      return seconds.magnitude < 253_402_300_800 ? seconds * 1000 : nil
    }
    let sign = text.hasPrefix("+") ? 1 : 0
    guard let change = WrittenDuration.duration(text.dropFirst(sign)) else { return nil }
    let (seconds, attoseconds) = change.components
    return now + seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }

  /// Returns a time in RFC 3339, or as a number if it is out of range.
  ///
  /// - Parameter time: Milliseconds since 1970.
  static func text(_ time: Int64) -> String { WrittenTime.text(time) ?? "\(time) ms since 1970" }
}
