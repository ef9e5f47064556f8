internal import COpenSSL

/// The file in which a certificate and its key travel together (`.p12`, RFC 7292).
public enum PKCS12 {
  /// Rounds of hashing the password; what openssl itself takes.
  private static let rounds: Int32 = 2048

  /// A certificate with its key, under a password. No other certificate: some libraries accept exactly two entries.
  ///
  /// Encrypted by triple DES under a key derived with SHA-1, and authenticated with SHA-1: the only form that macOS
  /// key chains, Java 8 and older Windows read. It protects nothing, and for a mock's key it need not.
  ///
  /// - Parameter name: the friendly name that key chains show.
  /// - Throws: `TLSError` if OpenSSL cannot make it.
  public static func encode(
    _ issued: CertificateAuthority.Issued, name: String, password: String
  ) throws -> [UInt8] {
    // -1 leaves out the MAC, whose hash can only be chosen in a call of its own.
    let made = PKCS12_create(
      password, name, issued.key.key.pointer, issued.certificate.pointer, nil,
      NID_pbe_WithSHA1And3_Key_TripleDES_CBC, NID_pbe_WithSHA1And3_Key_TripleDES_CBC, rounds, -1, 0)
    guard let made else { throw TLSError("cannot make a PKCS#12 file") }
    defer { PKCS12_free(made) }
    guard PKCS12_set_mac(made, password, -1, nil, 0, rounds, EVP_sha1()) == 1 else {
      throw TLSError("cannot authenticate a PKCS#12 file")
    }
    let count = i2d_PKCS12(made, nil)
    guard count > 0 else { throw TLSError("cannot write a PKCS#12 file") }
    return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, filled in
      var position = buffer.baseAddress
      filled = max(0, Int(i2d_PKCS12(made, &position)))
    }
  }

  /// Whether these bytes are such a file that `password` opens, with more certificates than the key's own.
  public static func containsFurtherCertificates(_ bytes: [UInt8], password: String) -> Bool {
    defer { ERR_clear_error() }
    return bytes.withUnsafeBufferPointer { bytes in
      var position = bytes.baseAddress
      guard let file = d2i_PKCS12(nil, &position, bytes.count) else { return false }
      defer { PKCS12_free(file) }
      var key: OpaquePointer?
      var certificate: OpaquePointer?
      var others: OpaquePointer?
      guard PKCS12_parse(file, password, &key, &certificate, &others) == 1 else { return false }
      defer {
        EVP_PKEY_free(key)
        X509_free(certificate)
        OPENSSL_sk_pop_free(others) { X509_free($0.map { OpaquePointer($0) }) }
      }
      return OPENSSL_sk_num(others) > 0
    }
  }

  /// Whether these bytes are such a file, under whatever password.
  public static func isWhole(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBufferPointer { bytes in
      var position = bytes.baseAddress
      guard let read = d2i_PKCS12(nil, &position, bytes.count) else {
        ERR_clear_error()
        return false
      }
      PKCS12_free(read)
      return true
    }
  }
}
