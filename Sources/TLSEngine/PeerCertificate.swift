internal import COpenSSL

/// The properties of a provider certificate (Protocol.md, section 4.1) that a peer sent in the handshake.
public struct PeerCertificate: Sendable, Equatable {
  /// The subject's `UID`: the topic of a push without `apns-topic`.
  public let subjectUID: String?
  /// The subject's common name, such as `Apple Push Services: com.example.app`.
  public let commonName: String?
  /// The permitted topics without duplicates: those of extension 1.2.840.113635.100.6.3.6 in their order (or else
  /// `subjectUID`), then the bundle id of extension …6.3.3 and the VoIP topics of …6.3.4. Empty if it has none of
  /// these extensions. A malformed extension counts as absent.
  public let topics: [String]
  /// Whether it is valid for the development environment (extension 1.2.840.113635.100.6.3.1).
  public let development: Bool
  /// Whether it is valid for the production environment (extension 1.2.840.113635.100.6.3.2).
  public let production: Bool
  /// The SHA-256 digest of the certificate in DER, as 64 lower-case hexadecimal digits.
  public let fingerprint: String
  /// The end of the validity period, in milliseconds since 1970.
  public let notAfter: Int64

  /// Parses a certificate in DER from an untrusted source.
  ///
  /// - Throws: `TLSError` if it is not a certificate.
  public init(der: [UInt8]) throws {
    self.init(try X509Certificate(der: der))
  }

  /// Reads the properties of a parsed certificate.
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
