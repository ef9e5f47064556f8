internal import COpenSSL

/// The SHA-256 hash (FIPS 180-4), computed by OpenSSL.
public enum SHA256 {
  /// The number of bytes in a digest.
  public static let count = 32

  /// A digest as four big-endian numbers.
  public typealias Words = (UInt64, UInt64, UInt64, UInt64)

  /// Returns the digest of `bytes`. Thread-safe; allocates no memory, unless OpenSSL was built without the deprecated
  /// SHA-256 functions.
  public static func words(of bytes: UnsafeRawBufferPointer) -> Words {
    var words: Words = (0, 0, 0, 0)
    // Fails only without memory; the digest is then all zeros.
    _ = withUnsafeMutableBytes(of: &words) { apns_SHA256(bytes.baseAddress, bytes.count, $0.baseAddress) }
    return (words.0.bigEndian, words.1.bigEndian, words.2.bigEndian, words.3.bigEndian)
  }

  /// Returns the digest of `bytes` as 64 lower-case hexadecimal digits.
  public static func hexDigest(_ bytes: [UInt8]) -> String {
    let words = bytes.withUnsafeBytes { Self.words(of: $0) }
    let digest = [words.0, words.1, words.2, words.3].flatMap { word in
      stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: word >> UInt64($0)) }
    }
    return Hexadecimal.text(digest)
  }
}
