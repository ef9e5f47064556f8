import NIOCore

/// Limits a log message to once a minute.
package struct SeldomNews: Sendable {
  private static let interval = TimeAmount.minutes(1)
  private var last: NIODeadline?

  /// Creates a limit under which the next message is due.
  package init() {}

  /// Returns whether the message may be logged now, and if so starts a new interval.
  package mutating func isDue() -> Bool {
    let now = NIODeadline.now()
    if let last, now - last < Self.interval { return false }
    last = now
    return true
  }
}
