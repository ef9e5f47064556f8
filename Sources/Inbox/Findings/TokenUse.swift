internal import APNSMockRules

/// The provider tokens used on one connection, for `jwt-churn`.
struct TokenUse: Sendable {
  private struct Seen: Sendable {
    let identity: UInt64
    let keyID: String?
    let issuedAt: Int64
    let seq: Int
  }

  /// The number of tokens remembered, the same as APNs is assumed to remember (`TokenUpdates`).
  private static let capacity = 72

  private var current: UInt64?
  private var seen: [Seen] = []
  /// The time when a new token was first used, by the server's clock.
  private var changedAt: Int64 = 0
  /// Whether the current token was rejected, so that a new one was required.
  private var isRefused = false

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
  private static let limit = 4096

  private var refusals = GenerationalCache<UInt64, SharedRejection>(limit: limit)

  /// Whether no token was rejected as expired.
  var isEmpty: Bool { refusals.isEmpty }

  /// Analyzes an attempt that has ended.
  ///
  /// - Parameter end: Returns how a connection has ended; nil for an open one.
  mutating func analyze(
    _ record: borrowing Record, _ push: PushKey, _ end: (UInt64) -> ConnectionEnd.Closing?
  ) -> FindingEvidence? {
    guard let token = record.verdict?.token?.identity else { return nil }
    let isRefused = record.outcome == .rejected && record.sentResponse.reason == .expiredProviderToken
    guard var refusal = refusals[token] else {
      // A token whose signature was not checked is rejected because an earlier one on its connection had expired.
      if isRefused, record.verdict?.token?.signature == .valid {
        refusals[token] = SharedRejection(record, push)
      }
      return nil
    }
    guard let delay = refusal.delay(of: record, push, end) else {
      if isRefused {
        refusal.add(record, push)
        refusals[token] = refusal
      }
      return nil
    }
    return FindingEvidence(.jwtStale, with: [refusal.seq], .expired(after: delay))
  }
}

/// The provider tokens that the connections of a team use at the same time, for `token-per-process`.
///
/// A connection is reported when it uses its token well after another connection began to use another one. A renewal
/// is not reported: the connection that brings a new token did not use it before, and after a renewal a former token
/// may be used for a while on connections that finish.
struct ConcurrentTokens: Sendable {
  /// The token that a connection uses.
  struct Use: Sendable {
    fileprivate let keyID: String?
    fileprivate let issuedAt: Int64
    /// A hash of the team and the topic of the push with which the connection began to use the token: test suites that
    /// share a server have topics of their own.
    fileprivate let group: Int
    /// The arrival of that push, in monotonic nanoseconds.
    fileprivate let since: Int64
    fileprivate var isReported = false

    fileprivate func isSame(as token: ProviderToken) -> Bool { issuedAt == token.issuedAt && keyID == token.keyID }
  }

  /// The first push that used a token.
  private struct FirstUse: Sendable {
    let use: Use
    /// The `identity` of the connection.
    let connection: UInt64
    let seq: Int
  }

  private static let groupLimit = 1024
  /// The maximum number of tokens remembered for each group.
  private static let tokenLimit = 8

  private var firstUses = GenerationalCache<Int, [FirstUse]>(limit: groupLimit)

  /// Analyzes a push.
  ///
  /// - Parameters:
  ///   - use: The token that the connection used before; updated.
  ///   - interval: The minimum time for which a token should be used, in milliseconds.
  mutating func analyze(
    _ record: borrowing Record, _ token: ProviderToken, of use: inout Use?, interval: Int64
  ) -> FindingEvidence? {
    guard token.signature == .valid, let issuedAt = token.issuedAt, !record.refusesToken else { return nil }
    guard let current = use, current.isSame(as: token) else {
      let new = Use(keyID: token.keyID, issuedAt: issuedAt, group: record.tokenGroup(token), since: record.arrivedAt)
      begin(new, record)
      use = new
      return nil
    }
    guard !current.isReported, let firstUses = firstUses[current.group], firstUses.count > 1 else { return nil }
    let connection = record.connection.identity
    for other in firstUses where other.connection != connection && !other.use.isSame(as: token) {
      let elapsed = record.arrivedAt &- other.use.since
      // Tokens whose times of issue are so close are not the former and the new one of a provider that renews in time.
      let isRenewal = other.use.keyID != token.keyID || (other.use.issuedAt &- issuedAt).magnitude >= interval.magnitude
      let minimum = isRenewal ? FindingThreshold.renewal : FindingThreshold.reaction
      guard other.use.since > current.since, elapsed >= minimum else { continue }
      use?.isReported = true
      return FindingEvidence(.tokenPerProcess, with: [other.seq], .otherToken(after: elapsed))
    }
    return nil
  }

  private mutating func begin(_ use: Use, _ record: borrowing Record) {
    var known = firstUses[use.group] ?? []
    guard !known.contains(where: { $0.use.issuedAt == use.issuedAt && $0.use.keyID == use.keyID }) else { return }
    if known.count == Self.tokenLimit { known.removeFirst() }
    known.append(FirstUse(use: use, connection: record.connection.identity, seq: record.seq))
    firstUses[use.group] = known
  }
}

extension Record {
  /// A hash of the team of its provider token and of its topic.
  fileprivate func tokenGroup(_ token: ProviderToken) -> Int {
    var hasher = Hasher()
    hasher.combine(token.teamID)
    withTopic { topic in if let topic { hasher.combine(bytes: topic) } }
    return hasher.finalize()
  }

  /// Whether the response requires another provider token.
  fileprivate var refusesToken: Bool {
    sentResponse.reason == .expiredProviderToken || sentResponse.reason == .invalidProviderToken
  }
}
