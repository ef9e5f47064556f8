internal import APNSRules

/// The provider tokens used on one connection, for `jwt-churn`.
struct TokenUse: Sendable {
  private struct Seen: Sendable {
    let identity: Int
    let keyID: String?
    let issuedAt: Int64
    let seq: Int
  }

  /// The number of tokens remembered, the same as APNs is assumed to remember (`TokenUpdates`).
  private static let memory = 72

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
  mutating func take(_ record: borrowing Record, _ token: ProviderToken, interval: Int64) -> FindingEvidence? {
    defer { if record.refusesToken { isRefused = true } }
    if token.identity == current { return nil }
    // Tokens that are not valid are rejected, so they do not become the current token.
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
    if let twin { return FindingEvidence(.jwtChurn, with: [twin.seq], .sameClaims) }
    // After the clock was turned back, the elapsed time is unknown.
    guard elapsed >= 0, elapsed < interval else { return nil }
    return FindingEvidence(.jwtChurn, with: [former.seq], .earlyToken(after: elapsed, least: interval))
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
  /// - Parameter isUnderWay: Returns whether the push may have been sent before the client read a response sent at
  ///   `endedAt`.
  mutating func take(
    _ record: borrowing Record, _ push: PushKey, isUnderWay: (_ endedAt: Int64) -> Bool
  ) -> FindingEvidence? {
    guard let token = record.verdict?.token?.identity else { return nil }
    guard let refusal = refusals[token] else {
      // A token whose signature was not checked is rejected because an earlier one on its connection had expired.
      if record.served.reason == .expiredProviderToken, record.verdict?.token?.signature == .valid {
        refusals.set(token, Refusal(seq: record.seq, endedAt: record.endedAt, push: push))
      }
      return nil
    }
    // A retry of the same push shows that the client read its response.
    guard record.arrivedAt >= refusal.endedAt, push == refusal.push || !isUnderWay(refusal.endedAt) else { return nil }
    return FindingEvidence(.jwtStale, with: [refusal.seq], .expired(after: record.arrivedAt &- refusal.endedAt))
  }
}

extension Record {
  /// Whether the response requires another provider token.
  fileprivate var refusesToken: Bool {
    served.reason == .expiredProviderToken || served.reason == .invalidProviderToken
  }
}

/// Device tokens with a 410 response, and later pushes to them, for `retried-410`.
struct UnregisteredDevices: Sendable {
  private struct Death: Sendable {
    let seq: Int
    let endedAt: Int64
    let answer: String
    let push: PushKey
    /// Whether the registry caused the 410, not a fault: then the registry also knows when the device is registered
    /// again.
    let isKnown: Bool
  }

  private static let limit = 32_768

  private var deaths = GenerationalCache<PushKey, Death>(limit: limit)

  /// Whether there was no 410 response.
  var isEmpty: Bool { deaths.isEmpty }

  /// Analyzes an attempt that has ended.
  ///
  /// - Parameter isUnderWay: Returns whether the push may have been sent before the client read a response sent at
  ///   `endedAt`.
  mutating func take(
    _ record: borrowing Record, _ push: PushKey, isUnderWay: (_ endedAt: Int64) -> Bool
  ) -> FindingEvidence? {
    let isGone = record.served.status == 410
    guard isGone || !deaths.isEmpty else { return nil }
    let facts = record.facts
    let defaultTopic = record.connection.defaultTopic(facts)
    let device = record.withHeaders { PushKey(deviceOf: $0, facts, defaultTopic: defaultTopic) }
    guard let death = deaths[device] else {
      guard isGone else { return nil }
      deaths.set(
        device,
        Death(
          seq: record.seq, endedAt: record.endedAt, answer: record.answerText, push: push,
          isKnown: record.verdict?.status == 410))
      return nil
    }
    let isAlive = record.verdict?.isAccepted == true
    if death.isKnown && isAlive {
      // The device was registered again.
      _ = deaths.remove(device)
      return nil
    }
    // A retry of the same push shows that the client read its response.
    guard record.arrivedAt >= death.endedAt, push == death.push || !isUnderWay(death.endedAt) else { return nil }
    if record.served.status == 200 { _ = deaths.remove(device) }
    return FindingEvidence(
      .retried410, with: [death.seq], .gone(answer: death.answer, after: record.arrivedAt &- death.endedAt))
  }
}

/// A bounded dictionary with two generations. When the younger one is full, the older one is dropped as a whole.
///
/// Setting an entry moves it to the younger generation, so at least the last `limit` entries are present.
struct GenerationalCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private var young: [Key: Value] = [:]
  private var old: [Key: Value] = [:]
  private let limit: Int

  /// - Parameter limit: The maximum number of entries in each generation.
  init(limit: Int) { self.limit = limit }

  /// Whether there are no entries.
  var isEmpty: Bool { young.isEmpty && old.isEmpty }

  subscript(key: Key) -> Value? { young[key] ?? old[key] }

  /// Removes an entry and returns its value.
  mutating func remove(_ key: Key) -> Value? { young.removeValue(forKey: key) ?? old.removeValue(forKey: key) }

  /// Sets the value of an entry.
  mutating func set(_ key: Key, _ value: Value) {
    if !old.isEmpty { old[key] = nil }
    if young.count >= limit, young[key] == nil {
      old = young
      young = [:]
    }
    young[key] = value
  }
}
