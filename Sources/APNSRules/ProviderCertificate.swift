/// The properties of a provider's client certificate (Protocol.md, section 4.1).
public struct ProviderCertificate: Sendable, Equatable {
  /// `UID` of the subject: the bundle id, or the topic of an MDM or Wallet certificate.
  public var subjectUID: String?
  /// The topics in the extensions 1.2.840.113635.100.6.3.6, …6.3.3 and …6.3.4; empty without these extensions.
  public var topics: [String]
  /// Whether extension …6.3.1 is present: valid for the sandbox.
  public var development: Bool
  /// Whether extension …6.3.2 is present: valid for production.
  public var production: Bool
  /// `CN` of the subject.
  public var commonName: String?
  /// The SHA-256 digest of the certificate, in hexadecimal.
  public var fingerprint: String

  /// Creates a certificate's properties.
  public init(
    subjectUID: String?, topics: [String], development: Bool, production: Bool, commonName: String?, fingerprint: String
  ) {
    self.subjectUID = subjectUID
    self.topics = topics
    self.development = development
    self.production = production
    self.commonName = commonName
    self.fingerprint = fingerprint
  }

  /// The topics it may push to: its list, or else its subject's UID.
  public var permittedTopics: [String] {
    if !topics.isEmpty { return topics }
    return subjectUID.map { [$0] } ?? []
  }

  /// The topic of a push without `apns-topic`: the only permitted topic (Protocol.md, section 4.2); nil if there
  /// are several.
  public var defaultTopic: String? {
    let permitted = permittedTopics
    return permitted.count == 1 ? permitted.first : nil
  }
}
