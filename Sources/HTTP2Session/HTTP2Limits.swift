/// What the server side of a session allows a peer, apart from the stream limit that it advertises.
public enum HTTP2Limits {
  /// SETTINGS_HEADER_TABLE_SIZE as APNs sends it (APNS.md section 9.1, observed).
  public static let headerTableSize: UInt32 = 4096
  /// SETTINGS_MAX_FRAME_SIZE as APNs sends it (APNS.md section 9.1, observed).
  public static let maxFrameSize: UInt32 = 16384
  /// SETTINGS_MAX_HEADER_LIST_SIZE as APNs sends it (APNS.md section 9.1, observed); a larger list gets status 431.
  public static let maxHeaderListSize = 8000
  /// Body bytes that are read of one request before it is answered without waiting for its end.
  public static let maxBodySize = 65536
  /// Streams one connection may have open before it has acknowledged our limit. nghttp2 refuses what is beyond it.
  public static let hardStreamLimit: UInt32 = 4000
  /// The largest window there is (RFC 9113 section 6.9.1).
  static let maxWindowSize: UInt32 = 0x7FFF_FFFF
}
