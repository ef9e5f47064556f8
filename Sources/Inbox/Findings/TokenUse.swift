internal import APNSRules

/// The provider tokens that came on one connection: `jwt-churn`.
struct TokenUse: Sendable {
  private struct Seen: Sendable {
    let identity: Int
    let keyID: String?
    let issuedAt: Int64
    let seq: Int
  }

  /// As many as APNs is taken to remember (`TokenUpdates`).
  private static let memory = 72

  private var current: Int?
  private var seen: [Seen] = []
  /// When a token came that was not seen before, by the server's clock.
  private var changedAt: Int64 = 0
  /// The token in use was refused, so another one was called for.
  private var isRefused = false

  /// The token in use; nil before the first.
  var identity: Int? { current }

  /// Looks at a push.
  ///
  /// - Parameter interval: milliseconds that a token should be used for at least.
  mutating func take(_ record: borrowing Record, _ token: ProviderToken, interval: Int64) -> Earned? {
    defer { if record.refusesToken { isRefused = true } }
    if token.identity == current { return nil }
    // Others are refused, and what is refused is not used.
    guard token.signature == .valid, let issuedAt = token.issuedAt else { return nil }
    let wasRefused = isRefused
    isRefused = false
    current = token.identity
    if seen.contains(where: { $0.identity == token.identity }) { return nil }
    let twin = seen.last { $0.keyID == token.keyID && $0.issuedAt == issuedAt }
    let (former, elapsed) = (seen.last, record.receivedAt &- changedAt)
    if seen.count == Self.memory { seen.removeFirst() }
    seen.append(Seen(identity: token.identity, keyID: token.keyID, issuedAt: issuedAt, seq: record.seq))
    changedAt = record.receivedAt
    guard let former, !wasRefused else { return nil }
    if let twin { return Earned(.jwtChurn, with: [twin.seq], .sameClaims) }
    // A clock that was turned back says nothing of the time between.
    guard elapsed >= 0, elapsed < interval else { return nil }
    return Earned(.jwtChurn, with: [former.seq], .earlyToken(after: elapsed, least: interval))
  }
}

/// Provider tokens of which APNs said that they have expired, and who uses them on: `jwt-stale`.
struct StaleTokens: Sendable {
  private struct Refusal: Sendable {
    let seq: Int
    let endedAt: Int64
    let push: PushKey
  }

  private static let limit = 4096

  private var refusals = TwoGenerations<Int, Refusal>(limit: limit)

  /// Whether no token was refused for its age.
  var isEmpty: Bool { refusals.isEmpty }

  /// Looks at an attempt that has ended.
  ///
  /// - Parameter isUnderWay: whether a push that came at this time may have left before an answer of that time was read.
  mutating func take(
    _ record: borrowing Record, _ push: PushKey, isUnderWay: (_ endedAt: Int64) -> Bool
  ) -> Earned? {
    guard let token = record.verdict?.token?.identity else { return nil }
    guard let refusal = refusals[token] else {
      // An unchecked token is refused because an earlier one on its connection had expired.
      if record.served.reason == .expiredProviderToken, record.verdict?.token?.signature == .valid {
        refusals.set(token, Refusal(seq: record.seq, endedAt: record.endedAt, push: push))
      }
      return nil
    }
    // A retry of the very push shows that its answer was read.
    guard record.arrivedAt >= refusal.endedAt, push == refusal.push || !isUnderWay(refusal.endedAt) else { return nil }
    return Earned(.jwtStale, with: [refusal.seq], .expired(after: record.arrivedAt &- refusal.endedAt))
  }
}

extension Record {
  /// Whether the answer asks for another provider token.
  fileprivate var refusesToken: Bool {
    served.reason == .expiredProviderToken || served.reason == .invalidProviderToken
  }
}
