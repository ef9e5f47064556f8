/// How often the provider token of one connection changed, and the latch that closes when it was too often: rows 7 and
/// 13 of APNS.md section 8.2, timing of section 3.2.
struct TokenUpdates: Sendable {
  private struct Seen: Equatable {
    var keyID: String
    var issuedAt: Int64
  }

  /// The tokens this connection has used, at most `memory`; the oldest gives way.
  private var seen: [Seen] = []
  private var oldest = 0
  /// When a token was last taken that was not seen before.
  private var lastChange: Int64?
  /// How many changes since the last slow one came too early.
  private(set) var fastChanges = 0
  private var isLatched = false

  /// Enough for a day of changes every 20 minutes, each of them remembered.
  private static let memory = 72

  /// When the latch opens again, if it is closed at `now`.
  mutating func latchedUntil(now: Int64, interval: Int64) -> Int64? {
    guard isLatched, let change = lastChangeNotAfter(now) else { return nil }
    if now &- change < interval { return change.addingReportingOverflow(interval).partialValue }
    isLatched = false
    return nil
  }

  /// Takes note of the token in use.
  ///
  /// - Returns: `false`, with the latch closed, if it is one change too many within `interval`.
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

  /// Closes the latch as if a change had come too early.
  mutating func latch(now: Int64) {
    lastChange = now
    isLatched = true
  }

  /// A clock that was turned back must not hold a connection for longer than the interval.
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
