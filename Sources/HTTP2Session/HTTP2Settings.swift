internal import CNghttp2

/// The SETTINGS values that may differ from APNs or change during a connection (RFC 9113 section 6.5.2); nil keeps
/// the current value.
public struct HTTP2Settings: Sendable, Equatable {
  /// The number of streams the client may open. A higher limit applies at once, a lower one when the client has
  /// acknowledged it.
  public var maxConcurrentStreams: UInt32?
  /// The bytes of DATA a client may send on a stream before it receives a window update; initially 65 535. Applies,
  /// also to open streams, when the client has acknowledged it. Values above 2³¹−1 are sent as 2³¹−1.
  public var initialWindowSize: UInt32?
  /// The maximum size of a header list. This is only announced: the limit that causes status 431 does not change.
  public var maxHeaderListSize: UInt32?

  /// Creates settings.
  public init(
    maxConcurrentStreams: UInt32? = nil, initialWindowSize: UInt32? = nil, maxHeaderListSize: UInt32? = nil
  ) {
    self.maxConcurrentStreams = maxConcurrentStreams
    self.initialWindowSize = initialWindowSize
    self.maxHeaderListSize = maxHeaderListSize
  }

  /// Whether no setting is changed.
  var isEmpty: Bool { maxConcurrentStreams == nil && initialWindowSize == nil && maxHeaderListSize == nil }

  /// The entries passed to nghttp2, in the order of their identifiers.
  var entries: [nghttp2_settings_entry] {
    var entries: [nghttp2_settings_entry] = []
    if maxConcurrentStreams != nil {
      // nghttp2 always gets the hard limit: it refuses streams above a limit that the peer has not acknowledged
      // yet, which APNs does not do. `drain` writes the announced number into the frame.
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
