internal import APNSMockTLSEngine

extension CertificateFolderSetup {
  private static let authorityLife = 3652 * day

  /// Loads `ca.pem` and `ca-key.pem`, or creates them if neither exists.
  mutating func authority(new: Bool) throws -> Authority {
    let certificateFile = file("ca.pem")
    let keyFile = file("ca-key.pem")
    if new || !certificateFile.exists && !keyFile.exists {
      let authority = try makeAuthority(
        LeafFiles(certificate: certificateFile, key: keyFile), name: "apns-mock CA", permitted: names.permitted)
      notices.append("created a CA, which clients must trust: \(certificateFile.path)")
      return authority
    }
    let repair = "restore the right file, or create a new CA: \(newAuthorityCommand)"
    guard certificateFile.exists else {
      throw CertificateFolderError(
        location: certificateFile.path, problem: "is missing, but its key \(keyFile.name) is there", repair: repair)
    }
    let certificate = try certificates(certificateFile, repair: repair)[0]
    guard certificate.isAuthority else {
      throw CertificateFolderError(
        location: certificateFile.path, problem: "is not a certificate authority's certificate", repair: repair)
    }
    guard certificate.notAfter > now else {
      throw CertificateFolderError(
        location: certificateFile.path, problem: "the certificate authority has expired",
        repair: "make a new one: \(newAuthorityCommand)")
    }
    if certificate.notAfter - now < Self.renewal {
      notices.append("\(certificateFile.path) ends within 30 days; make a new one: \(newAuthorityCommand)")
    }
    guard keyFile.exists else {
      if certificate.constrainsAddresses {
        notices.append(
          "\(certificateFile.path) \(Self.refusal); it cannot be re-issued without \(keyFile.name): "
            + "restore that file and restart, or create a new CA: \(newAuthorityCommand)")
      }
      return Authority(certificate: certificate, key: nil)
    }
    let key = try privateKey(keyFile, repair: repair)
    guard certificate.matches(key) else {
      throw CertificateFolderError(
        location: keyFile.path, problem: "the key does not belong to \(certificateFile.name)", repair: repair)
    }
    guard certificate.constrainsAddresses else { return Authority(certificate: certificate, key: key) }
    return try reissue(Authority(certificate: certificate, key: key), key, in: certificateFile)
  }

  /// The reason for which a CA certificate from an earlier version must be replaced.
  private static let refusal =
    "has IP addresses among its name constraints, so clients built on BoringSSL (NIOSSL, curl_cffi, Chrome) refuse it"

  /// Re-issues a CA certificate whose name constraints contain IP addresses. If that is impossible, keeps the old
  /// one and adds a notice: clients on other TLS libraries accept it.
  private mutating func reissue(
    _ authority: Authority, _ key: ES256PrivateKey, in file: WholeFile
  ) throws -> Authority {
    guard authority.certificate.isIssued(by: authority.certificate) else {
      notices.append(
        "\(file.path) \(Self.refusal); it is not self-signed and cannot be re-issued here: "
          + "make a new authority: \(newAuthorityCommand)")
      return authority
    }
    let renewed = try making(file) {
      try CertificateAuthority(certificate: authority.certificate, key: key).withoutAddressConstraints().certificate
    }
    guard try replacing(file, as: Self.refusal, { try $0.save([renewed], in: file) }) else { return authority }
    notices.append(
      "re-issued the certificate authority with the same key and subject, as the old one had IP addresses among its name "
        + "constraints, which BoringSSL refuses; trust the new file in clients built on BoringSSL (NIOSSL, curl_cffi, "
        + "Chrome), the others may keep the old one: \(file.path)")
    return Authority(certificate: renewed, key: key)
  }

  private func makeAuthority(_ files: LeafFiles, name: String, permitted: NameConstraints) throws -> Authority {
    let host = names.host.map { " of \($0)" } ?? ""
    let authority = try making(files.certificate) {
      try CertificateAuthority(
        commonName: name + host, permitted: permitted, valid: life(Self.authorityLife))
    }
    let key = try making(files.key) { try authority.key.pem }
    try files.key.replace(with: Array(key.utf8), isPrivate: true)
    try files.certificate.replace(with: Array(try pem(of: authority.certificate).utf8), isPrivate: false)
    return Authority(certificate: authority.certificate, key: authority.key)
  }

  /// Returns the certificate of the CA that `certs rotate` switches to; creates its files if neither exists.
  ///
  /// - Returns: The certificate; nil if the files cannot be created, as in a read-only folder, or not be used. Servers run
  ///   without them.
  mutating func nextAuthority(new: Bool) -> X509Certificate? {
    let files = LeafFiles(certificate: file("ca-next.pem"), key: file("ca-next-key.pem"))
    if new || !files.certificate.exists && !files.key.exists {
      // The server's certificate may have names of former machines and flags.
      let present = (try? certificates(file("server.pem"), repair: ""))?.first?.names ?? []
      var permitted = names.permitted
      for name in present where !names.demanded.contains(name) { permitted.add(name) }
      guard let made = try? makeAuthority(files, name: "apns-mock next CA", permitted: permitted) else { return nil }
      notices.append("created the next CA, to which apns-mock certs rotate switches: \(files.certificate.path)")
      return made.certificate
    }
    return try? certificates(files.certificate, repair: "").first
  }

  /// Issues a server certificate of the next CA, with the names of the present one.
  ///
  /// - Throws: `CertificateFolderError` if there is no next CA, or if it does not permit these names.
  mutating func nextServer() throws -> ServerIdentity {
    let files = LeafFiles(certificate: file("ca-next.pem"), key: file("ca-next-key.pem"))
    let repair = "remove \(files.certificate.name) and \(files.key.name), and create new ones with apns-mock certs"
    for file in [files.certificate, files.key] where !file.exists {
      throw CertificateFolderError(
        location: file.path, problem: "is missing, so there is no next CA", repair: "create it with apns-mock certs")
    }
    let certificate = try certificates(files.certificate, repair: repair)[0]
    let key = try privateKey(files.key, repair: repair)
    let present = try certificates(file("server.pem"), repair: "restart the server")[0]
    for name in present.names where try !certificate.permits(name) {
      throw CertificateFolderError(
        location: files.certificate.path, problem: "does not allow the name \(name) of the server's certificate",
        repair: repair)
    }
    guard certificate.notAfter > now else {
      throw CertificateFolderError(location: files.certificate.path, problem: "has expired", repair: repair)
    }
    return try making(files.certificate) {
      let authority = try CertificateAuthority(certificate: certificate, key: key)
      let issued = try authority.issueServer(names: present.names, valid: life(Self.leafLife))
      return ServerIdentity(chain: [issued.certificate, certificate], key: issued.key)
    }
  }

  /// Returns the CA certificate in PEM.
  func pem(of authority: X509Certificate) throws -> String {
    try making(file("ca.pem")) { try authority.pem }
  }
}

extension CertificateFolderSetup {
  /// Creates or repairs `client.pem`, `client-key.pem` and `client.p12`.
  mutating func client(_ authority: Authority, renew: Bool) throws {
    let files = LeafFiles(certificate: file("client.pem"), key: file("client-key.pem"))
    let bundle = file("client.p12")
    let present = try leaf(files, authority, renew: renew)
    if let reason = present.flaw {
      let isCreated = try renewing(files.certificate, isValid: present.isValid, because: reason) { setup in
        let issuer = try setup.issuer(authority, for: files.certificate, reason)
        let request = CertificateAuthority.ProviderRequest(
          topics: CertificateFolder.topics, teamID: CertificateFolder.teamID)
        let issued = try setup.making(files.certificate) {
          try issuer.issueProvider(request, valid: setup.life(Self.leafLife))
        }
        try setup.saveBundle(issued, topic: CertificateFolder.topic, in: bundle)
        try setup.save(issued.key, [issued.certificate], in: files)
      }
      if isCreated { notices.append("created a provider certificate because \(reason): \(files.certificate.path)") }
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
