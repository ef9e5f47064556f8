public import APNSRules
internal import TLSEngine

extension CertificateFolder {
  /// The files of one provider certificate.
  public struct ClientCertificate: Sendable, Equatable {
    /// The path of the certificate alone, in PEM.
    public let certificate: String
    /// The path of the private key, in PEM.
    public let key: String
    /// The certificate and its key as PKCS #12, with the password `CertificateFolder.password`.
    public let p12: String
  }

  /// Issues a provider certificate for the given topics and replaces an earlier one for the same topics.
  ///
  /// - Parameters:
  ///   - topics: The topics that the certificate may push to, at least one; the first becomes its `UID`.
  ///   - environments: The environments that the certificate is valid for (the extensions of Protocol.md, section
  ///     4.1).
  ///   - expired: Whether to issue a certificate that expired a day ago, with which the TLS handshake fails.
  /// - Returns: The absolute paths of the three files.
  /// - Throws: `CertificateFolderError`.
  public func makeClientCertificate(
    topics: [String], environments: Set<PushEnvironment> = Set(PushEnvironment.allCases), expired: Bool = false
  ) throws -> ClientCertificate {
    try makeClientCertificate(topics: topics, environments: environments, expired: expired, now: Self.currentTime)
  }

  func makeClientCertificate(
    topics: [String], environments: Set<PushEnvironment>, expired: Bool, now: Int64
  ) throws -> ClientCertificate {
    guard let first = topics.first, topics.allSatisfy(Self.isTopic) else {
      throw CertificateFolderError(
        place: "--topic", problem: "a topic is 1 to 255 characters without spaces and control characters",
        repair: "specify the bundle id of the app, such as com.example.app")
    }
    var request = CertificateAuthority.ProviderRequest(topics: topics, teamID: Self.teamID)
    request.development = environments.contains(.sandbox)
    request.production = environments.contains(.production)
    let name = Self.fileName(first, topics, environments, expired)
    var setup = CertificateFolderSetup(path: path, now: now, names: try ServerNames(extra: [], host: nil))
    let files = CertificateFolderSetup.LeafFiles(
      certificate: setup.file(name + ".pem"), key: setup.file(name + ".key"))
    let bundle = setup.file(name + ".p12")
    let life = CertificateFolderSetup.leafLife
    let valid = expired ? (now - life)...(now - CertificateFolderSetup.day) : setup.life(life)
    try FolderLock.holding(path) {
      try CertificateFolderError.wrapping {
        let authority = try setup.authority(new: false)
        let issuer = try setup.issuer(authority, for: files.certificate, "it was requested")
        let issued = try setup.making(files.certificate) { try issuer.issueProvider(request, valid: valid) }
        try setup.saveBundle(issued, topic: first, in: bundle)
        try setup.save(issued.key, [issued.certificate], in: files)
      }
    }
    return ClientCertificate(certificate: files.certificate.path, key: files.key.path, p12: bundle.path)
  }

  /// Returns whether `topic` is a valid topic: 1 to 255 bytes without spaces and control characters.
  package static func isTopic(_ topic: String) -> Bool {
    (1...255).contains(topic.utf8.count) && topic.unicodeScalars.allSatisfy { $0.value > 0x20 && $0.value != 0x7F }
  }

  /// Returns a file name that is unique for a set of topics, without extension. The dot after `client` keeps it
  /// distinct from `client-key.pem`.
  private static func fileName(
    _ first: String, _ topics: [String], _ environments: Set<PushEnvironment>, _ expired: Bool
  ) -> String {
    let plain = first.unicodeScalars.prefix(100).map { scalar -> Character in
      let allowed = scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
      return allowed || scalar == "." || scalar == "-" ? Character(scalar) : "_"
    }
    var name = "client." + String(plain)
    if topics.count > 1 || String(plain) != first {
      name += "-" + SHA256.hexDigest(Array(topics.joined(separator: "\n").utf8)).prefix(8)
    }
    if environments == [.sandbox] { name += "-development" }
    if environments == [.production] { name += "-production" }
    return expired ? name + "-expired" : name
  }
}
