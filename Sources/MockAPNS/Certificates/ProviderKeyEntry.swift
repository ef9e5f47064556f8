public import APNSRules
public import TLSEngine

/// A trusted provider key in `provider.yaml`, with its properties in Apple's portal (Protocol.md, section 3.3).
public struct ProviderKeyEntry: Sendable {
  /// The key id of ten letters and digits; the `kid` of its provider tokens.
  public let keyID: String
  /// The team id of ten letters and digits; the `iss` of its provider tokens.
  public let teamID: String
  /// The public key that verifies its provider tokens.
  public let publicKey: ES256PublicKey
  /// The only environment that the key is valid for; nil for both.
  public let environment: PushEnvironment?
  /// The topics of a topic-specific key; nil for all.
  public let topics: [String]?
  /// The id of the key that a topic-specific key may share a connection with.
  public let relatedKeyID: String?

  /// Creates an entry.
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

  /// Returns whether both entries trust the same key with the same restrictions.
  func isSame(as other: ProviderKeyEntry) -> Bool {
    (keyID, teamID, environment, relatedKeyID) == (other.keyID, other.teamID, other.environment, other.relatedKeyID)
      && topics == other.topics && publicKey.isSame(as: other.publicKey)
  }
}
