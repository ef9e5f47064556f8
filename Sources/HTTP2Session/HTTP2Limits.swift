/// The limits of a server session, apart from the stream limit that it advertises.
public enum HTTP2Limits {
  /// SETTINGS_HEADER_TABLE_SIZE as sent by APNs (Protocol.md, section 9.1, observed).
  public static let headerTableSize: UInt32 = 4096
  /// SETTINGS_MAX_FRAME_SIZE as sent by APNs (Protocol.md, section 9.1, observed).
  public static let maxFrameSize: UInt32 = 16384
  /// SETTINGS_MAX_HEADER_LIST_SIZE as sent by APNs (Protocol.md, section 9.1, observed); a larger list gets status
  /// 431.
  public static let maxHeaderListSize = 8000
  /// Bytes of fields beyond `maxHeaderListSize` that are received in order to respond with 431, counted as header
  /// lists are. One byte on the wire may represent 4 kB of them (HPACK table), so a larger list is treated as an
  /// attack and ends the connection.
  public static let maxHeaderExcess = 65536
  /// Body bytes received of one request before it is answered without waiting for its end.
  public static let maxBodySize = 65536
  /// Streams a connection may open before it has acknowledged our limit. nghttp2 refuses streams above this number.
  public static let hardStreamLimit: UInt32 = 4000
  /// The interval at which `endOverdueStreams` must be called.
  public static let lookInterval = Duration.seconds(10)
  /// The number of `endOverdueStreams` calls that a request may take to be received, and a response to be accepted:
  /// 30 to 40 s. nginx allows 60 s between two reads. A push has about 5 kB.
  public static let maxLooks: UInt8 = 3
  /// Streams that may be reset between two `endOverdueStreams` calls, by the client or because they violate HTTP/2.
  /// Equals a provider that gives up each of 1000 streams after one second; providers reach that only while a rule
  /// delays pushes.
  public static let maxResets = 10_000
  /// The largest flow-control window (RFC 9113 section 6.9.1).
  static let maxWindowSize: UInt32 = 0x7FFF_FFFF
}
