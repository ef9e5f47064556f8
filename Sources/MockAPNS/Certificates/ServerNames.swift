package import APNSMockRules
package import APNSMockTLSEngine

/// The names for the server certificate and the name constraints of the certificate authority.
struct ServerNames {
  /// The domains that a new CA's name constraints permit, in addition to the host name and the extra names. IP
  /// addresses are not constrained.
  static let domains = ["localhost", "push.apple.com", "apns-mock", "internal", "test", "local"]

  /// The names that every server certificate contains, among them Apple's hosts (Protocol.md, section 1.1).
  static let usual = [
    "localhost", "127.0.0.1", "::1", "apns-mock", "host.docker.internal",
    "api.push.apple.com", "api.sandbox.push.apple.com", "api.development.push.apple.com",
    "api-broadcast.push.apple.com", "api-broadcast.sandbox.push.apple.com",
    "api-manage-broadcast.push.apple.com", "api-manage-broadcast.sandbox.push.apple.com",
  ]

  /// The names given with `--san`.
  let extra: [CertificateName]
  /// The machine's host name; nil if it is not valid in a certificate.
  let host: CertificateName?

  /// - Throws: `CertificateFolderError` if one of `extra` is neither a host name nor an IP address.
  init(extra: [String], host: String?) throws {
    self.extra = try extra.map { text in
      guard let name = CertificateName(text) else {
        throw CertificateFolderError(
          location: "--san", problem: "'\(text)' is neither a host name nor an IP address",
          repair: "write it without scheme, port and path, such as apns.example.test or 192.168.1.20")
      }
      return name
    }
    self.host = host.flatMap { CertificateName($0) }
  }

  /// The usual and the extra names without duplicates; without the host name.
  var demanded: [CertificateName] {
    var seen: Set<CertificateName> = []
    return (Self.usual.compactMap { CertificateName($0) } + extra).filter { seen.insert($0).inserted }
  }

  /// The names that a new CA's name constraints permit.
  var permitted: NameConstraints {
    var permitted = NameConstraints()
    for name in Self.domains.compactMap({ CertificateName($0) }) { permitted.add(name) }
    if let host { permitted.add(host) }
    for name in extra { permitted.add(name) }
    return permitted
  }
}

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
  package init(
    keyID: String, teamID: String, publicKey: ES256PublicKey, environment: PushEnvironment? = nil,
    topics: [String]? = nil, teamTopics: [String]? = nil, relatedKeyID: String? = nil
  ) {
    self.init(
      keyID: keyID, teamID: teamID, environment: environment, topics: topics, teamTopics: teamTopics,
      relatedKeyID: relatedKeyID
    ) { algorithm, message, signature in
      publicKey.isValid(signature: signature, for: message, hash: algorithm == .es512 ? .sha512 : .sha256)
    }
    publicKeyPEM = try? publicKey.pem
  }
}

extension TrustedKey {
  /// Creates the key of an entry of `provider.yaml`.
  init(_ entry: ProviderKeyEntry) {
    self.init(
      keyID: entry.keyID, teamID: entry.teamID, publicKey: entry.publicKey, environment: entry.environment,
      topics: entry.topics, teamTopics: entry.teamTopics, relatedKeyID: entry.relatedKeyID)
  }
}

extension TrustedKeySet {
  /// Returns the key ring with `key` added, replacing a key with the same id.
  package func adding(_ key: TrustedKey) -> TrustedKeySet {
    TrustedKeySet(version: version + 1, keys: keys.values.filter { $0.keyID != key.keyID } + [key])
  }

  /// Returns the key ring without the key that has this id.
  package func removing(_ keyID: String) -> TrustedKeySet {
    TrustedKeySet(version: version + 1, keys: keys.values.filter { $0.keyID != keyID })
  }
}
