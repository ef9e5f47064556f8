public import APNSRules
public import TLSEngine

extension ProviderCertificate {
  /// What the rules need to know of the certificate a client proved to have.
  init(_ certificate: PeerCertificate) {
    self.init(
      subjectUID: certificate.subjectUID, topics: certificate.topics, development: certificate.development,
      production: certificate.production, commonName: certificate.commonName, fingerprint: certificate.fingerprint)
  }

  /// Whether APNs of this environment lets a connection with it go on. One without any push extension may: it gets 403
  /// `BadCertificate` as an answer (APNS.md section 4.2).
  func isUsable(in environment: PushEnvironment) -> Bool {
    guard development || production else { return true }
    return environment == .sandbox ? development : production
  }
}

extension TrustedKey {
  /// A key that signatures are really verified with.
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
  /// A key that `provider.yaml` names.
  init(_ entry: ProviderKeyEntry) {
    self.init(
      keyID: entry.keyID, teamID: entry.teamID, publicKey: entry.publicKey, environment: entry.environment,
      topics: entry.topics, relatedKeyID: entry.relatedKeyID)
  }
}

extension KeyRing {
  /// The same keys with `key` added, or in place of the one with its id.
  public func adding(_ key: TrustedKey) -> KeyRing {
    KeyRing(version: version + 1, keys: keys.values.filter { $0.keyID != key.keyID } + [key])
  }

  /// The same keys without the one with this id.
  public func removing(_ keyID: String) -> KeyRing {
    KeyRing(version: version + 1, keys: keys.values.filter { $0.keyID != keyID })
  }
}
