package import APNSMockNotation

/// The `apns:` settings: parameters of the rules that APNs does not publish or that a test may need to change.
///
/// Durations follow the server's settable clock, except `idleTimeout` and `deviceRate`, which use the monotonic
/// clock.
package struct APNSSettings: Sendable, Equatable {
  /// The maximum age of a provider token, inclusive (Protocol.md, section 3.2, documented as one hour).
  package var tokenMaxAge: Duration = .seconds(3600)
  /// How far in the future `iat` may be, inclusive; nil uses the mode's default: one hour in `apple`, five minutes
  /// in `strict`, unlimited in `lenient`.
  package var tokenFuture: Duration?
  /// Whether a connection on which a push was rejected with `ExpiredProviderToken` rejects all later requests with
  /// 403 `ExpiredProviderToken` (Protocol.md, section 3.2, observed); nil uses the mode's default: true in `apple`
  /// and `strict`, false in `lenient`.
  package var expiredTokenCloses: Bool?
  /// The minimum time between changes of the provider token (Protocol.md, section 3.2, documented as 20 minutes).
  package var tokenUpdateInterval: Duration = .seconds(1200)
  /// The number of changes faster than `tokenUpdateInterval` that are allowed before `TooManyProviderTokenUpdates`.
  package var freeTokenUpdates = 1
  /// What the changes of provider tokens are counted for (Protocol.md, section 3.2: documented for connections; reports
  /// that other connections were affected exist).
  package var tokenUpdateScope = TokenUpdateScope.connection
  /// The idle time after which a connection is closed with GOAWAY `IdleTimeout`.
  package var idleTimeout: Duration = .seconds(3600)
  /// MAX_CONCURRENT_STREAMS of the first SETTINGS frame in token mode.
  package var firstStreams = 1
  /// MAX_CONCURRENT_STREAMS after a provider token was accepted, and in certificate mode.
  package var maxStreams = 1000
  /// Whether a rejection reduces MAX_CONCURRENT_STREAMS to 1 until the next accepted push (Protocol.md, section
  /// 9.1).
  package var throttleOn4xx = false
  /// The spelling of the reason for a key of the other environment: `BadEnvironmentKeyInToken` as on the wire, or
  /// `BadEnvironmentKeyIdInToken` as documented.
  package var environmentKeyReason: Reason = .badEnvironmentKeyInToken
  /// Whether error responses have `content-type: application/json` (logs of APNs show none).
  package var errorContentType = false
  /// The number of pushes a device token accepts before 429 `TooManyRequests`; nil for no limit.
  package var deviceRate: DeviceRate?
  /// The number of rejected pushes after which a connection is closed with GOAWAY; nil for no limit.
  package var errorsBeforeGoaway: Int?
  /// How long pushes to an unregistered device are still accepted before 410 `Unregistered`.
  package var unregisteredAfter: Duration = .zero
  /// The time between the first push that is accepted after an app was removed from a registered device and the first
  /// 410 `Unregistered` (APNs does not publish it).
  package var unregisteredDelay: Duration = .zero
  /// Whether a push to an online device waits until the device has acknowledged it, and is lost if the next push to the
  /// device arrives before (Protocol.md, section 11).
  package var onlineQueue = false
  /// The time in which an online device acknowledges a push, by the server's clock. Only with `onlineQueue`.
  package var acknowledgeAfter: Duration = .seconds(1)
  /// The number of background pushes that an app on a device handles; nil for no limit.
  package var backgroundBudget: DeviceRate?
  /// The number of Live Activity updates with priority 10 that an app on a device handles; nil for no limit.
  package var liveActivityBudget: DeviceRate?
  /// The number of Live Activities that pushes can start for an app on a device; nil for no limit.
  package var pushToStartBudget: DeviceRate?
  /// The time after a failed, retryable attempt without a further attempt after which the push has the finding
  /// `abandoned`.
  package var abandonedAfter: Duration = .seconds(60)

  /// Creates the default settings.
  package init() {}
}

/// What the changes of provider tokens are counted for.
package enum TokenUpdateScope: String, Sendable, CaseIterable {
  /// Each connection.
  case connection
  /// All connections of a team.
  case team
}

/// A maximum number of pushes to one device token within a time; all of them may arrive at once.
package struct DeviceRate: Sendable, Equatable {
  /// The number of pushes, at least 1.
  package var count: Int
  /// The time, greater than zero.
  package var per: Duration

  /// Creates a rate of `count` pushes within `per`.
  package init(count: Int, per: Duration) {
    self.count = count
    self.per = per
  }
}

extension Duration {
  /// The duration in whole milliseconds, the unit of the settable clock.
  package var milliseconds: Int64 { parts(perSecond: 1000) }

  /// The duration in whole nanoseconds, the unit of the monotonic clock.
  package var nanoseconds: Int64 { parts(perSecond: 1_000_000_000) }

  /// Negative durations become 0; durations that overflow become `Int64.max`.
  private func parts(perSecond: Int64) -> Int64 {
    if self < .zero { return 0 }
    let (seconds, attoseconds) = components
    let (whole, isTooLong) = seconds.multipliedReportingOverflow(by: perSecond)
    let (sum, isStillTooLong) = whole.addingReportingOverflow(attoseconds / (1_000_000_000_000_000_000 / perSecond))
    return isTooLong || isStillTooLong ? .max : sum
  }
}

extension Int64 {
  /// Returns the sum with a number of at least zero, or the maximum on overflow.
  @inlinable
  package func addingClamped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}

/// The keys of the `apns:` map in the config file. Each one sets a property of `APNSSettings`.
package enum APNSSetting: String, CaseIterable, Sendable {
  case tokenMaxAge = "token_max_age"
  case tokenFuture = "token_future"
  case expiredTokenCloses = "expired_token_closes"
  case tokenUpdateInterval = "token_update_interval"
  case freeTokenUpdates = "free_token_updates"
  case tokenUpdateScope = "token_update_scope"
  case idleTimeout = "idle_timeout"
  case firstStreams = "first_streams"
  case maxStreams = "max_streams"
  case throttleOn4xx = "throttle_on_4xx"
  case environmentKeyReason = "environment_key_reason"
  case errorContentType = "error_content_type"
  case deviceRate = "device_rate"
  case errorsBeforeGoaway = "errors_before_goaway"
  case unregisteredAfter = "unregistered_after"
  case unregisteredDelay = "unregistered_delay"
  case onlineQueue = "online_queue"
  case acknowledgeAfter = "acknowledge_after"
  case backgroundBudget = "background_budget"
  case liveActivityBudget = "live_activity_budget"
  case pushToStartBudget = "push_to_start_budget"
  case abandonedAfter = "abandoned_after"
}

extension APNSSettings {
  /// Sets the value of one setting.
  package mutating func set(_ setting: APNSSetting, to value: String) throws(InvalidSettingValue) {
    switch setting {
    case .tokenMaxAge: tokenMaxAge = try Value.duration(value, isPositive: true)
    case .tokenFuture: tokenFuture = try Value.duration(value)
    case .expiredTokenCloses: expiredTokenCloses = try Value.flag(value)
    case .tokenUpdateInterval: tokenUpdateInterval = try Value.duration(value)
    case .freeTokenUpdates: freeTokenUpdates = try Value.whole(value, in: 0...Int.max)
    case .tokenUpdateScope: tokenUpdateScope = try Value.word(value, of: TokenUpdateScope.self)
    case .idleTimeout: idleTimeout = try Value.duration(value, isPositive: true)
    case .firstStreams: firstStreams = try Value.whole(value, in: 1...Self.mostStreams)
    case .maxStreams: maxStreams = try Value.whole(value, in: 1...Self.mostStreams)
    case .throttleOn4xx: throttleOn4xx = try Value.flag(value)
    case .environmentKeyReason:
      guard let reason = Reason(text: value),
        reason == .badEnvironmentKeyInToken || reason == .badEnvironmentKeyIdInToken
      else {
        throw InvalidSettingValue(
          value: value,
          allowed: [Reason.badEnvironmentKeyInToken.text, Reason.badEnvironmentKeyIdInToken.text].joinedWithOr)
      }
      environmentKeyReason = reason
    case .errorContentType: errorContentType = try Value.flag(value)
    case .deviceRate: deviceRate = try Self.optionalRate(value)
    case .errorsBeforeGoaway:
      guard !Value.isOff(value) else { return errorsBeforeGoaway = nil }
      do {
        errorsBeforeGoaway = try Value.whole(value, in: 1...Int.max)
      } catch {
        throw InvalidSettingValue(value: error.value, allowed: error.allowed + ", or off")
      }
    case .unregisteredAfter: unregisteredAfter = try Value.duration(value)
    case .unregisteredDelay: unregisteredDelay = try Value.duration(value)
    case .onlineQueue:
      guard value == "1" || Value.isOff(value) else { throw InvalidSettingValue(value: value, allowed: "1 or off") }
      onlineQueue = value == "1"
    case .acknowledgeAfter: acknowledgeAfter = try Value.duration(value)
    case .backgroundBudget: backgroundBudget = try Self.optionalRate(value)
    case .liveActivityBudget: liveActivityBudget = try Self.optionalRate(value)
    case .pushToStartBudget: pushToStartBudget = try Self.optionalRate(value)
    case .abandonedAfter: abandonedAfter = try Value.duration(value)
    }
  }

  /// The largest stream limit: client stream identifiers are the odd 31-bit numbers (RFC 9113 section 5.1.1).
  private static let mostStreams = 1 << 30

  private static func optionalRate(_ text: String) throws(InvalidSettingValue) -> DeviceRate? {
    Value.isOff(text) ? nil : try rate(text)
  }

  /// Parses a number of pushes within a duration, such as `5/1s`.
  private static func rate(_ text: String) throws(InvalidSettingValue) -> DeviceRate {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let count = Int(parts[0]), count > 0, let per = DurationFormat.duration(parts[1]),
      per > .zero
    else { throw InvalidSettingValue(value: text, allowed: "a number of pushes in a time such as 5/1s, or off") }
    return DeviceRate(count: count, per: per)
  }
}
