public import Notation

/// The keys of the `apns:` map in the config file. Each one sets a property of `APNSSettings`.
public enum APNSSetting: String, CaseIterable, Sendable {
  case tokenMaxAge = "token_max_age"
  case tokenFuture = "token_future"
  case expiredTokenCloses = "expired_token_closes"
  case tokenUpdateInterval = "token_update_interval"
  case freeTokenUpdates = "free_token_updates"
  case idleTimeout = "idle_timeout"
  case firstStreams = "first_streams"
  case maxStreams = "max_streams"
  case throttleOn4xx = "throttle_on_4xx"
  case environmentKeyReason = "environment_key_reason"
  case errorContentType = "error_content_type"
  case deviceRate = "device_rate"
  case errorsBeforeGoaway = "errors_before_goaway"
  case unregisteredAfter = "unregistered_after"
  case abandonedAfter = "abandoned_after"
}

extension APNSSettings {
  /// Sets the value of one setting.
  public mutating func set(_ setting: APNSSetting, to value: String) throws(BadValue) {
    switch setting {
    case .tokenMaxAge: tokenMaxAge = try Value.duration(value, isPositive: true)
    case .tokenFuture: tokenFuture = try Value.duration(value)
    case .expiredTokenCloses: expiredTokenCloses = try Value.flag(value)
    case .tokenUpdateInterval: tokenUpdateInterval = try Value.duration(value)
    case .freeTokenUpdates: freeTokenUpdates = try Value.whole(value, in: 0...Int.max)
    case .idleTimeout: idleTimeout = try Value.duration(value, isPositive: true)
    case .firstStreams: firstStreams = try Value.whole(value, in: 1...Self.mostStreams)
    case .maxStreams: maxStreams = try Value.whole(value, in: 1...Self.mostStreams)
    case .throttleOn4xx: throttleOn4xx = try Value.flag(value)
    case .environmentKeyReason:
      guard let reason = Reason(text: value),
        reason == .badEnvironmentKeyInToken || reason == .badEnvironmentKeyIdInToken
      else {
        throw BadValue(
          value: value,
          allowed: [Reason.badEnvironmentKeyInToken.text, Reason.badEnvironmentKeyIdInToken.text].spokenChoice)
      }
      environmentKeyReason = reason
    case .errorContentType: errorContentType = try Value.flag(value)
    case .deviceRate: deviceRate = Value.isOff(value) ? nil : try Self.rate(value)
    case .errorsBeforeGoaway:
      guard !Value.isOff(value) else { return errorsBeforeGoaway = nil }
      do {
        errorsBeforeGoaway = try Value.whole(value, in: 1...Int.max)
      } catch {
        throw BadValue(value: error.value, allowed: error.allowed + ", or off")
      }
    case .unregisteredAfter: unregisteredAfter = try Value.duration(value)
    case .abandonedAfter: abandonedAfter = try Value.duration(value)
    }
  }

  /// The largest stream limit: client stream identifiers are the odd 31-bit numbers (RFC 9113 section 5.1.1).
  private static let mostStreams = 1 << 30

  /// Parses a number of pushes within a duration, such as `5/1s`.
  private static func rate(_ text: String) throws(BadValue) -> DeviceRate {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let count = Int(parts[0]), count > 0, let per = WrittenDuration.duration(parts[1]),
      per > .zero
    else { throw BadValue(value: text, allowed: "a number of pushes in a time such as 5/1s, or off") }
    return DeviceRate(count: count, per: per)
  }
}
