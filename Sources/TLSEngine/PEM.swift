internal import CAPNSMockOpenSSL
internal import APNSMockNotation

/// Descriptions of PEM texts for error messages.
enum PEMText {
  /// Checks that a text does not begin with a byte order mark. OpenSSL skips one, other libraries find no key behind it: a
  /// provider would fail with a file that works here.
  ///
  /// - Throws: `TLSError` that names it.
  static func checkBeginning(of text: String, _ subject: String) throws {
    guard text.unicodeScalars.first == "\u{FEFF}" else { return }
    throw TLSError(
      "\(subject) begins with a byte order mark, which many libraries do not read: save it as UTF-8 without one")
  }

  /// Describes a text that has no block of the expected kind, with the correction. Contains nothing of the text.
  ///
  /// - Parameter expected: The expected content, with an indefinite article.
  static func kindProblem(of text: String, expected: String) -> String {
    isEncrypted(text) ? encryptedKey : problemWithoutBlock(text) ?? "this is \(content(of: text)), not \(expected)"
  }

  /// Describes why OpenSSL cannot read a text that has a block of the expected kind, with the correction. Contains nothing of
  /// the text.
  ///
  /// - Parameter subject: What the text was meant to be, such as `the private key`.
  static func formProblem(of text: String, _ subject: String) -> String {
    if isEncrypted(text) { return encryptedKey }
    if text.contains("\\n") {
      return
        "\(subject) has the two characters \\n where line breaks must be, as in a variable that was escaped: replace them "
        + "by line breaks"
    }
    guard let begin = text.firstRange(of: "-----BEGIN "), let end = text[begin.upperBound...].firstRange(of: "-----")
    else { return "\(subject) is damaged" }
    if text[..<begin.lowerBound].last?.isNewline == false {
      return
        "\(subject) has something before -----BEGIN in the same line, such as a space or a quotation mark: remove it"
    }
    let rest = text[end.upperBound...]
    if rest.drop(while: { $0 == " " || $0 == "\t" }).first?.isNewline == false {
      return "\(subject) has no line break after the line -----BEGIN: restore the line breaks"
    }
    return rest.contains("-----END ") ? "\(subject) is damaged" : "\(subject) has no line -----END: it was cut"
  }

  private static let encryptedKey =
    "this is an encrypted private key, which cannot be used: decrypt it: openssl pkey -in FILE -out decrypted.p8"

  private static let binary =
    "a binary file (DER), not PEM: convert .p12 and .pfx: openssl pkcs12 -in FILE -nodes -out FILE.pem, .cer and .der: "
    + "openssl x509 -inform der -in FILE -out FILE.pem"

  /// Describes a file that is not PEM but binary, as the end of a sentence that names the file; empty for other files.
  static func binaryProblem(ofFile path: String) -> String {
    guard let file = BIO_new_file(path, "rb") else { return "" }
    defer { BIO_free(file) }
    // A SEQUENCE (X.690) whose length takes more than one byte.
    var start: [UInt8] = [0, 0]
    guard BIO_read(file, &start, 2) == 2, start[0] == 0x30, start[1] > 0x80 else { return "" }
    ERR_clear_error()
    return ", which is \(binary)"
  }

  private static func isEncrypted(_ text: String) -> Bool {
    text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") || text.contains("Proc-Type: 4,ENCRYPTED")
  }

  /// Describes a text without a line `-----BEGIN` that has the content of PEM; nil for other texts.
  private static func problemWithoutBlock(_ text: String) -> String? {
    guard !text.contains("-----BEGIN ") else { return nil }
    if text.hasPrefix("0\u{FFFD}") { return "this is \(binary)" }
    if text.unicodeScalars.contains("\0") {
      return "the text contains NUL characters, as UTF-16 does: save it as UTF-8"
    }
    let compact = Array(text.filter { !$0.isWhitespace }.utf8)
    guard compact.count > 40, let bytes = Base64URL(compact)?.bytes else { return nil }
    if bytes.starts(with: "-----BEGIN ".utf8) { return "this is a PEM text in base64: decode it first" }
    return bytes.first == 0x30
      ? "this lacks the first and the last line of PEM, such as -----BEGIN PRIVATE KEY----- and -----END PRIVATE KEY-----: add "
        + "them" : nil
  }

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
