internal import CNghttp2

/// The SETTINGS by which a server may differ from APNs or change its mind (RFC 9113 section 6.5.2); nil leaves one as it is.
public struct HTTP2Settings: Sendable, Equatable {
  /// Streams the client may have open. A higher limit holds at once, a lower one when the client has acknowledged it.
  public var maxConcurrentStreams: UInt32?
  /// Bytes of DATA a client may send on a stream before it is given more; 65 535 unless something else is said. It holds,
  /// also for the streams that are open, when the client has acknowledged it. What is above 2³¹−1 is sent as 2³¹−1.
  public var initialWindowSize: UInt32?
  /// The size a header list may have. It is announced only: what gets status 431 does not change.
  public var maxHeaderListSize: UInt32?

  /// Settings from parts.
  public init(
    maxConcurrentStreams: UInt32? = nil, initialWindowSize: UInt32? = nil, maxHeaderListSize: UInt32? = nil
  ) {
    self.maxConcurrentStreams = maxConcurrentStreams
    self.initialWindowSize = initialWindowSize
    self.maxHeaderListSize = maxHeaderListSize
  }

  /// Nothing is said.
  var isEmpty: Bool { maxConcurrentStreams == nil && initialWindowSize == nil && maxHeaderListSize == nil }

  /// What nghttp2 is told, in the order of their numbers.
  var entries: [nghttp2_settings_entry] {
    var entries: [nghttp2_settings_entry] = []
    if maxConcurrentStreams != nil {
      // nghttp2 itself always hears the hard limit: it refuses streams above a value the peer has not acknowledged yet,
      // which APNs does not do. The number on the wire is patched in `drain`.
      entries.append(
        nghttp2_settings_entry(settings_id: APNS_SETTING_MAX_CONCURRENT_STREAMS, value: HTTP2Limits.hardStreamLimit))
    }
    if let initialWindowSize {
      // nghttp2 refuses to send what no client may accept.
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
