internal import COpenSSL

/// The hash algorithm of a signature. Apple requires SHA-256 (`ES256`); some providers, such as the PHP library
/// pushok, sign with SHA-512 and the same P-256 key and call it `ES512`.
public enum SignatureHash: Sendable {
  /// SHA-256, as in JWA `ES256` (RFC 7518 section 3.4).
  case sha256
  /// SHA-512.
  case sha512

  // Fetched once per process; immutable, reference counted, never freed, safe to use from any thread.
  nonisolated(unsafe) private static let sha256Algorithm = EVP_MD_fetch(nil, "SHA2-256", nil) ?? EVP_sha256()
  nonisolated(unsafe) private static let sha512Algorithm = EVP_MD_fetch(nil, "SHA2-512", nil) ?? EVP_sha512()

  /// OpenSSL's algorithm; the pointer is valid for the lifetime of the process.
  var algorithm: OpaquePointer? {
    switch self {
    case .sha256: Self.sha256Algorithm
    case .sha512: Self.sha512Algorithm
    }
  }
}
