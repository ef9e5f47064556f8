private import CNghttp2

/// The announced MAX_CONCURRENT_STREAMS values, the acknowledged value, and the limit that may be enforced.
///
/// APNs serves the streams that a client opened before it acknowledged a limit: many clients send requests before
/// they have read the server's SETTINGS. Only exceeding an acknowledged limit is a violation. The peer may use a
/// raised limit as soon as it has read it, so it applies from its announcement.
struct StreamLimits {
  private var unsent: [UInt32] = []
  /// One element per SETTINGS frame; nil for a frame without a stream limit.
  private var unacknowledged: [UInt32?] = []
  private var acknowledgedLimit: UInt32?

  /// The largest number of open streams that is allowed now; nil before the first acknowledgement.
  private(set) var enforced: UInt32?

  /// Records that a SETTINGS frame will be sent, with this limit if it contains one.
  mutating func announce(_ limit: UInt32?) {
    if let limit { unsent.append(limit) }
    unacknowledged.append(limit)
    update()
  }

  /// Records a SETTINGS acknowledgement, which applies to the oldest unacknowledged frame.
  mutating func acknowledged() {
    guard !unacknowledged.isEmpty else { return }
    acknowledgedLimit = unacknowledged.removeFirst() ?? acknowledgedLimit
    update()
  }

  private mutating func update() {
    enforced = acknowledgedLimit.map { max($0, unacknowledged.compactMap(\.self).max() ?? 0) }
  }

  /// Writes the announced limit into the MAX_CONCURRENT_STREAMS entry of the SETTINGS frame at `start..<end`.
  mutating func patchSettings(in output: inout [UInt8], frameAt start: Int, end: Int) {
    // Nine bytes of frame header, then entries of six bytes: identifier (2) and value (4), big-endian.
    for entry in stride(from: start + 9, through: end - 6, by: 6)
    where output[entry] == 0 && output[entry + 1] == UInt8(APNS_SETTING_MAX_CONCURRENT_STREAMS) {
      guard !unsent.isEmpty else { return }
      let limit = unsent.removeFirst()
      for byte in 0..<4 { output[entry + 2 + byte] = UInt8(truncatingIfNeeded: limit >> (24 - 8 * UInt32(byte))) }
      return
    }
  }
}
