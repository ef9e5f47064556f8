internal import APNSRules
internal import Notation

/// The provider tokens used on one connection, for `jwt-churn`.
struct TokenUse: Sendable {
  private struct Seen: Sendable {
    let identity: Int
    let keyID: String?
    let issuedAt: Int64
    let seq: Int
  }

  /// The number of tokens remembered, the same as APNs is assumed to remember (`TokenUpdates`).
  private static let capacity = 72

  private var current: Int?
  private var seen: [Seen] = []
  /// The time when a new token was first used, by the server's clock.
  private var changedAt: Int64 = 0
  /// Whether the current token was rejected, so that a new one was required.
  private var isRefused = false

  /// The current token; nil before the first.
  var identity: Int? { current }

  /// Analyzes a push.
  ///
  /// - Parameter interval: The minimum time for which a token should be used, in milliseconds.
  mutating func analyze(_ record: borrowing Record, _ token: ProviderToken, interval: Int64) -> FindingEvidence? {
    defer { if record.refusesToken { isRefused = true } }
    if token.identity == current { return nil }
    // Tokens that are not valid are rejected, so they do not become the current token.
    guard token.signature == .valid, let issuedAt = token.issuedAt else { return nil }
    let wasRefused = isRefused
    isRefused = false
    current = token.identity
    if seen.contains(where: { $0.identity == token.identity }) { return nil }
    let duplicate = seen.last { $0.keyID == token.keyID && $0.issuedAt == issuedAt }
    let (former, elapsed) = (seen.last, record.receivedAt &- changedAt)
    if seen.count == Self.capacity { seen.removeFirst() }
    seen.append(Seen(identity: token.identity, keyID: token.keyID, issuedAt: issuedAt, seq: record.seq))
    changedAt = record.receivedAt
    guard let former, !wasRefused else { return nil }
    if let duplicate { return FindingEvidence(.jwtChurn, with: [duplicate.seq], .sameClaims) }
    // After the clock was turned back, the elapsed time is unknown.
    guard elapsed >= 0, elapsed < interval else { return nil }
    return FindingEvidence(.jwtChurn, with: [former.seq], .earlyToken(after: elapsed, minimum: interval))
  }
}

/// Expired provider tokens and their further use, for `jwt-stale`.
struct StaleTokens: Sendable {
  private struct Refusal: Sendable {
    let seq: Int
    let endedAt: Int64
    let push: PushKey
  }

  private static let limit = 4096

  private var refusals = GenerationalCache<Int, Refusal>(limit: limit)

  /// Whether no token was rejected as expired.
  var isEmpty: Bool { refusals.isEmpty }

  /// Analyzes an attempt that has ended.
  ///
  /// - Parameter mayBeInFlight: Returns whether the push may have been sent before the client read a response sent at
  ///   `endedAt`.
  mutating func analyze(
    _ record: borrowing Record, _ push: PushKey, mayBeInFlight: (_ endedAt: Int64) -> Bool
  ) -> FindingEvidence? {
    guard let token = record.verdict?.token?.identity else { return nil }
    guard let refusal = refusals[token] else {
      // A token whose signature was not checked is rejected because an earlier one on its connection had expired.
      if record.served.reason == .expiredProviderToken, record.verdict?.token?.signature == .valid {
        refusals[token] = Refusal(seq: record.seq, endedAt: record.endedAt, push: push)
      }
      return nil
    }
    // A retry of the same push shows that the client read its response.
    guard record.arrivedAt >= refusal.endedAt, push == refusal.push || !mayBeInFlight(refusal.endedAt) else {
      return nil
    }
    return FindingEvidence(.jwtStale, with: [refusal.seq], .expired(after: record.arrivedAt &- refusal.endedAt))
  }
}

extension Record {
  /// Whether the response requires another provider token.
  fileprivate var refusesToken: Bool {
    served.reason == .expiredProviderToken || served.reason == .invalidProviderToken
  }
}
