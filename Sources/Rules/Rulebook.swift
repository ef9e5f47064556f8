package import APNSMockNotation
package import APNSMockHTTPMessage

/// The validation rules of APNs. Validates pushes one by one; the only state between them is the connection's
/// `ConnectionAuthentication`.
package struct Rulebook: Sendable {
  /// How to respond where the evidence about APNs is not conclusive.
  package var mode: RuleMode { didSet { updateDerivedValues() } }
  /// The environment of the server.
  package let environment: PushEnvironment
  /// The parameters of the rules.
  package var settings: APNSSettings { didSet { updateDerivedValues() } }
  /// Whether device tokens that are not registered are rejected (`--devices known`).
  package let requiresRegisteredDevices: Bool
  /// Whether topics of apps that the credential's team is not known to have are rejected (`--topics known`).
  package let requiresKnownTopics: Bool
  /// Whether provider tokens of keys that are not known are accepted, because upstream verifies them.
  package var acceptsUnknownKeys = false
  /// The known apps.
  package var apps = AppTable()

  /// The settings in the units they are compared in, so that a push need not convert them.
  private(set) var times = Times()
  /// Whether a rejection with `ExpiredProviderToken` applies to all later requests on the connection.
  private(set) var closesOnExpiredToken = true
  private var tokenChecks = CheckSet()
  private var certificateChecks = CheckSet()

  /// Durations in milliseconds.
  struct Times: Sendable {
    var maxAge: Int64 = 0
    var maxIssuedAhead: Int64 = 0
    var updateInterval: Int64 = 0
    var unregisteredAfter: Int64 = 0
    var unregisteredDelay: Int64 = 0
  }

  /// How far the clock by which pushes are validated is ahead of the provider's, in milliseconds. For explanations only.
  package var clockOffset: Int64 = 0

  /// Whether every provider token that is signed now, by a clock that is not moved, is 403 `ExpiredProviderToken`.
  package var rejectsNewTokens: Bool { clockOffset > times.maxAge || clockOffset < -times.maxIssuedAhead }

  /// The time in milliseconds between the first accepted push after an app's removal and the first 410.
  package var unregisteredDelay: Int64 { times.unregisteredDelay }

  /// Creates the rules of one mode and environment.
  package init(
    mode: RuleMode = .apple, environment: PushEnvironment = .sandbox, settings: APNSSettings = APNSSettings(),
    requiresRegisteredDevices: Bool = false, requiresKnownTopics: Bool = false
  ) {
    self.mode = mode
    self.environment = environment
    self.settings = settings
    self.requiresRegisteredDevices = requiresRegisteredDevices
    self.requiresKnownTopics = requiresKnownTopics
    updateDerivedValues()
  }

  /// The maximum number of fields: more do not fit into the advertised list size of 8000, at 32 bytes or more each
  /// (RFC 9113 section 6.5.2). Bounds the search for repeated names regardless of the caller.
  private static let fieldLimit = 250

  /// Returns the verdict of APNs for `request`: the checks of Protocol.md, section 8.2, except the last ones of some
  /// requests. The registered device is checked by `checkDevice`; the rate per device token by
  /// `DeviceRateLimiter` and `Verdict.reject(over:)`; the limit of channels by `Verdict.rejectNewChannel(over:)`.
  ///
  /// - Parameters:
  ///   - request: The complete request.
  ///   - authentication: The connection's authentication state, which is updated.
  ///   - keys: The trusted provider keys.
  ///   - now: The server's clock, in milliseconds since 1970.
  ///   - isRegistered: Returns whether a device token is registered. Called only for tokens of zeros, which are
  ///     invalid otherwise.
  ///   - findChannel: Returns the storage policy of a channel in this environment; nil if there is none.
  package func validate(
    _ request: HTTPRequest, authentication: inout ConnectionAuthentication, keys: TrustedKeySet, now: ServerTime,
    isRegistered: (UnsafeRawBufferPointer) -> Bool = { _ in false }, findChannel: ChannelLookup = { _, _ in nil }
  ) -> Verdict {
    var verdict = Verdict()
    validate(
      request, authentication: &authentication, keys: keys, now: now, isRegistered: isRegistered,
      findChannel: findChannel, into: &verdict)
    return verdict
  }

  /// Returns the storage policy of a channel of an app; nil if there is none.
  package typealias ChannelLookup = (_ bundleID: String, _ channelID: String) -> StoragePolicy?

  /// Validates `request` and overwrites `verdict`, which avoids moving a large value.
  package func validate(
    _ request: HTTPRequest, authentication: inout ConnectionAuthentication, keys: TrustedKeySet, now: ServerTime,
    isRegistered: (UnsafeRawBufferPointer) -> Bool, findChannel: ChannelLookup, into verdict: inout Verdict
  ) {
    request.headers.bytes.withUnsafeBytes { packed in
      guard let topic = authentication.defaultTopic else {
        return validate(
          request, packed, defaultTopic: nil, authentication: &authentication, keys: keys, now: now,
          isRegistered: isRegistered, findChannel: findChannel, into: &verdict)
      }
      topic.withUnsafeBytes { topic in
        validate(
          request, packed, defaultTopic: topic.isEmpty ? nil : topic, authentication: &authentication, keys: keys,
          now: now, isRegistered: isRegistered, findChannel: findChannel, into: &verdict)
      }
    }
  }

  /// Validates a request.
  ///
  /// - Parameters:
  ///   - packed: The bytes of the request's header list.
  ///   - defaultTopic: The topic of a push without `apns-topic`.
  private func validate(
    _ request: HTTPRequest, _ packed: UnsafeRawBufferPointer, defaultTopic: UnsafeRawBufferPointer?,
    authentication: inout ConnectionAuthentication, keys: TrustedKeySet, now: ServerTime,
    isRegistered: (UnsafeRawBufferPointer) -> Bool, findChannel: ChannelLookup, into verdict: inout Verdict
  ) {
    let isTooLarge = request.headersTooLarge || request.headers.count > Self.fieldLimit
    let facts = PushFactsReader(packed, defaultTopic: defaultTopic, comparesOtherNames: !isTooLarge).facts
    verdict.begin(facts)
    let topic = facts.topic.map { packed[$0] } ?? defaultTopic
    do throws(Rejection) {
      if isTooLarge { throw Self.headerListTooLarge }
      verdict.credential = credential(facts, packed, authentication: authentication)
      verdict.applicableChecks = verdict.credential == .certificate ? certificateChecks : tokenChecks
      let operation = try checkRequest(facts, packed, acceptsPushes: authentication.acceptsPushes)
      if let operation { verdict.applicableChecks = channelChecks(operation, verdict.credential) }
      try checkCredential(facts, packed, authentication: &authentication, keys: keys, now: now, verdict: &verdict)
      if let operation {
        let channelRequest = try checkChannelRequest(
          operation, request, facts, packed, certificate: authentication.certificate, token: verdict.token, keys: keys,
          bound: authentication.boundApps, findChannel: findChannel)
        return verdict.accept(channelRequest)
      }
      try checkHeaders(facts, packed)
      try checkDeviceToken(facts, packed)
      try checkTopic(
        topic, facts, certificate: authentication.certificate, token: verdict.token, keys: keys,
        bound: authentication.boundApps)
      try checkPayload(request, facts)
      try checkZeroDeviceToken(facts, packed, isRegistered: isRegistered)
    } catch {
      if error.reason == .expiredProviderToken { authentication.hasExpiredToken = true }
      verdict.reject(error)
    }
  }

  private static let headerListTooLarge = Rejection(.headerListSize, nil) { _, _ in
    "the header list is over the 8000 bytes that SETTINGS_MAX_HEADER_LIST_SIZE allows"
  }

  /// Returns the checks that apply to a broadcast or a request of channel management.
  private func channelChecks(_ operation: ChannelRequest.Operation, _ credential: Verdict.Credential) -> CheckSet {
    let ofCredential = credential == .certificate ? certificateChecks : tokenChecks
    var checks = ofCredential.intersection(Check.beforeOperation).union(operation.checks)
    if operation == .broadcast, mode != .strict { checks.remove(.payloadSyntax) }
    return checks
  }

  /// Derives the properties that depend only on mode and settings.
  private mutating func updateDerivedValues() {
    let hour: Int64 = 3_600_000
    let future: Int64 =
      switch mode {
      case .apple: hour
      case .strict: hour / 12
      case .lenient: .max
      }
    times = Times(
      maxAge: settings.tokenMaxAge.milliseconds, maxIssuedAhead: settings.tokenFuture?.milliseconds ?? future,
      updateInterval: settings.tokenUpdateInterval.milliseconds,
      unregisteredAfter: settings.unregisteredAfter.milliseconds,
      unregisteredDelay: settings.unregisteredDelay.milliseconds)
    closesOnExpiredToken = settings.expiredTokenCloses ?? (mode != .lenient)
    var both = Set(Check.allCases).subtracting(Check.ofChannelRequests).subtracting([.headerListSize])
    if mode != .strict { both.remove(.payloadSyntax) }
    if settings.deviceRate == nil { both.remove(.deviceRate) }
    certificateChecks = CheckSet(
      both.subtracting([
        .tokenUpdatesBlocked, .providerToken, .providerTokenAge, .keyEnvironment, .connectionTeam, .relatedKey,
        .tokenUpdates,
      ]))
    if mode == .lenient { both.subtract([.tokenUpdatesBlocked, .tokenUpdates]) }
    tokenChecks = CheckSet(both.subtracting([.certificate]))
  }
}

/// How the mock responds where the evidence about APNs is not conclusive; `RuleModes.md` lists the differences.
package enum RuleMode: String, Sendable, CaseIterable {
  /// Observed behavior of APNs. The default.
  case apple
  /// Only documented behavior.
  case strict
  /// Accepts everything that any provider was reported to succeed with.
  case lenient
}

/// The environment of APNs that the mock imitates (Protocol.md, section 1.1).
package enum PushEnvironment: String, Sendable, CaseIterable, Codable {
  /// `api.sandbox.push.apple.com`, for development builds.
  case sandbox
  /// `api.push.apple.com`.
  case production
}
