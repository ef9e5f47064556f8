import NIOCore

/// What happens often and is told seldom.
package struct SeldomNews: Sendable {
  private static let interval = TimeAmount.minutes(1)
  private var last: NIODeadline?

  /// Nothing was told yet.
  package init() {}

  /// Whether it is told this time.
  package mutating func isDue() -> Bool {
    let now = NIODeadline.now()
    if let last, now - last < Self.interval { return false }
    last = now
    return true
  }
}
