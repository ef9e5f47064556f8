/// What the server side of a session allows a peer, apart from the stream limit that it advertises.
public enum HTTP2Limits {
  /// SETTINGS_HEADER_TABLE_SIZE as APNs sends it (APNS.md section 9.1, observed).
  public static let headerTableSize: UInt32 = 4096
  /// SETTINGS_MAX_FRAME_SIZE as APNs sends it (APNS.md section 9.1, observed).
  public static let maxFrameSize: UInt32 = 16384
  /// SETTINGS_MAX_HEADER_LIST_SIZE as APNs sends it (APNS.md section 9.1, observed); a larger list gets status 431.
  public static let maxHeaderListSize = 8000
  /// A header list larger than this, or a header block in more bytes, ends the connection.
  public static let hardHeaderListSize = 65536
  /// Body bytes that are read of one request before it is answered without waiting for its end.
  public static let maxBodySize = 65536
  /// Streams one connection may have open before it has acknowledged our limit. nghttp2 refuses what is beyond it.
  public static let hardStreamLimit: UInt32 = 10000
}

/// Error codes of RST_STREAM and GOAWAY frames (RFC 9113 section 7).
public enum HTTP2ErrorCode: UInt32, Sendable {
  case noError = 0
  case protocolError = 1
  case internalError = 2
  case flowControlError = 3
  case settingsTimeout = 4
  case streamClosed = 5
  case frameSizeError = 6
  case refusedStream = 7
  case cancel = 8
  case compressionError = 9
  case connectError = 10
  case enhanceYourCalm = 11
  case inadequateSecurity = 12
  case http11Required = 13
}

/// What went wrong in a session so that it cannot go on.
public struct HTTP2Failure: Error, CustomStringConvertible, Sendable, Equatable {
  /// The kinds a caller treats differently.
  public enum Kind: Sendable, Equatable {
    /// The first bytes were not the HTTP/2 client preface: most often an HTTP/1.1 request.
    case badPreface
    /// nghttp2 gave up on the peer: flooding, or out of memory.
    case fatal
  }
  /// Which kind it is.
  public let kind: Kind
  /// For people.
  public let description: String
}
