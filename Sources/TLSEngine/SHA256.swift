internal import COpenSSL

/// The SHA-256 hash (FIPS 180-4), computed by OpenSSL.
public enum SHA256 {
  /// The number of bytes in a digest.
  public static let count = 32

  // Looked up once: asking OpenSSL for an algorithm by name with each call takes longer than hashing a push.
  // An EVP_MD is immutable and reference counted, so any thread may use it; it lives as long as the program.
  nonisolated(unsafe) static let algorithm: OpaquePointer? = EVP_MD_fetch(nil, "SHA2-256", nil) ?? EVP_sha256()

  /// The digest of `parts` put one after the other: 32 bytes. Any thread may call it.
  public static func digest(_ parts: UnsafeRawBufferPointer...) -> [UInt8] { digest(of: parts) }

  private static func digest(of parts: [UnsafeRawBufferPointer]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      filled = count
      let context = EVP_MD_CTX_new()
      defer { EVP_MD_CTX_free(context) }
      var written = EVP_DigestInit_ex(context, algorithm, nil)
      for part in parts where written == 1 { written = EVP_DigestUpdate(context, part.baseAddress, part.count) }
      if written == 1 { written = EVP_DigestFinal_ex(context, buffer.baseAddress, nil) }
      // Only a machine without memory gets here; all zeros is then at least not something left over in the buffer.
      if written != 1 { buffer.initialize(repeating: 0) }
    }
  }

  /// The digest of `parts` put one after the other in lower-case hexadecimal: 64 characters.
  public static func hexDigest(_ parts: UnsafeRawBufferPointer...) -> String { Hexadecimal.text(digest(of: parts)) }

  /// The digest of `bytes` in lower-case hexadecimal: 64 characters.
  public static func hexDigest(_ bytes: [UInt8]) -> String {
    bytes.withUnsafeBytes { Hexadecimal.text(digest($0)) }
  }
}
