internal import APNSMockNotation

internal import APNSMockHTTPMessage

/// The checks of the credential (Protocol.md, section 8.2): `credential` to `token_updates`. With a client certificate, `authorization` is ignored
/// (section 4.2, documented).
extension Rulebook {
  /// Returns the kind of credential of a request.
  func credential(
    _ facts: PushFacts, _ packed: UnsafeRawBufferPointer, authentication: borrowing ConnectionAuthentication
  ) -> Verdict.Credential {
    if authentication.certificate != nil { return .certificate }
    guard let authorization = facts.authorization else { return .none }
    return packed[authorization].isBareScheme ? .none : .token
  }

  /// Makes all checks of these rows.
  func checkCredential(
    _ facts: PushFacts, _ packed: UnsafeRawBufferPointer, authentication: inout ConnectionAuthentication,
    keys: TrustedKeySet, now: ServerTime,
    verdict: inout Verdict
  ) throws(Rejection) {
    if let certificate = authentication.certificate { return try checkCertificate(certificate) }
    guard verdict.credential == .token, let range = facts.authorization else {
      throw Self.noCredential
    }
    let authorization = packed[range]
    authentication.known.invalidate(unlessVerifiedWith: ProviderTokenCache.Basis(keys: keys.version, mode: mode))
    verdict.token = authentication.known.find(authorization)
    if mode != .lenient, let end = blockedUntil(&authentication, now: now) {
      if verdict.token == nil { verdict.token = ProviderTokenVerification.unverified(authorization, mode: mode) }
      throw updatesBlocked(until: end, now: now)
    }
    if authentication.hasExpiredToken, closesOnExpiredToken {
      // Applies also to a token accepted on other connections: its own age does not matter here.
      verdict.token = ProviderTokenVerification.unverified(authorization, mode: mode)
      throw rejectsNewTokens ? Self.connectionHasExpiredToken(movedClock) : Self.connectionHasExpiredToken
    }
    // A token that passed all checks before on this connection can only fail by its age.
    if let token = verdict.token, token === authentication.known.current, let issuedAt = token.issuedAt {
      return try checkAge(issuedAt, now: now)
    }
    let token = verdict.token ?? verification(keys).verify(authorization)
    if verdict.token == nil { authentication.known.remember(token, authorization) }
    verdict.token = token
    try checkToken(token, authentication: &authentication, keys: keys, now: now)
  }

  private func verification(_ keys: TrustedKeySet) -> ProviderTokenVerification {
    ProviderTokenVerification(mode: mode, keys: keys, acceptsUnknownKeys: acceptsUnknownKeys)
  }

  /// Rejects a client certificate of the mock's own authority that is no provider certificate (section 13, `BadCertificate` as a response).
  private func checkCertificate(_ certificate: ProviderCertificate) throws(Rejection) {
    guard certificate.development || certificate.production else { throw Self.noProviderCertificate }
  }

  private static let noCredential = Rejection(.credential, .missingProviderToken) { _, _ in
    "the request has neither a client certificate nor a provider token: send authorization: bearer <JWT>"
  }
  private static let connectionHasExpiredToken = connectionHasExpiredToken("")

  private static func connectionHasExpiredToken(_ clock: String) -> Rejection {
    Rejection(.providerTokenAge, .expiredProviderToken) { _, _ in
      "an earlier provider token on this connection had expired, and APNs then accepts no other token on it: open a new "
        + "connection (setting expired_token_closes)\(clock)"
    }
  }
  private static let noProviderCertificate = Rejection(.certificate, .badCertificate) { facts, _ in
    "the client certificate has neither of the extensions 1.2.840.113635.100.6.3.1 and .2, so it is not a provider "
      + "certificate: make one with apns-mock certs client --topic T\(facts.ignoredTokenNote)"
  }

  /// The checks of a token whose signature was verified.
  private func checkToken(
    _ token: ProviderToken, authentication: inout ConnectionAuthentication, keys: TrustedKeySet, now: ServerTime
  ) throws(Rejection) {
    guard let key = token.key, let issuedAt = token.issuedAt else { throw token.invalidity }
    try checkAge(issuedAt, now: now)
    try checkEnvironment(key)
    try checkBinding(key, to: authentication.binding)
    if authentication.binding == nil {
      authentication.binding = key
      if requiresKnownTopics { authentication.boundApps = KnownApps(apps: apps, keys: keys) }
    }
    try checkUpdate(key: key, issuedAt: issuedAt, authentication: &authentication, now: now)
    authentication.known.accept(token)
    authentication.providerTokenAccepted = true
  }

  /// Age of the provider token: `iat` is within an hour of `now`, both ends inclusive (section 3.2; for the future, section
  /// 13).
  private func checkAge(_ issuedAt: ServerTime, now: ServerTime) throws(Rejection) {
    // `iat` has a resolution of seconds: a token made at 12:00:00.9 has 12:00:00 and is valid until 13:00:00.9.
    let age = (now &- issuedAt) / 1000 * 1000
    if age > times.maxAge {
      throw Rejection(.providerTokenAge, .expiredProviderToken) { [limit = times.maxAge, clock = movedClock] _, _ in
        "iat is \(Explanation.time(age)) old (\(Explanation.timestamp(issuedAt))), at most "
          + "\(Explanation.time(limit)) are allowed: make a new provider token every 20 to 60 minutes\(clock)"
      }
    }
    if age < -times.maxIssuedAhead {
      throw Rejection(.providerTokenAge, .expiredProviderToken) {
        [limit = times.maxIssuedAhead, clock = movedClock] _, _ in
        let hint =
          Self.unit(ofIssuedAt: issuedAt / 1000).map { "it looks like \($0), write seconds" } ?? "check the clock"
        return "iat is \(Explanation.time(age)) in the future (\(Explanation.timestamp(issuedAt))), at most "
          + "\(Explanation.time(limit)) are allowed: \(hint)\(clock)"
      }
    }
  }

  /// Returns the unit in which a number of seconds that lies thousands of years ahead is a time of today; nil if it does
  /// not.
  private static func unit(ofIssuedAt seconds: Int64) -> String? {
    switch seconds {
    case ..<100_000_000_000: nil
    case ..<100_000_000_000_000: "milliseconds"
    case ..<3_000_000_000_000_000: "microseconds"
    default: "nanoseconds"
    }
  }

  /// The advice if the server's clock was moved so far that no new provider token is valid; else empty.
  private var movedClock: String {
    guard rejectsNewTokens else { return "" }
    let direction = clockOffset > 0 ? "ahead of" : "behind"
    return ". The server's clock was moved and is \(Explanation.time(abs(clockOffset))) \(direction) the machine's, so "
      + "that a provider token signed now is 403, too: run apns-mock clock real; to test the renewal of tokens without "
      + "moving the clock, use the profile expired-jwt-403"
  }

  /// Environment of the key: a key is not limited to the other environment (section 3.3).
  private func checkEnvironment(_ key: TrustedKey) throws(Rejection) {
    guard let only = key.environment, only != environment else { return }
    throw Rejection(.keyEnvironment, settings.environmentKeyReason) { [keyID = key.keyID, environment] _, _ in
      "key \(keyID) is for \(only.rawValue) only, this is \(environment.rawValue): use a key of this environment"
    }
  }

  /// Team of the connection and related key: the first accepted token binds the connection to its team, and a topic-specific key to itself
  /// and its related key (section 3.3).
  private func checkBinding(_ key: TrustedKey, to first: TrustedKey?) throws(Rejection) {
    guard let first else { return }
    guard key.teamID == first.teamID else {
      throw Rejection(.connectionTeam, .invalidProviderToken) { [first = first.teamID, other = key.teamID] _, _ in
        "the connection belongs to team \(first) since its first push, this token is of team \(other): "
          + "open a connection for each team"
      }
    }
    // Any team keys may share a connection; a topic-specific key may share it only with its related key.
    let areTeamKeys = key.topics == nil && first.topics == nil
    let areTopicKeys = key.topics != nil && first.topics != nil
    let areRelated = key.relatedKeyID == first.keyID || first.relatedKeyID == key.keyID
    guard areTeamKeys || key.keyID == first.keyID || areTopicKeys && areRelated else {
      throw Rejection(.relatedKey, .unrelatedKeyIdInToken) { [first = first.keyID, other = key.keyID] _, _ in
        "key \(other) is not related to \(first), with which this connection began: open a connection for each key"
      }
    }
  }

  /// Returns until when the connection, or its team, is blocked after too many token updates; nil if it is not. The team is
  /// known once a provider token was accepted; before that, `checkUpdate` makes the check.
  private func blockedUntil(_ authentication: inout ConnectionAuthentication, now: ServerTime) -> Int64? {
    let interval = times.updateInterval
    if let end = authentication.updates.blockedUntil(now: now, interval: interval) { return end }
    guard settings.tokenUpdateScope == .team, let team = authentication.binding?.teamID else { return nil }
    return authentication.teamUpdates?.with(team) { $0.blockedUntil(now: now, interval: interval) }
  }

  /// Number of token updates: the provider token does not change too often (section 3.2). Not checked in `lenient`.
  private func checkUpdate(
    key: TrustedKey, issuedAt: ServerTime, authentication: inout ConnectionAuthentication, now: ServerTime
  ) throws(Rejection) {
    guard mode != .lenient else { return }
    let (interval, free) = (times.updateInterval, settings.freeTokenUpdates)
    func admit(_ updates: inout TokenUpdates) -> (isInTime: Bool, fastChanges: Int, blockedUntil: Int64?) {
      if let end = updates.blockedUntil(now: now, interval: interval) { return (false, 0, end) }
      let isInTime = updates.admit(keyID: key.keyID, issuedAt: issuedAt, now: now, interval: interval, free: free)
      return (isInTime, updates.fastChanges, nil)
    }
    let shared = settings.tokenUpdateScope == .team ? authentication.teamUpdates : nil
    let result = shared?.with(key.teamID, admit) ?? admit(&authentication.updates)
    if let end = result.blockedUntil { throw updatesBlocked(until: end, now: now) }
    guard result.isInTime else {
      let (owner, changes) = (updatesOwner, result.fastChanges + 1)
      throw Rejection(.tokenUpdates, .tooManyProviderTokenUpdates) { _, _ in
        "the provider token of the \(owner) changed \(changes) times within less than "
          + "\(Explanation.time(interval)) of the one before: make one every 20 to 60 minutes and share it"
      }
    }
  }

  private func updatesBlocked(until end: Int64, now: ServerTime) -> Rejection {
    Rejection(.tokenUpdatesBlocked, .tooManyProviderTokenUpdates) { [owner = updatesOwner] _, _ in
      "the \(owner) changed its provider token too often and is refused until \(Explanation.timestamp(end)), "
        + "\(Explanation.time(end &- now)) from now: keep one token for 20 to 60 minutes"
    }
  }

  /// What changes of the provider token are counted for, in explanations.
  private var updatesOwner: String { settings.tokenUpdateScope.rawValue }
}

extension UnsafeRawBufferPointer {
  /// Whether the value is the scheme `bearer` without a provider token.
  fileprivate var isBareScheme: Bool {
    guard count < 7 || self[count - 1] == 0x20 else { return false }
    return prefix(6).count == 6 && zip(self, "bearer".utf8).allSatisfy { $0 | 0x20 == $1 }
      && dropFirst(6).allSatisfy { $0 == 0x20 }
  }
}

extension PushFacts {
  /// The remark that `authorization` is ignored, for the explanation of a rejection on a connection with a client
  /// certificate; empty without the header (Protocol.md, section 4.2, documented).
  var ignoredTokenNote: String {
    authorization == nil ? "" : "; the provider token is ignored, because the connection has a client certificate"
  }
}
