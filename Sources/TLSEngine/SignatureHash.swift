internal import COpenSSL

/// The hash that is signed. Apple asks for SHA-256 (`ES256`); some providers sign with SHA-512 over the same P-256 key and
/// call it `ES512` (CLIENTS.md, trap 4).
public enum SignatureHash: Sendable {
  /// SHA-256, as in JWA `ES256` (RFC 7518 section 3.4).
  case sha256
  /// SHA-512.
  case sha512

  // Looked up once for the whole program; immutable, reference counted, never freed, safe to use from any thread.
  nonisolated(unsafe) private static let sha256Algorithm = EVP_MD_fetch(nil, "SHA2-256", nil) ?? EVP_sha256()
  nonisolated(unsafe) private static let sha512Algorithm = EVP_MD_fetch(nil, "SHA2-512", nil) ?? EVP_sha512()

  /// OpenSSL's algorithm; the pointer is valid for the life of the program.
  var algorithm: OpaquePointer? {
    switch self {
    case .sha256: Self.sha256Algorithm
    case .sha512: Self.sha512Algorithm
    }
  }
}
