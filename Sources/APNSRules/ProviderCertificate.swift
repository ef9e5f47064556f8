/// What a client certificate says about the provider that shows it (APNS.md section 4.1).
public struct ProviderCertificate: Sendable, Equatable {
  /// `UID` of the subject: the bundle id, or the topic of an MDM or Wallet certificate.
  public var subjectUID: String?
  /// The topics of extensions 1.2.840.113635.100.6.3.6, …6.3.3 and …6.3.4; empty without these extensions.
  public var topics: [String]
  /// Extension …6.3.1: good for the sandbox.
  public var development: Bool
  /// Extension …6.3.2: good for production.
  public var production: Bool
  /// `CN` of the subject.
  public var commonName: String?
  /// SHA-256 over the certificate, in hexadecimal.
  public var fingerprint: String

  /// A certificate from parts.
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

  /// The topics it may push to: its list, or its subject where it has none.
  public var permittedTopics: [String] {
    if !topics.isEmpty { return topics }
    return subjectUID.map { [$0] } ?? []
  }

  /// The topic of a push without `apns-topic`: the only one it may push to (APNS.md section 4.2); `nil` with several.
  public var defaultTopic: String? {
    let permitted = permittedTopics
    return permitted.count == 1 ? permitted.first : nil
  }
}
