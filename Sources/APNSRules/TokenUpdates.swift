/// Counts the changes of one connection's provider token and latches after too many: rows 7 and 13 of Protocol.md,
/// section 8.2, with the timing of section 3.2.
struct TokenUpdates: Sendable {
  private struct Seen: Equatable {
    var keyID: String
    var issuedAt: Int64
  }

  /// The tokens used on this connection, at most `memory`; the oldest one is replaced.
  private var seen: [Seen] = []
  private var oldest = 0
  /// When a token was last accepted that was not in `seen`.
  private var lastChange: Int64?
  /// The number of consecutive changes that were too fast.
  private(set) var fastChanges = 0
  private var isLatched = false

  /// Enough for a day with a change every 20 minutes.
  private static let memory = 72

  /// Returns when the latch opens if it is closed at `now`; otherwise nil.
  mutating func latchedUntil(now: Int64, interval: Int64) -> Int64? {
    guard isLatched, let change = lastChangeNotAfter(now) else { return nil }
    if now &- change < interval { return change.addingReportingOverflow(interval).partialValue }
    isLatched = false
    return nil
  }

  /// Records the token in use.
  ///
  /// - Returns: false, with the latch closed, if it is one change too many within `interval`.
  mutating func admit(keyID: String, issuedAt: Int64, now: Int64, interval: Int64, free: Int) -> Bool {
    let token = Seen(keyID: keyID, issuedAt: issuedAt)
    if seen.contains(token) { return true }
    if let change = lastChangeNotAfter(now), now &- change < interval {
      guard fastChanges < free else {
        isLatched = true
        return false
      }
      fastChanges += 1
    } else {
      fastChanges = 0
    }
    remember(token)
    lastChange = now
    return true
  }

  /// Closes the latch as if a change had been too fast.
  mutating func latch(now: Int64) {
    lastChange = now
    isLatched = true
  }

  /// Moves a change that is in the future to `now`: a clock that was set back must not block a connection for
  /// longer than the interval.
  private mutating func lastChangeNotAfter(_ now: Int64) -> Int64? {
    if let change = lastChange, change > now { lastChange = now }
    return lastChange
  }

  private mutating func remember(_ token: Seen) {
    if seen.count < Self.memory {
      seen.append(token)
    } else {
      seen[oldest] = token
      oldest = (oldest + 1) % Self.memory
    }
  }
}
