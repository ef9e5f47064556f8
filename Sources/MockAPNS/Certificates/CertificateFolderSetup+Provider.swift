internal import TLSEngine

extension CertificateFolderSetup {
  /// Creates or repairs `client.pem`, `client-key.pem` and `client.p12`.
  mutating func client(_ authority: Authority, renew: Bool) throws {
    let files = LeafFiles(certificate: file("client.pem"), key: file("client-key.pem"))
    let bundle = file("client.p12")
    let present = try leaf(files, authority, renew: renew)
    if let reason = present.flaw {
      let issuer = try issuer(authority, for: files.certificate, reason)
      let request = CertificateAuthority.ProviderRequest(
        topics: CertificateFolder.topics, teamID: CertificateFolder.teamID)
      let issued = try making(files.certificate) { try issuer.issueProvider(request, valid: life(Self.leafLife)) }
      try saveBundle(issued, topic: CertificateFolder.topic, in: bundle)
      try save(issued.key, [issued.certificate], in: files)
      notices.append("created a provider certificate because \(reason): \(files.certificate.path)")
      return
    }
    guard let certificate = present.certificate, let key = present.key else { return }
    let isCrowded = !present.others.isEmpty
    let refusal = "holds more than the provider certificate, which some libraries refuse"
    if isCrowded, try replacing(files.certificate, as: refusal, { try $0.save([certificate], in: files.certificate) }) {
      notices.append(
        "removed the other certificates from \(files.certificate.path), as some libraries accept only one; the provider "
          + "certificate is the same")
    }
    let issued = CertificateAuthority.Issued(certificate: certificate, key: key)
    let old = bundle.exists ? try bundle.bytes() : []
    if !PKCS12.isWhole(old) {
      try saveBundle(issued, topic: CertificateFolder.topic, in: bundle)
    } else if PKCS12.containsFurtherCertificates(old, password: CertificateFolder.password) {
      let topic = CertificateFolder.topic
      guard try replacing(bundle, as: refusal, { try $0.saveBundle(issued, topic: topic, in: bundle) }) else { return }
    } else {
      return
    }
    notices.append("created \(bundle.path) from \(files.certificate.name)")
  }

  /// Writes certificate and key as PKCS #12 with the password `CertificateFolder.password`.
  func saveBundle(_ issued: CertificateAuthority.Issued, topic: String, in file: WholeFile) throws {
    let bytes = try making(file) {
      try PKCS12.encode(issued, name: "apns-mock " + topic, password: CertificateFolder.password)
    }
    try file.replace(with: bytes, isPrivate: true)
  }

  /// Validates `AuthKey_MOCKKEY001.p8`, or creates it if it does not exist.
  mutating func providerKey() throws {
    let file = file(ProviderKeysFile.ownKeyFile)
    if file.exists {
      _ = try privateKey(file, repair: "remove it to create a new one")
      return
    }
    let pem = try making(file) { try ES256PrivateKey().pem }
    try file.replace(with: Array(pem.utf8), isPrivate: true)
    notices.append(
      "created a provider key (key id \(CertificateFolder.keyID), team id \(CertificateFolder.teamID)): \(file.path)")
  }

  /// Reads `provider.yaml`, or creates it if it does not exist.
  mutating func providerKeys() throws -> [ProviderKeyEntry] {
    let file = file(ProviderKeysFile.name)
    if !file.exists {
      try file.replace(with: Array(ProviderKeysFile.initialText.utf8), isPrivate: false)
      notices.append("created the list of trusted provider keys: \(file.path)")
    }
    return try ProviderKeysFile(folder: path).entries()
  }
}
