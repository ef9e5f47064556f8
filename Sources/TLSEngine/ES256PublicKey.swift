internal import COpenSSL

/// The P-256 public key of a provider, which verifies provider tokens (Protocol.md, section 3.1).
///
/// Thread-safe.
public final class ES256PublicKey: Sendable {
  let key: P256Key

  init(_ key: P256Key) {
    self.key = key
  }

  /// Reads a public key in PEM (`-----BEGIN PUBLIC KEY-----`, SubjectPublicKeyInfo, RFC 5280 section 4.1).
  ///
  /// - Throws: `TLSError` that describes what the text contains instead, such as a private key, a certificate, or a
  ///   key that is not P-256.
  public convenience init(pem: String) throws {
    guard pem.contains("-----BEGIN PUBLIC KEY-----") else {
      throw TLSError("this is \(PEMText.content(of: pem)), not a public key in PEM (BEGIN PUBLIC KEY)")
    }
    let pointer = try MemoryBIO.reading(pem) { bio in
      PEM_read_bio_PUBKEY(bio, nil, MemoryBIO.noPassphrase, nil)
    }
    guard let pointer else { throw TLSError("the public key is damaged") }
    self.init(try P256Key(takingOver: pointer))
  }

  /// The key as SubjectPublicKeyInfo in PEM.
  ///
  /// - Throws: `TLSError` if OpenSSL cannot allocate memory.
  public var pem: String {
    get throws {
      try MemoryBIO.writtenText { bio in
        guard PEM_write_bio_PUBKEY(bio, key.pointer) == 1 else { throw TLSError("cannot write a public key") }
      }
    }
  }

  /// Whether both keys are equal.
  public func isSame(as other: ES256PublicKey) -> Bool {
    defer { ERR_clear_error() }
    return EVP_PKEY_eq(key.pointer, other.key.pointer) == 1
  }

  /// Whether `signature` was made over `message` with the matching private key. Takes about 60 µs.
  ///
  /// A signature of 64 bytes is interpreted as r and s of 32 bytes each (RFC 7518 section 3.4), one of 132 bytes as
  /// r and s of 66 bytes each, as written by libraries that call a P-256 signature `ES512`, and any other as DER,
  /// which APNs accepts too.
  public func isValid(
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
