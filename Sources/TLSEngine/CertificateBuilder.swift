internal import CAPNSMockOpenSSL

/// An unsigned X.509 version 3 certificate with a random serial number.
final class CertificateBuilder {
  private let pointer: OpaquePointer

  /// Creates a certificate to be signed.
  ///
  /// - Parameters:
  ///   - key: The subject's public key.
  ///   - subject: The attributes of the subject's name, most general first. Texts are truncated to the attribute's
  ///     limit.
  ///   - valid: The validity period, in milliseconds since 1970.
  /// - Throws: `TLSError` if OpenSSL fails.
  init(key: ES256PublicKey, subject: [(attribute: Int32, text: String)], valid: ClosedRange<Int64>) throws {
    guard let pointer = X509_new() else { throw TLSError("no memory for a certificate") }
    self.pointer = pointer
    try Self.setSerialNumber(of: pointer)
    guard X509_set_version(pointer, Int(X509_VERSION_3)) == 1,
      X509_set_pubkey(pointer, key.key.pointer) == 1,
      Self.setTime(X509_getm_notBefore(pointer), valid.lowerBound),
      Self.setTime(X509_getm_notAfter(pointer), valid.upperBound)
    else { throw TLSError("cannot create a certificate") }
    let name = X509_get_subject_name(pointer)
    for (attribute, text) in subject {
      let bytes = Array(Self.fitting(text, attribute).utf8)
      guard X509_NAME_add_entry_by_NID(name, attribute, MBSTRING_UTF8, bytes, Int32(bytes.count), -1, 0) == 1 else {
        throw TLSError("a certificate cannot contain the name \(text)")
      }
    }
  }

  /// Creates a copy of `certificate` with a new serial number.
  ///
  /// - Throws: `TLSError` if OpenSSL fails.
  init(copying certificate: X509Certificate) throws {
    guard let pointer = X509_dup(certificate.pointer) else { throw TLSError("no memory for a certificate") }
    self.pointer = pointer
    try Self.setSerialNumber(of: pointer)
  }

  deinit { X509_free(pointer) }

  /// Adds a standard extension, with its value in the syntax of OpenSSL's configuration (x509v3_config(5)).
  ///
  /// - Parameter issuer: The certificate of the signer; nil for a self-signed certificate.
  func add(_ nid: Int32, _ value: String, issuer: X509Certificate?) throws {
    var context = X509V3_CTX()
    X509V3_set_ctx(&context, issuer?.pointer ?? pointer, pointer, nil, nil, 0)
    guard let made = X509V3_EXT_conf_nid(nil, &context, nid, value) else {
      throw TLSError("a certificate cannot have the extension \(value)")
    }
    defer { X509_EXTENSION_free(made) }
    guard X509_add_ext(pointer, made, -1) == 1 else { throw TLSError("cannot add the extension \(value)") }
  }

  /// Adds a custom, non-critical extension with a DER value.
  func add(identifier: String, der: [UInt8]) throws {
    let object = OBJ_txt2obj(identifier, 1)
    let value = ASN1_STRING_type_new(V_ASN1_OCTET_STRING)
    defer {
      ASN1_OBJECT_free(object)
      ASN1_STRING_free(value)
    }
    guard object != nil, ASN1_STRING_set(value, der, Int32(der.count)) == 1,
      let made = X509_EXTENSION_create_by_OBJ(nil, object, 0, value)
    else { throw TLSError("cannot create the extension \(identifier)") }
    defer { X509_EXTENSION_free(made) }
    guard X509_add_ext(pointer, made, -1) == 1 else { throw TLSError("cannot add the extension \(identifier)") }
  }

  /// Replaces the critical name constraints extension.
  ///
  /// - Parameter constraints: A `NAME_CONSTRAINTS`, still owned by the caller; nil removes the extension.
  func replaceNameConstraints(_ constraints: UnsafeMutableRawPointer?) throws {
    let index = X509_get_ext_by_NID(pointer, NID_name_constraints, -1)
    if index >= 0 { X509_EXTENSION_free(X509_delete_ext(pointer, index)) }
    guard let constraints else { return }
    guard X509_add1_ext_i2d(pointer, NID_name_constraints, constraints, 1, 0) == 1 else {
      throw TLSError("cannot add name constraints")
    }
  }

  /// Signs the certificate.
  ///
  /// - Parameter issuer: The certificate of `key`; nil for a self-signed certificate.
  func signed(by key: ES256PrivateKey, issuer: X509Certificate?) throws -> X509Certificate {
    guard X509_set_issuer_name(pointer, X509_get_subject_name(issuer?.pointer ?? pointer)) == 1,
      X509_sign(pointer, key.key.pointer, EVP_sha256()) > 0, X509_up_ref(pointer) == 1
    else { throw TLSError("cannot sign a certificate") }
    return try X509Certificate(takingOver: pointer)
  }

  private static func setSerialNumber(of pointer: OpaquePointer) throws {
    var serial = [UInt8](repeating: 0, count: 16)
    // RFC 5280 section 4.1.2.2 requires a positive number of at most 20 bytes. Random, so that authorities need not
    // coordinate.
    guard RAND_bytes(&serial, Int32(serial.count)) == 1 else { throw TLSError("no randomness for a serial number") }
    serial[0] = serial[0] & 0x7F | 0x40
    let number = BN_bin2bn(serial, Int32(serial.count), nil)
    defer { BN_free(number) }
    guard BN_to_ASN1_INTEGER(number, X509_get_serialNumber(pointer)) != nil else {
      throw TLSError("cannot create a certificate")
    }
  }

  private static func setTime(_ time: UnsafeMutablePointer<ASN1_TIME>?, _ milliseconds: Int64) -> Bool {
    ASN1_TIME_set(time, time_t(milliseconds / 1000)) != nil
  }

  /// Truncates a text to the attribute's upper bound in characters (RFC 5280 appendix A.1: 64 for the common name).
  private static func fitting(_ text: String, _ attribute: Int32) -> String {
    guard let limits = ASN1_STRING_TABLE_get(attribute), limits.pointee.maxsize > 0 else { return text }
    return String(String.UnicodeScalarView(text.unicodeScalars.prefix(limits.pointee.maxsize)))
  }
}

/// The extensions of Apple's push certificates (Protocol.md, section 4.1).
enum PushExtensions {
  /// Present in certificates for the development environment.
  static let development = "1.2.840.113635.100.6.3.1"
  /// Present in certificates for the production environment.
  static let production = "1.2.840.113635.100.6.3.2"
  /// The app's bundle id.
  static let bundleID = "1.2.840.113635.100.6.3.3"
  /// The app's VoIP topics.
  static let voipTopics = "1.2.840.113635.100.6.3.4"
  /// The list of all topics.
  static let topics = "1.2.840.113635.100.6.3.6"

  /// The value of the first two extensions: NULL.
  static let null: [UInt8] = [0x05, 0x00]

  /// Encodes the list of topics in DER: each topic is followed by a sequence of labels. The label is derived from
  /// the topic's suffix.
  static func encode(topics: [String]) -> [UInt8] {
    let content = topics.flatMap { topic in
      element(DERReader.Tag.utf8String, Array(topic.utf8))
        + element(DERReader.Tag.sequence, element(DERReader.Tag.utf8String, Array(label(of: topic).utf8)))
    }
    return element(DERReader.Tag.sequence, content)
  }

  /// Decodes a list of topics, in order; nil if it is invalid.
  static func decodeTopics(_ der: [UInt8]) -> [String]? {
    var outer = DERReader(der[...])
    guard let list = outer.next(), list.tag == DERReader.Tag.sequence, outer.isAtEnd else { return nil }
    var reader = DERReader(list.content)
    var topics: [String] = []
    while !reader.isAtEnd {
      guard let element = reader.next() else { return nil }
      switch element.tag {
      case DERReader.Tag.utf8String, DERReader.Tag.ia5String, DERReader.Tag.printableString:
        guard let topic = String(validating: element.content, as: UTF8.self) else { return nil }
        topics.append(topic)
      case DERReader.Tag.sequence:
        continue  // The labels add nothing to the topic's suffix.
      default:
        return nil
      }
    }
    return topics
  }

  /// Decodes an extension that contains a string or a list of topics; empty if it contains neither.
  static func decodeTopicOrTopics(_ der: [UInt8]) -> [String] {
    var reader = DERReader(der[...])
    if let element = reader.next(), element.tag != DERReader.Tag.sequence {
      // A single string, with nothing after it.
      guard reader.isAtEnd else { return [] }
      return decodeTopics(Self.element(DERReader.Tag.sequence, der)) ?? []
    }
    return decodeTopics(der) ?? []
  }

  private static func label(of topic: String) -> String {
    if topic.hasSuffix(".voip") { return "voip" }
    if topic.hasSuffix(".complication") { return "complication" }
    return "app"
  }

  private static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    var length: [UInt8] = []
    if content.count < 0x80 {
      length = [UInt8(content.count)]
    } else {
      var rest = content.count
      while rest > 0 {
        length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
        rest >>= 8
      }
      length.insert(0x80 | UInt8(truncatingIfNeeded: length.count), at: 0)
    }
    return [tag] + length + content
  }
}
