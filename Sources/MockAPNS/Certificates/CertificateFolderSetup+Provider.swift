internal import TLSEngine

extension CertificateFolderSetup {
  /// Sees to `client.pem`, `client-key.pem` and `client.p12`.
  mutating func client(_ authority: Authority, renew: Bool) throws {
    let files = LeafFiles(certificate: file("client.pem"), key: file("client-key.pem"))
    let bundle = file("client.p12")
    let present = try leaf(files, authority, renew: renew)
    if let reason = present.flaw {
      let issuer = try issuer(authority, for: files.certificate, reason)
      let request = CertificateAuthority.ProviderRequest(
        topics: [CertificateFolder.topic], teamID: CertificateFolder.teamID)
      let issued = try making(files.certificate) { try issuer.issueProvider(request, valid: life(Self.leafLife)) }
      try saveBundle(issued, authority.certificate, topic: CertificateFolder.topic, in: bundle)
      try save(issued, authority.certificate, in: files)
      notices.append("made a provider certificate, as \(reason): \(files.certificate.path)")
    } else if try !isWhole(bundle), let certificate = present.certificate, let key = present.key {
      let issued = CertificateAuthority.Issued(certificate: certificate, key: key)
      try saveBundle(issued, authority.certificate, topic: CertificateFolder.topic, in: bundle)
      notices.append("made \(bundle.path) from \(files.certificate.name)")
    }
  }

  /// Whether a bundle is there and is one, under whatever password.
  private func isWhole(_ bundle: WholeFile) throws -> Bool {
    guard bundle.exists else { return false }
    return PKCS12.isWhole(try bundle.bytes())
  }

  /// Writes certificate and key into one file under the password that everybody knows.
  func saveBundle(
    _ issued: CertificateAuthority.Issued, _ authority: X509Certificate, topic: String, in file: WholeFile
  ) throws {
    let bytes = try making(file) {
      try PKCS12.encode(
        issued, authority: authority, name: "apns-mock " + topic, password: CertificateFolder.password)
    }
    try file.replace(with: bytes, isPrivate: true)
  }

  /// Sees to `AuthKey_MOCKKEY001.p8`.
  mutating func providerKey() throws {
    let file = file(ProviderKeysFile.ownKeyFile)
    if file.exists {
      _ = try privateKey(file, repair: "remove it to have a new one made")
      return
    }
    let pem = try making(file) { try ES256PrivateKey().pem }
    try file.replace(with: Array(pem.utf8), isPrivate: true)
    notices.append(
      "made a provider key (key id \(CertificateFolder.keyID), team id \(CertificateFolder.teamID)): \(file.path)")
  }

  /// Reads `provider.yaml`, or makes it if there is none.
  mutating func providerKeys() throws -> [ProviderKeyEntry] {
    let file = file(ProviderKeysFile.name)
    if !file.exists {
      try file.replace(with: Array(ProviderKeysFile.initialText.utf8), isPrivate: false)
      notices.append("made the list of trusted provider keys: \(file.path)")
    }
    return try ProviderKeysFile(folder: path).entries()
  }
}
