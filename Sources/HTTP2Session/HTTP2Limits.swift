/// What the server side of a session allows a peer, apart from the stream limit that it advertises.
public enum HTTP2Limits {
  /// SETTINGS_HEADER_TABLE_SIZE as APNs sends it (APNS.md section 9.1, observed).
  public static let headerTableSize: UInt32 = 4096
  /// SETTINGS_MAX_FRAME_SIZE as APNs sends it (APNS.md section 9.1, observed).
  public static let maxFrameSize: UInt32 = 16384
  /// SETTINGS_MAX_HEADER_LIST_SIZE as APNs sends it (APNS.md section 9.1, observed); a larger list gets status 431.
  public static let maxHeaderListSize = 8000
  /// Bytes of fields beyond `maxHeaderListSize` that are read for the sake of a 431, counted as header lists are. One byte
  /// on the wire may stand for 4 kB of them (HPACK's table), so what goes on is an attack and ends the connection.
  public static let maxHeaderExcess = 65536
  /// Body bytes that are read of one request before it is answered without waiting for its end.
  public static let maxBodySize = 65536
  /// Streams one connection may have open before it has acknowledged our limit. nghttp2 refuses what is beyond it.
  public static let hardStreamLimit: UInt32 = 4000
  /// How often `endOverdueStreams` wants to be called.
  public static let lookInterval = Duration.seconds(10)
  /// So many looks a request may take to come whole, and an answer to be taken: 30 to 40 s, where nginx gives 60 s between two
  /// reads. A push is 5 kB.
  public static let maxLooks: UInt8 = 3
  /// Streams that may be reset between two looks, by the client or because they are no valid HTTP/2. It is what a provider
  /// does who gives up each of 1000 streams after a second; without a rule that holds pushes nobody comes near.
  public static let maxResets = 10_000
  /// The largest window there is (RFC 9113 section 6.9.1).
  static let maxWindowSize: UInt32 = 0x7FFF_FFFF
}
