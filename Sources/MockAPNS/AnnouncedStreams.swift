import APNSRules

/// Which MAX_CONCURRENT_STREAMS a connection was told, and when it is told another one: a small number until the first
/// valid provider token, then the full one, in SETTINGS that leave before the answer; and, if so configured, one stream
/// after a rejection (APNS.md section 9.1, observed).
struct AnnouncedStreams {
  /// What the client was told last.
  private(set) var limit: Int

  private var isWidened: Bool
  /// Whether the limit is 1 because of a rejection.
  private(set) var isThrottled = false
  /// A fault said another number, which stands.
  private var isFixed = false
  private var firstStreams: Int
  private var maxStreams: Int
  private var throttles: Bool

  /// - Parameter isWidened: whether the full number is announced from the beginning, as in certificate mode.
  init(isWidened: Bool, settings: APNSSettings) {
    self.isWidened = isWidened
    limit = isWidened ? settings.maxStreams : settings.firstStreams
    firstStreams = settings.firstStreams
    maxStreams = settings.maxStreams
    throttles = settings.throttleOn4xx
  }

  /// Other numbers are in force from now on.
  mutating func follow(_ settings: APNSSettings) {
    firstStreams = settings.firstStreams
    maxStreams = settings.maxStreams
    throttles = settings.throttleOn4xx
  }

  /// A fault announced another number: nothing is announced by itself from now on.
  mutating func fix(_ limit: UInt32) {
    self.limit = Int(limit)
    isFixed = true
  }

  /// The number to announce now; nil if it stays as it is.
  ///
  /// - Parameters:
  ///   - status: of the answer that is about to leave; nil while none is.
  ///   - isTrusted: whether a provider token was accepted.
  mutating func change(before status: Int?, isTrusted: Bool) -> UInt32? {
    if throttles, let status {
      isThrottled = isThrottled && status != 200 || (400..<500).contains(status) && status != 410
    } else if !throttles {
      isThrottled = false
    }
    // A 403 is about the credential, so it never widens a connection, also one that a fault injects.
    if !isWidened, !isThrottled, status != 403 { isWidened = isTrusted }
    let wanted = isThrottled ? 1 : isWidened ? maxStreams : firstStreams
    guard wanted != limit, !isFixed else { return nil }
    limit = wanted
    return UInt32(clamping: wanted)
  }
}
