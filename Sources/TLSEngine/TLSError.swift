internal import CAPNSMockOpenSSL

/// An OpenSSL failure: a description of the failed operation and OpenSSL's reasons.
package struct TLSError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The failed operation, followed by OpenSSL's reasons in parentheses, if there are any.
  package let description: String

  /// Creates an error about `what` with the reasons in the calling thread's OpenSSL error queue, and clears the
  /// queue: remaining entries would be attributed to the next TLS call on this thread.
  package init(_ what: String) {
    let reasons = Self.drainQueue()
    description = reasons.isEmpty ? what : "\(what) (OpenSSL: \(reasons.joined(separator: "; ")))"
  }

  /// Removes and returns the distinct reasons in the queue, oldest first.
  private static func drainQueue() -> [String] {
    var reasons: [String] = []
    var detail: UnsafePointer<CChar>?
    var flags: Int32 = 0
    while true {
      let code = ERR_get_error_all(nil, nil, nil, &detail, &flags)
      guard code != 0 else { return reasons }
      var reason = ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(String(code, radix: 16))"
      // The detail is text only if the flag says so. The queue owns it, so it is copied at once.
      if flags & ERR_TXT_STRING != 0, let detail, detail.pointee != 0 {
        reason += ", " + String(cString: detail)
      }
      if !reasons.contains(reason) { reasons.append(reason) }
    }
  }
}

/// TLS alerts (RFC 8446 section 6), and `no_renegotiation` of RFC 5246.
package enum TLSAlert {
  /// The names of all alerts, such as `handshake_failure`, in the order of their codes.
  package static let names = table.map(\.name)

  /// Returns the code of an alert; nil if no alert has this name.
  package static func code(named name: String) -> UInt8? { table.first { $0.name == name }?.code }

  /// Returns the name of an alert; nil if no alert has this code.
  package static func name(of code: UInt8) -> String? { table.first { $0.code == code }?.name }

  /// Returns an alert with any code as an unencrypted record, to be sent instead of a ServerHello. Its level is
  /// fatal, except for `close_notify` and `user_canceled`.
  package static func record(code: UInt8) -> [UInt8] {
    let level: UInt8 = code == closeNotify || code == userCanceled ? 1 : 2
    // Content type alert, the record version of all TLS versions since 1.2, length.
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
