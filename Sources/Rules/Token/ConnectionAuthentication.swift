package import APNSMockNotation

/// The authentication state of one connection: the credential it is bound to, its provider tokens, and how often
/// they changed. Confined to the connection's event loop.
package struct ConnectionAuthentication: Sendable {
  /// The client certificate, if one was presented in the TLS handshake.
  package var certificate: ProviderCertificate? {
    didSet { defaultTopic = certificate?.defaultTopic.map { Array($0.utf8) } }
  }

  /// Whether pushes to device tokens are accepted. False on a listener for channel management, where they are 404
  /// `BadPath`.
  package var acceptsPushes = true

  /// Whether a provider token passed all credential checks on this connection. The server then raises the stream
  /// limit with its second SETTINGS frame (Protocol.md, section 9.1).
  package var providerTokenAccepted = false

  /// Whether a provider token on this connection was rejected with `ExpiredProviderToken`.
  var hasExpiredToken = false

  /// The UTF-8 of `certificate.defaultTopic`, cached because each push needs it.
  private(set) var defaultTopic: [UInt8]?
  /// The key of the first accepted provider token (Protocol.md, section 3.3).
  var binding: TrustedKey?
  /// The apps that were known when the connection was bound to its team; nil before that, and if topics need not be known.
  var boundApps: KnownApps?
  var updates = TokenUpdates()
  /// The updates of all connections of each team, for the setting `token_update_scope: team`.
  package var teamUpdates: TeamTokenUpdates?
  var known: ProviderTokenCache

  /// Rejects all pushes with 429 `TooManyProviderTokenUpdates` for the update interval that begins at `now`
  /// (milliseconds since 1970). Used by a fault.
  package mutating func blockTokenUpdates(now: ServerTime) {
    updates.block(now: now)
  }

  /// Creates the state of a new connection.
  ///
  /// - Parameter certificate: The client certificate, if one was presented.
  package init(certificate: ProviderCertificate? = nil) {
    self.init(certificate: certificate, known: ProviderTokenCache())
  }

  /// Creates the state of a new connection.
  ///
  /// - Parameters:
  ///   - certificate: The client certificate, if one was presented.
  ///   - known: Provider tokens that were accepted on other connections.
  package init(certificate: ProviderCertificate?, known: ProviderTokenCache) {
    self.certificate = certificate
    self.known = known
    defaultTopic = certificate?.defaultTopic.map { Array($0.utf8) }
  }
}

/// The apps that are known by fixtures, and by the team topics of keys.
struct KnownApps: Sendable {
  let apps: AppTable
  let keys: TrustedKeySet

  /// Returns whether an app is known.
  ///
  /// - Parameter team: The team of the credential; nil for a certificate, which does not name one.
  func contain(_ bundleID: String, of team: String?) -> Bool {
    if let app = apps[bundleID], team == nil || app.teamID == team { return true }
    return keys.knows(bundleID, asAppOf: team)
  }
}

/// The properties of a provider's client certificate (Protocol.md, section 4.1).
package struct ProviderCertificate: Sendable, Equatable {
  /// `UID` of the subject: the bundle id, or the topic of an MDM or Wallet certificate.
  package var subjectUID: String?
  /// The topics in the extensions 1.2.840.113635.100.6.3.6, …6.3.3 and …6.3.4; empty without these extensions.
  package var topics: [String]
  /// Whether extension …6.3.1 is present: valid for the sandbox.
  package var development: Bool
  /// Whether extension …6.3.2 is present: valid for production.
  package var production: Bool
  /// `CN` of the subject.
  package var commonName: String?
  /// The SHA-256 digest of the certificate, in hexadecimal.
  package var fingerprint: String

  /// Creates a certificate's properties.
  package init(
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
  package var permittedTopics: [String] {
    if !topics.isEmpty { return topics }
    return subjectUID.map { [$0] } ?? []
  }

  /// The topic of a push without `apns-topic`: the only permitted topic (Protocol.md, section 4.2); nil if there
  /// are several.
  package var defaultTopic: String? {
    let permitted = permittedTopics
    return permitted.count == 1 ? permitted.first : nil
  }
}
