internal import Faults
internal import Inbox
internal import Notation

/// A snapshot of how often each active rule was evaluated and fired.
struct RuleCounts {
  private struct Key: Hashable {
    var profile: String?
    var rule: String
  }

  private let counts: [Key: (looks: Int, fired: Int)]

  init(_ tallies: Tallies) {
    counts = Dictionary(
      tallies.explanations.map { (Key(profile: $0.profile, rule: $0.rule), (looks: $0.looks, fired: $0.fired)) },
      uniquingKeysWith: { first, _ in first })
  }

  /// Writes the counts of a rule as two members.
  ///
  /// - Parameter profile: The rule's profile; nil for an added rule.
  func write(_ rule: String, of profile: String?, to writer: inout JSONWriter) {
    let count = counts[Key(profile: profile, rule: rule)]
    writer.member("looked_at", count?.looks ?? 0)
    writer.member("fired", count?.fired ?? 0)
  }
}

/// Formats the time until an expiry.
enum RemainingTime {
  /// Returns the remaining time in whole seconds, or in milliseconds if it is below a second; nil if there is no
  /// expiry.
  ///
  /// - Parameter end: The expiry, in monotonic nanoseconds.
  static func text(until end: Int64?) -> String? {
    guard let end else { return nil }
    let rest = max(0, end - MachineTime.nanoseconds)
    let unit: Int64 = rest < 1_000_000_000 ? 1_000_000 : 1_000_000_000
    return WrittenDuration.text(.nanoseconds(rest / unit * unit))
  }
}
