/// The numbers behind the rules that APNs does not publish or that a test wants to move: the `apns:` settings.
///
/// Times here follow the server's settable clock, except `idleTimeout` and `deviceRate`, which follow the machine's.
public struct APNSSettings: Sendable, Equatable {
  /// How old a provider token may be, inclusive (APNS.md section 3.2, documented as one hour).
  public var tokenMaxAge: Duration = .seconds(3600)
  /// How far in the future `iat` may lie, inclusive; `nil` takes what the mode says: `apple` one hour, `strict` five
  /// minutes, `lenient` any time.
  public var tokenFuture: Duration?
  /// Whether a connection answers every later request with 403 `ExpiredProviderToken` once the rules gave that verdict on
  /// it (APNS.md section 3.2, observed); `nil` uses the mode's default: on in `apple` and `strict`, off in `lenient`.
  public var expiredTokenCloses: Bool?
  /// How long a provider token has to stay in use before the next one (APNS.md section 3.2, documented as 20 minutes).
  public var tokenUpdateInterval: Duration = .seconds(1200)
  /// How many changes quicker than `tokenUpdateInterval` pass before `TooManyProviderTokenUpdates`.
  public var freeTokenUpdates = 1
  /// After how much silence a connection ends with GOAWAY `IdleTimeout`.
  public var idleTimeout: Duration = .seconds(3600)
  /// MAX_CONCURRENT_STREAMS of the first SETTINGS in token mode.
  public var firstStreams = 1
  /// MAX_CONCURRENT_STREAMS once a provider token was accepted, and in certificate mode.
  public var maxStreams = 1000
  /// Whether a rejection cuts MAX_CONCURRENT_STREAMS to 1 until the next accepted push (APNS.md section 9.1).
  public var throttleOn4xx = false
  /// The spelling of the reason for a key of the other environment: on the wire `BadEnvironmentKeyInToken`, in the
  /// documentation `BadEnvironmentKeyIdInToken`.
  public var environmentKeyReason: Reason = .badEnvironmentKeyInToken
  /// Whether an error answer carries `content-type: application/json` (logs of APNs show none).
  public var errorContentType = false
  /// How many pushes one device token takes before 429 `TooManyRequests`; `nil` for no limit.
  public var deviceRate: DeviceRate?
  /// After how many rejected pushes a connection ends with GOAWAY; `nil` for never.
  public var errorsBeforeGoaway: Int?
  /// How long after a device went away its pushes are still accepted before 410 `Unregistered`.
  public var unregisteredAfter: Duration = .zero
  /// How long after a failed attempt that may be retried a push without a further attempt has the finding `abandoned`.
  public var abandonedAfter: Duration = .seconds(60)

  /// The defaults.
  public init() {}
}

/// A number of pushes to one device token within a time; as many may come at once.
public struct DeviceRate: Sendable, Equatable {
  /// How many pushes, at least 1.
  public var count: Int
  /// Within which time, longer than zero.
  public var per: Duration

  /// `count` pushes within `per`.
  public init(count: Int, per: Duration) {
    self.count = count
    self.per = per
  }
}

extension Duration {
  /// Whole milliseconds, as the settable clock counts them.
  package var milliseconds: Int64 { parts(perSecond: 1000) }

  /// Whole nanoseconds, as the machine's monotonic clock counts them.
  package var nanoseconds: Int64 { parts(perSecond: 1_000_000_000) }

  /// A negative duration counts as none, one too long for the number as the longest there is.
  private func parts(perSecond: Int64) -> Int64 {
    if self < .zero { return 0 }
    let (seconds, attoseconds) = components
    let (whole, isTooLong) = seconds.multipliedReportingOverflow(by: perSecond)
    let (sum, isStillTooLong) = whole.addingReportingOverflow(attoseconds / (1_000_000_000_000_000_000 / perSecond))
    return isTooLong || isStillTooLong ? .max : sum
  }
}
