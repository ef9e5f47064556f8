private import CNghttp2

/// What MAX_CONCURRENT_STREAMS was announced, what the peer has acknowledged of it, and so what may be enforced.
///
/// APNs serves the streams that a client opened before it acknowledged a limit (CLIENTS.md, trap 2); only an excess after
/// the acknowledgement is a violation. A raised limit may be used by the peer as soon as it has read it, so it holds from
/// the moment it is announced.
struct StreamLimits {
  private var unsent: [UInt32] = []
  /// One for each SETTINGS frame; nil for one that says nothing of the limit.
  private var unacknowledged: [UInt32?] = []
  private var acknowledgedLimit: UInt32?

  /// The largest number of open streams that is no violation now; nil before the first acknowledgement.
  private(set) var enforced: UInt32?

  /// A SETTINGS frame is going to be sent, with this limit if it has one.
  mutating func announce(_ limit: UInt32?) {
    if let limit { unsent.append(limit) }
    unacknowledged.append(limit)
    update()
  }

  /// A SETTINGS acknowledgement came: it is for the oldest one outstanding.
  mutating func acknowledged() {
    guard !unacknowledged.isEmpty else { return }
    acknowledgedLimit = unacknowledged.removeFirst() ?? acknowledgedLimit
    update()
  }

  private mutating func update() {
    enforced = acknowledgedLimit.map { max($0, unacknowledged.compactMap(\.self).max() ?? 0) }
  }

  /// Writes the announced number into the MAX_CONCURRENT_STREAMS entry of the SETTINGS frame at `start..<end`.
  mutating func patchSettings(in output: inout [UInt8], frameAt start: Int, end: Int) {
    // Nine bytes of frame header, then entries of six: identifier (2), value (4), both big endian.
    for entry in stride(from: start + 9, through: end - 6, by: 6)
    where output[entry] == 0 && output[entry + 1] == UInt8(APNS_SETTING_MAX_CONCURRENT_STREAMS) {
      guard !unsent.isEmpty else { return }
      let limit = unsent.removeFirst()
      for byte in 0..<4 { output[entry + 2 + byte] = UInt8(truncatingIfNeeded: limit >> (24 - 8 * UInt32(byte))) }
      return
    }
  }
}
