/// The alerts of TLS (RFC 8446 section 6), and the one of RFC 5246 besides that clients still know.
public enum TLSAlert {
  /// Their names, such as `handshake_failure`, in the order of their numbers.
  public static let names = table.map(\.name)

  /// The number of an alert; nil for a name that none has.
  public static func code(named name: String) -> UInt8? { table.first { $0.name == name }?.code }

  /// The name of an alert; nil for a number that none has.
  public static func name(of code: UInt8) -> String? { table.first { $0.code == code }?.name }

  /// An alert, known or not, as a record in plain text, for the time before there are keys: it may stand in place of a
  /// ServerHello. It is fatal, but for the two that end a connection in order.
  public static func record(code: UInt8) -> [UInt8] {
    let level: UInt8 = code == closeNotify || code == userCanceled ? 1 : 2
    // Content type alert, the version that every record says since TLS 1.2, length.
    return [21, 3, 3, 0, 2, level, code]
  }

  private static let closeNotify: UInt8 = 0
  private static let userCanceled: UInt8 = 90

  private static let table: [(code: UInt8, name: String)] = [
    (closeNotify, "close_notify"), (10, "unexpected_message"), (20, "bad_record_mac"), (22, "record_overflow"),
    (40, "handshake_failure"), (42, "bad_certificate"), (43, "unsupported_certificate"), (44, "certificate_revoked"),
    (45, "certificate_expired"), (46, "certificate_unknown"), (47, "illegal_parameter"), (48, "unknown_ca"),
    (49, "access_denied"), (50, "decode_error"), (51, "decrypt_error"), (70, "protocol_version"),
    (71, "insufficient_security"), (80, "internal_error"), (86, "inappropriate_fallback"),
    (userCanceled, "user_canceled"), (100, "no_renegotiation"), (109, "missing_extension"),
    (110, "unsupported_extension"), (112, "unrecognized_name"), (113, "bad_certificate_status_response"),
    (115, "unknown_psk_identity"), (116, "certificate_required"), (120, "no_application_protocol"),
  ]
}
