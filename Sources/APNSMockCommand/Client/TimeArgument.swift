import Notation

/// Times as people give them to commands, and read them.
enum TimeArgument {
  /// What `milliseconds(_:now:)` takes, in words.
  static let allowed = "give RFC 3339 (2026-01-31T12:00:00Z), seconds since 1970, or a duration from now (-10m, 5m)"

  /// Milliseconds since 1970, or nil if `text` is no time.
  static func milliseconds(_ text: String, now: Int64) -> Int64? {
    if let time = WrittenTime.milliseconds(text) { return time }
    if let seconds = Int64(text) {
      // Beyond the year 9999 no time can be written down; it is a mistake in the unit.
      return seconds.magnitude < 253_402_300_800 ? seconds * 1000 : nil
    }
    let sign = text.hasPrefix("+") ? 1 : 0
    guard let change = WrittenDuration.duration(text.dropFirst(sign)) else { return nil }
    let (seconds, attoseconds) = change.components
    return now + seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }

  /// RFC 3339, or a number where there is no writing it down.
  ///
  /// - Parameter time: milliseconds since 1970.
  static func text(_ time: Int64) -> String { WrittenTime.text(time) ?? "\(time) ms since 1970" }
}
