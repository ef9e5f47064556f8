internal import CAPNSMockOpenSSL
internal import APNSMockNotation

/// The SHA-256 hash (FIPS 180-4), computed by OpenSSL.
package enum SHA256 {
  /// The number of bytes in a digest.
  package static let count = 32

  /// A digest as four big-endian numbers.
  package typealias Words = (UInt64, UInt64, UInt64, UInt64)

  /// Returns the digest of `bytes`. Thread-safe; allocates no memory, unless OpenSSL was built without the deprecated
  /// SHA-256 functions.
  package static func words(of bytes: UnsafeRawBufferPointer) -> Words {
    var words: Words = (0, 0, 0, 0)
    // Fails only without memory; the digest is then all zeros.
    _ = withUnsafeMutableBytes(of: &words) { apns_SHA256(bytes.baseAddress, bytes.count, $0.baseAddress) }
    return (words.0.bigEndian, words.1.bigEndian, words.2.bigEndian, words.3.bigEndian)
  }

  /// Returns the digest of `bytes` as 64 lower-case hexadecimal digits.
  package static func hexDigest(_ bytes: [UInt8]) -> String {
    let words = bytes.withUnsafeBytes { Self.words(of: $0) }
    let digest = [words.0, words.1, words.2, words.3].flatMap { word in
      stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> UInt64($0)) }
    }
    return Hexadecimal.text(digest)
  }
}

/// The hash algorithm of a signature. Apple requires SHA-256 (`ES256`); some providers, such as the PHP library
/// pushok, sign with SHA-512 and the same P-256 key and call it `ES512`.
package enum SignatureHash: Sendable {
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
