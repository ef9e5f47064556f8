import APNSMockRules
import APNSMockHTTPMessage

/// The MAX_CONCURRENT_STREAMS limit that a connection announces: a small number until the first valid provider
/// token, then the full one, in SETTINGS that leave before the response; and, if so configured, one stream after a
/// rejection (Protocol.md, section 9.1, observed).
struct StreamLimitPolicy {
  /// The last announced limit.
  private(set) var limit: Int

  private var hasFullLimit: Bool
  /// Whether the limit is 1 because of a rejection.
  private(set) var isThrottled = false
  /// Whether a fault announced a limit, which then no longer changes.
  private var isPinned = false
  private var firstStreams: Int
  private var maxStreams: Int
  private var throttles: Bool

  /// - Parameter hasFullLimit: Whether the full number is announced from the beginning, as in certificate mode.
  init(hasFullLimit: Bool, settings: APNSSettings) {
    self.hasFullLimit = hasFullLimit
    limit = hasFullLimit ? settings.maxStreams : settings.firstStreams
    firstStreams = settings.firstStreams
    maxStreams = settings.maxStreams
    throttles = settings.throttleOn4xx
  }

  /// Applies changed settings.
  mutating func apply(_ settings: APNSSettings) {
    firstStreams = settings.firstStreams
    maxStreams = settings.maxStreams
    throttles = settings.throttleOn4xx
  }

  /// Records that a fault announced a limit: it no longer changes by itself.
  mutating func pin(_ limit: UInt32) {
    self.limit = Int(limit)
    isPinned = true
  }

  /// Returns the limit to announce now; nil if it does not change.
  ///
  /// - Parameters:
  ///   - status: The status of the response about to leave; nil while there is none.
  ///   - isTrusted: Whether a provider token was accepted.
  mutating func change(before status: Int?, isTrusted: Bool) -> UInt32? {
    if throttles, let status {
      isThrottled = isThrottled && !HTTPStatus.isSuccess(status) || (400..<500).contains(status) && status != 410
    } else if !throttles {
      isThrottled = false
    }
    // A 403 concerns the credential, so it never raises the limit, even when a fault injects it.
    if !hasFullLimit, !isThrottled, status != 403 { hasFullLimit = isTrusted }
    let wanted = isThrottled ? 1 : hasFullLimit ? maxStreams : firstStreams
    guard wanted != limit, !isPinned else { return nil }
    limit = wanted
    return UInt32(clamping: wanted)
  }
}
