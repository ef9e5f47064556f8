internal import COpenSSL

/// What a provider's certificate says about pushes (APNS.md section 4.1), read from what the peer sent in the handshake.
public struct PeerCertificate: Sendable, Equatable {
  /// The subject's `UID`: the topic of a push that names none.
  public let subjectUID: String?
  /// The subject's common name, such as `Apple Push Services: com.example.app`.
  public let commonName: String?
  /// The topics of extension 1.2.840.113635.100.6.3.6 in their order; empty without it, or if it is malformed.
  public let topics: [String]
  /// Whether it is for the development environment (extension 1.2.840.113635.100.6.3.1).
  public let development: Bool
  /// Whether it is for the production environment (extension 1.2.840.113635.100.6.3.2).
  public let production: Bool
  /// SHA-256 of the certificate in DER, as 64 lower-case hexadecimal digits.
  public let fingerprint: String
  /// The last moment it is valid, in milliseconds since 1970.
  public let notAfter: Int64

  /// Reads a certificate in DER. Any bytes may be given.
  ///
  /// - Throws: `TLSError` if it is not a certificate.
  public init(der: [UInt8]) throws {
    self.init(try X509Certificate(der: der))
  }

  /// The same of a certificate that has been read.
  public init(_ certificate: X509Certificate) {
    subjectUID = certificate.subjectText(NID_userId)
    commonName = certificate.commonName
    topics = certificate.extensionValue(PushExtensions.topics).flatMap(PushExtensions.decodeTopics) ?? []
    development = certificate.extensionValue(PushExtensions.development) != nil
    production = certificate.extensionValue(PushExtensions.production) != nil
    fingerprint = certificate.fingerprint
    notAfter = certificate.notAfter
  }
}
