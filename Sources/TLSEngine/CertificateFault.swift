internal import COpenSSL

/// The first reason OpenSSL found not to trust a peer's certificate (RFC 5280 section 6).
public struct CertificateFault: Sendable, Equatable {
  /// The kinds of fault, by the required remedy.
  public enum Kind: Sendable {
    /// No trusted authority issued it.
    case unknownAuthority
    /// The certificate or one of its issuers has expired.
    case expired
    /// The certificate or one of its issuers is not valid yet.
    case notYetValid
    /// The name constraints of its authority exclude one of its names.
    case nameOutsideAuthority
    /// Any other fault.
    case other
  }

  /// The kind of fault.
  public let kind: Kind
  /// OpenSSL's description.
  public let text: String

  /// Creates a fault.
  ///
  /// - Parameter code: one of OpenSSL's `X509_V_ERR_…` codes.
  init(code: Int32) {
    switch code {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
      X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
      X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_CERT_SIGNATURE_FAILURE, X509_V_ERR_CERT_UNTRUSTED,
      X509_V_ERR_AKID_SKID_MISMATCH, X509_V_ERR_AKID_ISSUER_SERIAL_MISMATCH, X509_V_ERR_SUBJECT_ISSUER_MISMATCH:
      kind = .unknownAuthority
    case X509_V_ERR_CERT_HAS_EXPIRED: kind = .expired
    case X509_V_ERR_CERT_NOT_YET_VALID: kind = .notYetValid
    case X509_V_ERR_PERMITTED_VIOLATION, X509_V_ERR_EXCLUDED_VIOLATION: kind = .nameOutsideAuthority
    default: kind = .other
    }
    text = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
  }
}
