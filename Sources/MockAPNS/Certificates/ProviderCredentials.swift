public import APNSRules
public import TLSEngine

extension ProviderCertificate {
  /// Creates the certificate facts that the APNs rules need, from a verified client certificate.
  init(_ certificate: PeerCertificate) {
    self.init(
      subjectUID: certificate.subjectUID, topics: certificate.topics, development: certificate.development,
      production: certificate.production, commonName: certificate.commonName, fingerprint: certificate.fingerprint)
  }

  /// Returns whether APNs of this environment accepts a connection with the certificate. One without any push
  /// extension is accepted, but its pushes are rejected with 403 `BadCertificate` (Protocol.md, section 4.2).
  func isUsable(in environment: PushEnvironment) -> Bool {
    guard development || production else { return true }
    return environment == .sandbox ? development : production
  }
}

extension TrustedKey {
  /// Creates a key that verifies signatures with `publicKey`.
  public init(
    keyID: String, teamID: String, publicKey: ES256PublicKey, environment: PushEnvironment? = nil,
    topics: [String]? = nil, relatedKeyID: String? = nil
  ) {
    self.init(
      keyID: keyID, teamID: teamID, environment: environment, topics: topics, relatedKeyID: relatedKeyID
    ) { algorithm, message, signature in
      publicKey.isValid(signature: signature, for: message, hash: algorithm == .es512 ? .sha512 : .sha256)
    }
  }
}

extension TrustedKey {
  /// Creates the key of an entry of `provider.yaml`.
  init(_ entry: ProviderKeyEntry) {
    self.init(
      keyID: entry.keyID, teamID: entry.teamID, publicKey: entry.publicKey, environment: entry.environment,
      topics: entry.topics, relatedKeyID: entry.relatedKeyID)
  }
}

extension KeyRing {
  /// Returns the key ring with `key` added, replacing a key with the same id.
  public func adding(_ key: TrustedKey) -> KeyRing {
    KeyRing(version: version + 1, keys: keys.values.filter { $0.keyID != key.keyID } + [key])
  }

  /// Returns the key ring without the key that has this id.
  public func removing(_ keyID: String) -> KeyRing {
    KeyRing(version: version + 1, keys: keys.values.filter { $0.keyID != keyID })
  }
}
