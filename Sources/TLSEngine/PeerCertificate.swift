internal import COpenSSL

/// What a provider's certificate says about pushes (APNS.md section 4.1), read from what the peer sent in the handshake.
public struct PeerCertificate: Sendable, Equatable {
  /// The subject's `UID`: the topic of a push that names none.
  public let subjectUID: String?
  /// The subject's common name, such as `Apple Push Services: com.example.app`.
  public let commonName: String?
  /// The topics it is for, each once: those of extension 1.2.840.113635.100.6.3.6 in their order (without that list,
  /// `subjectUID`), then the bundle id of extension …6.3.3 and the VoIP topics of …6.3.4. Empty if it has none of these
  /// extensions. A malformed extension counts as absent.
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
    topics = Self.topics(of: certificate, subjectUID: subjectUID)
    development = certificate.extensionValue(PushExtensions.development) != nil
    production = certificate.extensionValue(PushExtensions.production) != nil
    fingerprint = certificate.fingerprint
    notAfter = certificate.notAfter
  }

  private static func topics(of certificate: X509Certificate, subjectUID: String?) -> [String] {
    var topics = certificate.extensionValue(PushExtensions.topics).flatMap(PushExtensions.decodeTopics) ?? []
    let others = [PushExtensions.bundleID, PushExtensions.voipTopics].flatMap {
      certificate.extensionValue($0).map(PushExtensions.decodeTopicOrTopics) ?? []
    }
    if others.isEmpty { return topics }
    if topics.isEmpty, let subjectUID { topics = [subjectUID] }
    for topic in others where !topics.contains(topic) { topics.append(topic) }
    return topics
  }
}
