internal import CAPNSMockNghttp2

/// The SETTINGS values that may differ from APNs or change during a connection (RFC 9113 section 6.5.2); nil keeps
/// the current value.
package struct HTTP2Settings: Sendable, Equatable {
  /// The number of streams the client may open. A higher limit applies at once, a lower one when the client has
  /// acknowledged it.
  package var maxConcurrentStreams: UInt32?
  /// The bytes of DATA a client may send on a stream before it receives a window update; initially 65 535. Applies,
  /// also to open streams, when the client has acknowledged it. Values above 2³¹−1 are sent as 2³¹−1.
  package var initialWindowSize: UInt32?
  /// The maximum size of a header list. This is only announced: the limit that causes status 431 does not change.
  package var maxHeaderListSize: UInt32?

  /// Creates settings.
  package init(
    maxConcurrentStreams: UInt32? = nil, initialWindowSize: UInt32? = nil, maxHeaderListSize: UInt32? = nil
  ) {
    self.maxConcurrentStreams = maxConcurrentStreams
    self.initialWindowSize = initialWindowSize
    self.maxHeaderListSize = maxHeaderListSize
  }

  /// The entries passed to nghttp2, in the order of their identifiers.
  var entries: [nghttp2_settings_entry] {
    var entries: [nghttp2_settings_entry] = []
    if maxConcurrentStreams != nil {
      // nghttp2 always gets the hard limit: it refuses streams above a limit that the peer has not acknowledged
      // yet, which APNs does not do. `appendOutput` writes the announced number into the frame.
      entries.append(
        nghttp2_settings_entry(settings_id: APNS_SETTING_MAX_CONCURRENT_STREAMS, value: HTTP2Limits.hardStreamLimit))
    }
    if let initialWindowSize {
      // nghttp2 rejects values that no client may accept.
      entries.append(
        nghttp2_settings_entry(
          settings_id: APNS_SETTING_INITIAL_WINDOW_SIZE, value: min(initialWindowSize, HTTP2Limits.maxWindowSize)))
    }
    if let maxHeaderListSize {
      entries.append(nghttp2_settings_entry(settings_id: APNS_SETTING_MAX_HEADER_LIST_SIZE, value: maxHeaderListSize))
    }
    return entries
  }
}

/// The limits of a server session, apart from the stream limit that it advertises.
package enum HTTP2Limits {
  /// SETTINGS_HEADER_TABLE_SIZE as sent by APNs (Protocol.md, section 9.1, observed).
  package static let headerTableSize: UInt32 = 4096
  /// SETTINGS_MAX_FRAME_SIZE as sent by APNs (Protocol.md, section 9.1, observed).
  package static let maxFrameSize: UInt32 = 16384
  /// SETTINGS_MAX_HEADER_LIST_SIZE as sent by APNs (Protocol.md, section 9.1, observed); a larger list gets status
  /// 431.
  package static let maxHeaderListSize = 8000
  /// Bytes of fields beyond `maxHeaderListSize` that are received in order to respond with 431, counted as header
  /// lists are. One byte on the wire may represent 4 kB of them (HPACK table), so a larger list is treated as an
  /// attack and ends the connection.
  package static let maxHeaderExcess = 65536
  /// Body bytes received of one request before it is answered without waiting for its end.
  package static let maxBodySize = 65536
  /// Streams a connection may open before it has acknowledged our limit. nghttp2 refuses streams above this number.
  package static let hardStreamLimit: UInt32 = 4000
  /// The interval at which `endOverdueStreams` must be called.
  package static let overdueCheckInterval = Duration.seconds(10)
  /// The number of `endOverdueStreams` calls that a request may take to be received, and a response to be accepted:
  /// 30 to 40 s. nginx allows 60 s between two reads. A push has about 5 kB.
  package static let maxOverdueChecks: UInt8 = 3
  /// Streams that may be reset between two `endOverdueStreams` calls, by the client or because they violate HTTP/2.
  /// Equals a provider that gives up each of 1000 streams after one second; providers reach that only while a rule
  /// delays pushes.
  package static let maxResets = 10_000
  /// The largest flow-control window (RFC 9113 section 6.9.1).
  static let maxWindowSize: UInt32 = 0x7FFF_FFFF
}

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
  private var enforced: UInt32?
  private var isExcessReported = false

  /// Returns the limit that `count` open streams exceed, the first time that this happens; otherwise nil.
  mutating func exceededLimit(by count: Int) -> UInt32? {
    guard let enforced, count > enforced, !isExcessReported else { return nil }
    isExcessReported = true
    return enforced
  }

  /// Records that a SETTINGS frame will be sent, with this limit if it contains one.
  mutating func announce(_ limit: UInt32?) {
    if let limit { unsent.append(limit) }
    unacknowledged.append(limit)
    update()
  }

  /// Records a SETTINGS acknowledgement, which applies to the oldest unacknowledged frame.
  mutating func didReceiveAcknowledgement() {
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
