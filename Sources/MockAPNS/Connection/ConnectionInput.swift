import APNSMockHTTP2Session
internal import APNSMockNotation
import NIOCore

/// What the client of a connection has sent, and whether it reads, for the idle timeout and for protection against floods.
struct ConnectionInput {
  /// The number of bytes a connection may send without a request.
  private static let freeBytes = 1 << 20
  /// The number of bytes allowed for each byte of a request. nginx has used the same two limits since the HTTP/2
  /// floods of 2019 (CVE-2019-9511 to 9518). Frames that nghttp2 ignores silently, and TLS records without content,
  /// count as well.
  private static let bytesPerRequestByte = 8
  /// The time without input after which a connection with an exhausted flow-control window is closed. Shorter than the
  /// ten seconds after which aioapns, which never sends WINDOW_UPDATE, closes it.
  static let windowTimeout = TimeAmount.seconds(5)
  private static let streamCheckInterval = TimeAmount(HTTP2Limits.overdueCheckInterval)

  /// The first bytes after decryption, for messages.
  private(set) var firstBytes: [UInt8] = []
  /// The number of bytes received on the socket.
  private(set) var bytesReceived = 0
  /// When bytes were last received.
  var lastActivity = NIODeadline.now()
  /// The same time in monotonic nanoseconds of machine time, which findings compare with those of records; 0 before.
  private(set) var lastReceivedAt: MonotonicTime = 0
  /// Whether responses wait for the client to open its flow-control window for the connection.
  private(set) var isWindowExhausted = false
  /// When `checkElapsed` last checked for overdue streams and a stalled client.
  private var lastCheck = NIODeadline.now()
  /// The number of consecutive checks at which the client was not reading.
  private var stalledChecks: UInt8 = 0

  /// Bytes were received on the socket.
  mutating func received(byteCount: Int, at time: NIODeadline, machineTime: MonotonicTime) {
    lastActivity = time
    lastReceivedAt = machineTime
    bytesReceived += byteCount
  }

  /// Bytes were decrypted.
  mutating func decrypted(_ bytes: UnsafeRawBufferPointer) {
    if firstBytes.isEmpty { firstBytes = Array(bytes.prefix(ConnectionCloseReason.quotedByteCount)) }
  }

  /// The client reads what the channel had buffered.
  mutating func clientReads() { stalledChecks = 0 }

  /// Returns the reason to close the connection if the client sends mostly something other than requests (PING,
  /// PRIORITY, empty DATA, unknown frames), or updates its TLS keys far more often than necessary.
  ///
  /// - Parameters:
  ///   - requestBytes: The number of bytes of all requests.
  ///   - keyUpdates: The number of TLS KeyUpdate messages of the client.
  func floodCloseReason(requestBytes: Int, keyUpdates: Int) -> ConnectionCloseReason? {
    // AES-GCM needs a new key after 2^24.5 records (RFC 8446 section 5.5); one per 64 KiB, plus 32, are allowed.
    if keyUpdates > 32 + bytesReceived >> 16 { return .keyUpdates(keyUpdates) }
    if bytesReceived / Self.bytesPerRequestByte > requestBytes + Self.freeBytes {
      return .flood(bytes: bytesReceived, ofRequests: requestBytes)
    }
    return nil
  }

  /// Frames were written. Returns whether the connection has to be checked sooner than before, because responses wait for
  /// the client to open its flow-control window.
  mutating func framesWritten(isWindowExhausted: Bool) -> Bool {
    defer { self.isWindowExhausted = isWindowExhausted }
    return isWindowExhausted && !self.isWindowExhausted
  }

  // MARK: - Checks

  /// Returns the time until the next check: ten seconds, or less if a timeout expires sooner.
  func nextCheck(idleTimeout: TimeAmount, now: NIODeadline) -> TimeAmount {
    let idleTime = now - lastActivity
    let interval = isWindowExhausted ? Self.windowTimeout : Self.streamCheckInterval
    return min(interval, idleTime < idleTimeout ? idleTimeout - idleTime : idleTimeout)
  }

  enum CheckAction: Equatable {
    /// Check again later.
    case wait
    /// Close the connection: the client has not opened its flow-control window in time.
    case closeExhausted
    /// Close the connection: it is idle.
    case closeIdle
    /// Close the connection: the client does not read its responses.
    case closeStalled
    /// Release empty buffers if the connection is quiet, reset overdue streams unless responses wait for the channel
    /// or the store, and check again later.
    case checkStreams(isQuiet: Bool, resetsOverdue: Bool)
  }

  /// It is time for a check.
  ///
  /// - Parameters:
  ///   - isWritable: Whether the client reads.
  ///   - holdsFrames: Whether frames wait for the store.
  mutating func checkElapsed(
    idleTimeout: TimeAmount, isWritable: Bool, holdsFrames: Bool, now: NIODeadline
  ) -> CheckAction {
    if isWindowExhausted, !holdsFrames, now - lastActivity >= Self.windowTimeout {
      isWindowExhausted = false
      return .closeExhausted
    }
    if now - lastActivity >= idleTimeout { return .closeIdle }
    guard now - lastCheck >= Self.streamCheckInterval else { return .wait }
    let isQuiet = lastActivity < lastCheck
    lastCheck = now
    stalledChecks = isWritable ? 0 : stalledChecks + 1
    if stalledChecks > HTTP2Limits.maxOverdueChecks { return .closeStalled }
    // While the channel is not writable, all responses wait for the client, so no single stream is overdue.
    return .checkStreams(isQuiet: isQuiet, resetsOverdue: isWritable && !holdsFrames)
  }
}
