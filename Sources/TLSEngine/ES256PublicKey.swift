internal import COpenSSL

/// The public half of a provider key: a point on P-256, which checks the signatures of provider tokens (APNS.md section 3.1).
///
/// Any thread may use it, several at a time.
public final class ES256PublicKey: Sendable {
  let key: P256Key

  init(_ key: P256Key) {
    self.key = key
  }

  /// Reads a public key (`-----BEGIN PUBLIC KEY-----`, SubjectPublicKeyInfo, RFC 5280 section 4.1).
  ///
  /// - Throws: `TLSError` that says what stands there instead, when it is a private key, a certificate, or a key of another
  ///   kind than P-256.
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
  /// - Throws: `TLSError` if OpenSSL has no memory.
  public var pem: String {
    get throws {
      try MemoryBIO.writtenText { bio in
        guard PEM_write_bio_PUBKEY(bio, key.pointer) == 1 else { throw TLSError("cannot write a public key") }
      }
    }
  }

  /// Whether both are the same point.
  public func isSame(as other: ES256PublicKey) -> Bool {
    defer { ERR_clear_error() }
    return EVP_PKEY_eq(key.pointer, other.key.pointer) == 1
  }

  /// Whether `signature` was made over `message` with the private half. Takes about 60 µs.
  ///
  /// A signature of 64 bytes is taken as r and s of 32 bytes each (RFC 7518 section 3.4), one of 132 bytes as r and s of 66
  /// bytes each, as libraries write it that call a P-256 signature `ES512`; anything else as DER, which APNs accepts too.
  public func isValid(
    signature: UnsafeRawBufferPointer, for message: UnsafeRawBufferPointer, hash: SignatureHash = .sha256
  ) -> Bool {
    guard let context = EVP_MD_CTX_new() else { return false }
    // A signature that does not fit leaves reasons in this thread's queue, where a TLS call would find them.
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
    // More than any P-256 signature in DER can have: not worth OpenSSL's time.
    guard (8...72).contains(signature.count) else { return false }
    let bytes = signature.bindMemory(to: UInt8.self)
    let text = message.bindMemory(to: UInt8.self)
    return EVP_DigestVerify(context, bytes.baseAddress, bytes.count, text.baseAddress, text.count) == 1
  }
}
