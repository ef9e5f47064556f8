internal import COpenSSL

/// A provider key as Apple gives it out (`AuthKey_….p8`), and the key of every certificate made here: P-256.
///
/// Any thread may use it, several at a time.
public final class ES256PrivateKey: Sendable {
  let key: P256Key
  /// The half that can be shown to anybody.
  public let publicKey: ES256PublicKey

  /// A new key.
  ///
  /// - Throws: `TLSError` if OpenSSL has no randomness.
  public convenience init() throws {
    try self.init(key: P256Key())
  }

  /// Reads a private key in PEM: PKCS#8 as Apple's download (`BEGIN PRIVATE KEY`), or the older form that openssl writes
  /// (`BEGIN EC PRIVATE KEY`).
  ///
  /// - Throws: `TLSError` that says what stands there instead; encrypted keys are refused.
  public convenience init(pem: String) throws {
    guard pem.contains("-----BEGIN PRIVATE KEY-----") || pem.contains("-----BEGIN EC PRIVATE KEY-----") else {
      throw TLSError("this is \(PEMText.content(of: pem)), not a private key in PEM (BEGIN PRIVATE KEY)")
    }
    let pointer = try MemoryBIO.reading(pem) { bio in
      PEM_read_bio_PrivateKey(bio, nil, MemoryBIO.noPassphrase, nil)
    }
    guard let pointer else { throw TLSError("the private key is damaged or encrypted") }
    try self.init(key: P256Key(takingOver: pointer))
  }

  private init(key: P256Key) throws {
    self.key = key
    publicKey = ES256PublicKey(key)
  }

  /// The key as PKCS#8 in PEM, not encrypted, as Apple's download.
  ///
  /// - Throws: `TLSError` if OpenSSL has no memory.
  public var pem: String {
    get throws {
      try MemoryBIO.writtenText { bio in
        guard PEM_write_bio_PKCS8PrivateKey(bio, key.pointer, nil, nil, 0, nil, nil) == 1 else {
          throw TLSError("cannot write a private key")
        }
      }
    }
  }

  /// The ES256 signature of `message`: r and s, 32 bytes each (RFC 7518 section 3.4). Takes about 30 µs.
  ///
  /// - Throws: `TLSError` if OpenSSL has no randomness.
  public func sign(_ message: [UInt8]) throws -> [UInt8] {
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
