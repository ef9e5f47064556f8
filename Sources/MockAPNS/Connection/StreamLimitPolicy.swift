import APNSRules
import HTTP2Session
import Inbox
import NIOPosix

/// The MAX_CONCURRENT_STREAMS limit that a connection announces: a small number until the first valid provider
/// token, then the full one, in SETTINGS that leave before the response; and, if so configured, one stream after a
/// rejection (Protocol.md, section 9.1, observed).
struct StreamLimitPolicy {
  /// The last announced limit.
  private(set) var limit: Int

  private var isWidened: Bool
  /// Whether the limit is 1 because of a rejection.
  private(set) var isThrottled = false
  /// Whether a fault announced a limit, which then no longer changes.
  private var isFixed = false
  private var firstStreams: Int
  private var maxStreams: Int
  private var throttles: Bool

  /// - Parameter isWidened: Whether the full number is announced from the beginning, as in certificate mode.
  init(isWidened: Bool, settings: APNSSettings) {
    self.isWidened = isWidened
    limit = isWidened ? settings.maxStreams : settings.firstStreams
    firstStreams = settings.firstStreams
    maxStreams = settings.maxStreams
    throttles = settings.throttleOn4xx
  }

  /// Applies changed settings.
  mutating func follow(_ settings: APNSSettings) {
    firstStreams = settings.firstStreams
    maxStreams = settings.maxStreams
    throttles = settings.throttleOn4xx
  }

  /// Notes that a fault announced a limit: it no longer changes by itself.
  mutating func fix(_ limit: UInt32) {
    self.limit = Int(limit)
    isFixed = true
  }

  /// Returns the limit to announce now; nil if it does not change.
  ///
  /// - Parameters:
  ///   - status: The status of the response about to leave; nil while there is none.
  ///   - isTrusted: Whether a provider token was accepted.
  mutating func change(before status: Int?, isTrusted: Bool) -> UInt32? {
    if throttles, let status {
      isThrottled = isThrottled && status != 200 || (400..<500).contains(status) && status != 410
    } else if !throttles {
      isThrottled = false
    }
    // A 403 concerns the credential, so it never raises the limit, even when a fault injects it.
    if !isWidened, !isThrottled, status != 403 { isWidened = isTrusted }
    let wanted = isThrottled ? 1 : isWidened ? maxStreams : firstStreams
    guard wanted != limit, !isFixed else { return nil }
    limit = wanted
    return UInt32(clamping: wanted)
  }
}

/// Buffers and caches shared by all connections of one event loop. A connection empties the buffers before it
/// returns to the loop, so an idle connection needs none of its own.
final class LoopScratch {
  /// Bytes read from a socket.
  let cipherText = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  /// Decrypted bytes for the HTTP/2 session.
  let input = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  /// Frames to be encrypted and written.
  @exclusivity(unchecked) var output: [UInt8] = []
  /// The storage of the records of the event loop's pushes.
  let records = RecordArena()
  /// Provider tokens accepted on the event loop's connections, so that each connection need not verify the signature
  /// of the same token again.
  @exclusivity(unchecked) var knownTokens = ProviderTokenCache()
  /// Finished request streams to be reused.
  let streams = RequestStreamPool()

  // Safe to share: each thread accesses a value of its own here, and an event loop is one thread.
  nonisolated(unsafe) private static let perThread = ThreadSpecificVariable<LoopScratch>()

  /// The scratch of the current event loop.
  static var current: LoopScratch {
    if let known = perThread.currentValue { return known }
    let made = LoopScratch()
    perThread.currentValue = made
    return made
  }

  deinit {
    cipherText.deallocate()
    input.deallocate()
  }
}
