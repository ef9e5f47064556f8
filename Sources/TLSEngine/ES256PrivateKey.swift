internal import COpenSSL

/// A P-256 private key: a provider key as issued by Apple (`AuthKey_….p8`), or the key of a generated certificate.
///
/// Thread-safe.
public final class ES256PrivateKey: Sendable {
  let key: P256Key
  /// The public key.
  public let publicKey: ES256PublicKey

  /// Generates a new key.
  ///
  /// - Throws: `TLSError` if OpenSSL cannot generate random numbers.
  public convenience init() throws {
    try self.init(key: P256Key())
  }

  /// Reads an unencrypted private key in PEM: PKCS#8 as downloaded from Apple (`BEGIN PRIVATE KEY`), or the older
  /// form written by openssl (`BEGIN EC PRIVATE KEY`).
  ///
  /// - Throws: `TLSError` that describes what the text contains instead.
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

  /// The key as unencrypted PKCS#8 in PEM, the form of Apple's downloads.
  ///
  /// - Throws: `TLSError` if OpenSSL cannot allocate memory.
  public var pem: String {
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
