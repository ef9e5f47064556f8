internal import COpenSSL

/// Descriptions of PEM texts for error messages.
enum PEMText {
  /// Describes the first block, with an indefinite article.
  static func content(of text: String) -> String {
    guard let begin = text.firstRange(of: "-----BEGIN "), let end = text[begin.upperBound...].firstRange(of: "-----")
    else {
      return text.allSatisfy(\.isWhitespace) ? "empty" : "not a PEM text"
    }
    switch text[begin.upperBound..<end.lowerBound] {
    case "PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY": return "a private key"
    case "ENCRYPTED PRIVATE KEY": return "an encrypted private key"
    case "PUBLIC KEY", "RSA PUBLIC KEY": return "a public key"
    case "CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE": return "a certificate"
    case "CERTIFICATE REQUEST": return "a certificate request"
    default: return "something else"
    }
  }
}

/// Files with a certificate and its key (`.p12`, RFC 7292).
package enum PKCS12 {
  /// The iterations of the key derivation; openssl's default.
  private static let rounds: Int32 = 2048

  /// Encodes a certificate and its key with a password. No further certificates are included: some libraries
  /// require exactly two entries.
  ///
  /// Encrypted with triple DES and a key derived with SHA-1, and authenticated with SHA-1: the only form that macOS
  /// keychains, Java 8 and older Windows versions read. It is not secure, which does not matter for a mock's key.
  ///
  /// - Parameter name: The friendly name that keychains show.
  /// - Throws: `TLSError` if OpenSSL fails.
  package static func encode(
    _ issued: CertificateAuthority.Issued, name: String, password: String
  ) throws -> [UInt8] {
    // -1 omits the MAC, whose hash can only be chosen with PKCS12_set_mac.
    let made = PKCS12_create(
      password, name, issued.key.key.pointer, issued.certificate.pointer, nil,
      NID_pbe_WithSHA1And3_Key_TripleDES_CBC, NID_pbe_WithSHA1And3_Key_TripleDES_CBC, rounds, -1, 0)
    guard let made else { throw TLSError("cannot create a PKCS#12 file") }
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

  /// Whether the bytes are a PKCS#12 file that `password` decrypts and that has more certificates than the key's
  /// own.
  package static func containsFurtherCertificates(_ bytes: [UInt8], password: String) -> Bool {
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

  /// Whether the bytes are a complete PKCS#12 file, with any password.
  package static func isWhole(_ bytes: [UInt8]) -> Bool {
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
