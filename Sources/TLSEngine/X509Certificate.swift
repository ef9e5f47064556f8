internal import CAPNSMockOpenSSL
internal import APNSMockNotation

/// An X.509 certificate (RFC 5280), parsed from PEM or DER or issued by a `CertificateAuthority`.
///
/// Thread-safe.
package final class X509Certificate: Sendable {
  // Reference counted and not changed after `init`; OpenSSL guards the values it caches on first use with its own
  // lock.
  nonisolated(unsafe) let pointer: OpaquePointer

  /// The beginning of the validity period, in milliseconds since 1970.
  package let notBefore: Int64
  /// The end of the validity period, in milliseconds since 1970.
  package let notAfter: Int64

  /// Takes ownership of `pointer`, which is freed even if this throws.
  ///
  /// - Throws: `TLSError` if the dates cannot be read.
  init(takingOver pointer: OpaquePointer) throws {
    guard let notBefore = Self.milliseconds(X509_get0_notBefore(pointer)),
      let notAfter = Self.milliseconds(X509_get0_notAfter(pointer))
    else {
      X509_free(pointer)
      throw TLSError("the certificate's dates cannot be read")
    }
    self.pointer = pointer
    self.notBefore = notBefore
    self.notAfter = notAfter
  }

  deinit { X509_free(pointer) }

  /// Parses a certificate in DER, with nothing after it.
  ///
  /// - Throws: `TLSError` if the bytes are anything else.
  package convenience init(der: [UInt8]) throws {
    let pointer = der.withUnsafeBufferPointer { buffer -> OpaquePointer? in
      var position = buffer.baseAddress
      guard let pointer = d2i_X509(nil, &position, buffer.count) else { return nil }
      guard position == buffer.baseAddress.map({ $0 + buffer.count }) else {
        X509_free(pointer)
        return nil
      }
      return pointer
    }
    guard let pointer else { throw TLSError("this is not a certificate in DER") }
    try self.init(takingOver: pointer)
  }

  /// Parses the certificates of a PEM text in their order; the result is not empty.
  ///
  /// - Throws: `TLSError` that describes what the text contains instead.
  package static func chain(pem: String) throws -> [X509Certificate] {
    guard pem.contains("-----BEGIN CERTIFICATE-----") else {
      throw TLSError(PEMText.kindProblem(of: pem, expected: "a certificate in PEM (BEGIN CERTIFICATE)"))
    }
    return try MemoryBIO.reading(pem) { bio in
      var chain: [X509Certificate] = []
      while let pointer = PEM_read_bio_X509(bio, nil, MemoryBIO.noPassphrase, nil) {
        chain.append(try X509Certificate(takingOver: pointer))
      }
      // The end of the text shows as "no start line"; any other reason is a damaged certificate.
      let atEnd = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE
      guard atEnd, !chain.isEmpty else {
        throw TLSError(PEMText.formProblem(of: pem, "certificate \(chain.count + 1) of the text"))
      }
      ERR_clear_error()
      return chain
    }
  }

  /// The certificate in PEM.
  ///
  /// - Throws: `TLSError` if OpenSSL cannot allocate memory.
  package var pem: String {
    get throws {
      try MemoryBIO.writtenText { bio in
        guard PEM_write_bio_X509(bio, pointer) == 1 else { throw TLSError("cannot write a certificate") }
      }
    }
  }

  /// The SHA-256 digest of the certificate in DER, as 64 lower-case hexadecimal digits.
  package var fingerprint: String {
    var digest = [UInt8](repeating: 0, count: SHA256.count)
    // Fails only without memory; the fingerprint is then all zeros.
    X509_digest(pointer, EVP_sha256(), &digest, nil)
    return Hexadecimal.text(digest)
  }

  /// Whether `key` is the private half of the certificate's key.
  package func matches(_ key: ES256PrivateKey) -> Bool {
    defer { ERR_clear_error() }
    return X509_check_private_key(pointer, key.key.pointer) == 1
  }

  /// Whether `authority` is the issuer and made the signature. Dates and constraints are not checked.
  package func isIssued(by authority: X509Certificate) -> Bool {
    defer { ERR_clear_error() }
    return X509_check_issued(authority.pointer, pointer) == X509_V_OK
      && X509_verify(pointer, X509_get0_pubkey(authority.pointer)) == 1
  }

  /// Whether it is a CA certificate.
  package var isAuthority: Bool {
    defer { ERR_clear_error() }
    return X509_check_ca(pointer) == 1
  }

  /// Whether this authority's name constraints permit a certificate for `name`.
  ///
  /// - Throws: `TLSError` if a certificate cannot contain `name`.
  package func permits(_ name: CertificateName) throws -> Bool {
    guard let value = X509_get_ext_d2i(pointer, NID_name_constraints, nil, nil) else { return true }
    let constraints = value.assumingMemoryBound(to: NAME_CONSTRAINTS.self)
    defer {
      NAME_CONSTRAINTS_free(constraints)
      ERR_clear_error()
    }
    // OpenSSL checks only whole certificates, so this uses a temporary self-signed one with this name.
    let key = try ES256PrivateKey()
    let builder = try CertificateBuilder(key: key.publicKey, subject: [], valid: 0...0)
    try builder.add(NID_subject_alt_name, name.extensionText, issuer: nil)
    let probe = try builder.signed(by: key, issuer: nil)
    // Makes OpenSSL parse the certificate's extensions: the check uses only cached values.
    X509_check_purpose(probe.pointer, -1, 0)
    return NAME_CONSTRAINTS_check(probe.pointer, constraints) == X509_V_OK
  }

  private static func milliseconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
    guard let time, let epoch = ASN1_TIME_set(nil, 0) else { return nil }
    defer { ASN1_STRING_free(epoch) }
    var days: Int32 = 0
    var seconds: Int32 = 0
    guard ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else { return nil }
    return (Int64(days) * 86_400 + Int64(seconds)) * 1000
  }
}

/// Reads a sequence of DER elements, as far as Apple's certificate extensions need it: tags of one byte, definite
/// lengths. The input may come from a hostile peer.
struct DERReader {
  /// Tags of one byte (X.690 section 8.1.2).
  enum Tag {
    static let utf8String: UInt8 = 0x0C
    static let printableString: UInt8 = 0x13
    static let ia5String: UInt8 = 0x16
    static let sequence: UInt8 = 0x30
  }

  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) {
    rest = bytes
  }

  /// Whether all bytes were read.
  var isAtEnd: Bool { rest.isEmpty }

  /// Reads the next element; nil if it is invalid or extends beyond the end.
  mutating func next() -> (tag: UInt8, content: ArraySlice<UInt8>)? {
    guard let tag = rest.popFirst(), tag & 0x1F != 0x1F, let count = length(), count <= rest.count else { return nil }
    let content = rest.prefix(count)
    rest = rest.dropFirst(count)
    return (tag, content)
  }

  private mutating func length() -> Int? {
    guard let first = rest.popFirst() else { return nil }
    guard first >= 0x80 else { return Int(first) }
    // Three bytes of length suffice for any certificate; 0x80, the indefinite length, is not DER.
    let size = Int(first & 0x7F)
    guard (1...3).contains(size), size <= rest.count else { return nil }
    var length = 0
    for _ in 0..<size { length = length << 8 | Int(rest.popFirst() ?? 0) }
    return length
  }
}
