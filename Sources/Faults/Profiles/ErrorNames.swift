internal import HTTP2Session

/// Names of the error codes that a fault can put on the wire.
enum ErrorNames {
  /// Those of RFC 9113 section 7, in the order of their numbers.
  static let http2 = (0...13).compactMap { HTTP2ErrorCode(rawValue: $0)?.name }

  /// The number of an HTTP/2 error code.
  static func http2Code(_ name: String) -> UInt32? {
    http2.firstIndex(of: name).map(UInt32.init)
  }

  /// The name of an HTTP/2 error code; nil for numbers that nobody has named.
  static func http2Name(_ code: UInt32) -> String? { HTTP2ErrorCode(rawValue: code)?.name }

  /// The names of TLS alerts (RFC 8446 section 6, and those of RFC 5246 that clients still know).
  static let alerts = alertTable.map(\.name)

  /// The number of a TLS alert.
  static func alertCode(_ name: String) -> UInt8? { alertTable.first { $0.name == name }?.code }

  /// The name of a TLS alert; nil for numbers that nobody has named.
  static func alertName(_ code: UInt8) -> String? { alertTable.first { $0.code == code }?.name }

  private static let alertTable: [(name: String, code: UInt8)] = [
    ("close_notify", 0), ("unexpected_message", 10), ("bad_record_mac", 20), ("record_overflow", 22),
    ("handshake_failure", 40), ("bad_certificate", 42), ("unsupported_certificate", 43), ("certificate_revoked", 44),
    ("certificate_expired", 45), ("certificate_unknown", 46), ("illegal_parameter", 47), ("unknown_ca", 48),
    ("access_denied", 49), ("decode_error", 50), ("decrypt_error", 51), ("protocol_version", 70),
    ("insufficient_security", 71), ("internal_error", 80), ("inappropriate_fallback", 86), ("user_canceled", 90),
    ("no_renegotiation", 100), ("missing_extension", 109), ("unsupported_extension", 110), ("unrecognized_name", 112),
    ("bad_certificate_status_response", 113), ("unknown_psk_identity", 115), ("certificate_required", 116),
    ("no_application_protocol", 120),
  ]
}
