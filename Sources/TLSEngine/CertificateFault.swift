internal import COpenSSL

/// Why a peer's certificate is not trusted (RFC 5280 section 6), as OpenSSL saw it first.
public struct CertificateFault: Sendable, Equatable {
  /// What kind of fault it is, by what has to be done about it.
  public enum Kind: Sendable {
    /// None of the trusted authorities vouches for it.
    case unknownAuthority
    /// It, or a certificate above it, has ended.
    case expired
    /// It, or a certificate above it, is not valid yet.
    case notYetValid
    /// Its authority may not vouch for the names it bears.
    case nameOutsideAuthority
    /// Anything else.
    case other
  }

  /// The kind.
  public let kind: Kind
  /// OpenSSL's words.
  public let text: String

  /// - Parameter code: one of OpenSSL's `X509_V_ERR_…`.
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
