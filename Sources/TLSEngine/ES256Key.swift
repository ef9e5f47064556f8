internal import CAPNSMockOpenSSL

/// The P-256 public key of a provider, which verifies provider tokens (Protocol.md, section 3.1).
///
/// Thread-safe.
package final class ES256PublicKey: Sendable {
  let key: P256Key

  init(_ key: P256Key) {
    self.key = key
  }

  /// Reads a public key in PEM (`-----BEGIN PUBLIC KEY-----`, SubjectPublicKeyInfo, RFC 5280 section 4.1).
  ///
  /// - Throws: `TLSError` that describes what the text contains instead, such as a private key, a certificate, or a
  ///   key that is not P-256.
  package convenience init(pem: String) throws {
    try PEMText.checkBeginning(of: pem, "the public key")
    guard pem.contains("-----BEGIN PUBLIC KEY-----") else {
      throw TLSError(PEMText.kindProblem(of: pem, expected: "a public key in PEM (BEGIN PUBLIC KEY)"))
    }
    let pointer = try MemoryBIO.reading(pem) { bio in
      PEM_read_bio_PUBKEY(bio, nil, MemoryBIO.noPassphrase, nil)
    }
    guard let pointer else { throw TLSError(PEMText.formProblem(of: pem, "the public key")) }
    self.init(try P256Key(takingOver: pointer))
  }

  /// The key as SubjectPublicKeyInfo in PEM.
  ///
  /// - Throws: `TLSError` if OpenSSL cannot allocate memory.
  package var pem: String {
    get throws {
      try MemoryBIO.writtenText { bio in
        guard PEM_write_bio_PUBKEY(bio, key.pointer) == 1 else { throw TLSError("cannot write a public key") }
      }
    }
  }

  /// Whether both keys are equal.
  package func isSame(as other: ES256PublicKey) -> Bool {
    defer { ERR_clear_error() }
    return EVP_PKEY_eq(key.pointer, other.key.pointer) == 1
  }

  /// Whether `signature` was made over `message` with the matching private key. Takes about 60 µs.
  ///
  /// A signature of 64 bytes is interpreted as r and s of 32 bytes each (RFC 7518 section 3.4), one of 132 bytes as
  /// r and s of 66 bytes each, as written by libraries that call a P-256 signature `ES512`, and any other as DER,
  /// which APNs accepts too.
  package func isValid(
    signature: UnsafeRawBufferPointer, for message: UnsafeRawBufferPointer, hash: SignatureHash = .sha256
  ) -> Bool {
    guard let context = EVP_MD_CTX_new() else { return false }
    // An invalid signature leaves errors in this thread's queue, which a TLS call would report.
    defer {
      EVP_MD_CTX_free(context)
      ERR_clear_error()
    }
    guard EVP_DigestVerifyInit(context, nil, hash.algorithm, nil, key.pointer) == 1 else { return false }
    if let der = ECDSASignature.der(fromRaw: signature) {
      return der.withUnsafeBytes { Self.matches(context, $0, message) }
    }
    return Self.matches(context, signature, message)
  }

  private static func matches(
    _ context: OpaquePointer, _ signature: UnsafeRawBufferPointer, _ message: UnsafeRawBufferPointer
  ) -> Bool {
    // No P-256 signature in DER has another size; skip the call into OpenSSL.
    guard (8...72).contains(signature.count) else { return false }
    let bytes = signature.bindMemory(to: UInt8.self)
    let text = message.bindMemory(to: UInt8.self)
    return EVP_DigestVerify(context, bytes.baseAddress, bytes.count, text.baseAddress, text.count) == 1
  }
}

/// A P-256 private key: a provider key as issued by Apple (`AuthKey_….p8`), or the key of a generated certificate.
///
/// Thread-safe.
package final class ES256PrivateKey: Sendable {
  let key: P256Key
  /// The public key.
  package let publicKey: ES256PublicKey

  /// Generates a new key.
  ///
  /// - Throws: `TLSError` if OpenSSL cannot generate random numbers.
  package convenience init() throws {
    try self.init(key: P256Key())
  }

  /// Reads an unencrypted private key in PEM: PKCS#8 as downloaded from Apple (`BEGIN PRIVATE KEY`), or the older
  /// form written by openssl (`BEGIN EC PRIVATE KEY`).
  ///
  /// - Throws: `TLSError` that describes what the text contains instead.
  package convenience init(pem: String) throws {
    try PEMText.checkBeginning(of: pem, "the private key")
    guard pem.contains("-----BEGIN PRIVATE KEY-----") || pem.contains("-----BEGIN EC PRIVATE KEY-----") else {
      throw TLSError(PEMText.kindProblem(of: pem, expected: "a private key in PEM (BEGIN PRIVATE KEY)"))
    }
    let pointer = try MemoryBIO.reading(pem) { bio in
      PEM_read_bio_PrivateKey(bio, nil, MemoryBIO.noPassphrase, nil)
    }
    guard let pointer else { throw TLSError(PEMText.formProblem(of: pem, "the private key")) }
    try self.init(key: P256Key(takingOver: pointer))
  }

  private init(key: P256Key) throws {
    self.key = key
    publicKey = ES256PublicKey(key)
  }

  /// The key as unencrypted PKCS#8 in PEM, the form of Apple's downloads.
  ///
  /// - Throws: `TLSError` if OpenSSL cannot allocate memory.
  package var pem: String {
    get throws {
      try MemoryBIO.writtenText { bio in
        guard PEM_write_bio_PKCS8PrivateKey(bio, key.pointer, nil, nil, 0, nil, nil) == 1 else {
          throw TLSError("cannot write a private key")
        }
      }
    }
  }

  /// Signs `message` with ES256: r and s of 32 bytes each (RFC 7518 section 3.4). Takes about 30 µs.
  ///
  /// - Throws: `TLSError` if OpenSSL cannot generate random numbers.
  package func sign(_ message: [UInt8]) throws -> [UInt8] {
    let context = EVP_MD_CTX_new()
    defer { EVP_MD_CTX_free(context) }
    var signature = [UInt8](repeating: 0, count: 80)
    var count = signature.count
    guard EVP_DigestSignInit(context, nil, SignatureHash.sha256.algorithm, nil, key.pointer) == 1,
      EVP_DigestSign(context, &signature, &count, message, message.count) == 1,
      let raw = ECDSASignature.raw(fromDER: signature.prefix(count))
    else { throw TLSError("cannot sign") }
    return raw
  }
}

/// Owns an OpenSSL P-256 key: a key pair or only a public key.
final class P256Key: Sendable {
  // Reference counted and never changed after `init`; OpenSSL 3 allows concurrent use of a key.
  nonisolated(unsafe) let pointer: OpaquePointer

  /// Takes ownership of `pointer`, which is freed even if this throws.
  ///
  /// - Throws: `TLSError` if it is not a P-256 key.
  init(takingOver pointer: OpaquePointer) throws {
    self.pointer = pointer
    let kind = Self.kind(of: pointer)
    guard kind == "P-256" else { throw TLSError("the key is of the kind \(kind), not an elliptic curve key on P-256") }
  }

  /// Generates a new key pair.
  init() throws {
    let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1,
      EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1,
      EVP_PKEY_keygen(context, &key) == 1, let key
    else { throw TLSError("cannot create a P-256 key") }
    pointer = key
  }

  deinit { EVP_PKEY_free(pointer) }

  private static func kind(of key: OpaquePointer) -> String {
    guard EVP_PKEY_is_a(key, "EC") == 1 else {
      return EVP_PKEY_get0_type_name(key).map { String(cString: $0) } ?? "unknown"
    }
    if EVP_PKEY_get_bits(key) == 256 {
      var name = [CChar](repeating: 0, count: 64)
      var count = 0
      if EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1 {
        let text = String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text == "prime256v1" || text == "P-256" ? "P-256" : text
      }
    }
    return "EC with \(EVP_PKEY_get_bits(key)) bits"
  }
}

/// Conversion between the encodings of an ECDSA signature: r‖s, as in JWTs, and DER, as in OpenSSL.
enum ECDSASignature {
  /// The size of r and s in a P-256 signature, in bytes.
  private static let numberSize = 32

  /// Converts a raw signature of 64 or 132 bytes to DER; nil for any other size.
  static func der(fromRaw signature: UnsafeRawBufferPointer) -> [UInt8]? {
    guard signature.count == 64 || signature.count == 132 else { return nil }
    let half = signature.count / 2
    let r = number(signature[..<half])
    let s = number(signature[half...])
    let content = UInt8(truncatingIfNeeded: r.count + s.count)
    // The content of a P-256 signature always fits into a one-byte length; the 132-byte form may hold numbers too
    // large for the curve, which no key accepts.
    return content < 0x80 ? [0x30, content] + r + s : []
  }

  /// Converts a DER signature to r and s of 32 bytes each; nil if it is not a P-256 signature.
  static func raw(fromDER der: ArraySlice<UInt8>) -> [UInt8]? {
    let signature = der.withUnsafeBufferPointer { buffer in
      var position = buffer.baseAddress
      return d2i_ECDSA_SIG(nil, &position, buffer.count)
    }
    guard let signature else { return nil }
    defer { ECDSA_SIG_free(signature) }
    var raw = [UInt8](repeating: 0, count: 2 * numberSize)
    let filled = raw.withUnsafeMutableBufferPointer { buffer in
      BN_bn2binpad(ECDSA_SIG_get0_r(signature), buffer.baseAddress, Int32(numberSize)) >= 0
        && BN_bn2binpad(ECDSA_SIG_get0_s(signature), buffer.baseAddress.map { $0 + numberSize }, Int32(numberSize)) >= 0
    }
    return filled ? raw : nil
  }

  /// Encodes an unsigned number as DER INTEGER: no leading zeros except the one that keeps it positive.
  private static func number(_ bytes: Slice<UnsafeRawBufferPointer>) -> [UInt8] {
    var digits = Array(bytes.drop { $0 == 0 })
    if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
    return [0x02, UInt8(truncatingIfNeeded: digits.count)] + digits
  }
}
