public import APNSRules
public import TLSEngine

/// One provider key that `provider.yaml` trusts, with what Apple's portal would know about it (APNS.md section 3.3).
public struct ProviderKeyEntry: Sendable {
  /// The key id, ten letters and digits; the `kid` of its provider tokens.
  public let keyID: String
  /// The team the key belongs to, ten letters and digits; the `iss` of its provider tokens.
  public let teamID: String
  /// Checks the signatures of its provider tokens.
  public let publicKey: ES256PublicKey
  /// The only environment the key is good for; nil for both.
  public let environment: PushEnvironment?
  /// The topics of a topic-specific key; nil for all.
  public let topics: [String]?
  /// The key that a topic-specific key may share a connection with.
  public let relatedKeyID: String?

  /// An entry from parts.
  package init(
    keyID: String, teamID: String, publicKey: ES256PublicKey, environment: PushEnvironment? = nil,
    topics: [String]? = nil, relatedKeyID: String? = nil
  ) {
    self.keyID = keyID
    self.teamID = teamID
    self.publicKey = publicKey
    self.environment = environment
    self.topics = topics
    self.relatedKeyID = relatedKeyID
  }

  /// Whether both trust the same key for the same things.
  func isSame(as other: ProviderKeyEntry) -> Bool {
    (keyID, teamID, environment, relatedKeyID) == (other.keyID, other.teamID, other.environment, other.relatedKeyID)
      && topics == other.topics && publicKey.isSame(as: other.publicKey)
  }
}
