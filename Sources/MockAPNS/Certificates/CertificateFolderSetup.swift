internal import APNSMockTLSEngine

/// Creates, validates and renews the files of a certificate folder.
struct CertificateFolderSetup {
  /// The absolute path of the folder.
  let path: String
  /// The current time, in milliseconds since 1970.
  let now: Int64
  /// The names for the server certificate.
  let names: ServerNames
  /// Messages for the log: files created or renewed, and problems.
  var notices: [String] = []

  /// The certificate authority. Its key is nil if the folder does not contain it: a team may keep it elsewhere.
  struct Authority {
    let certificate: X509Certificate
    let key: ES256PrivateKey?
  }

  /// The two files of a server's or provider's certificate.
  struct LeafFiles {
    let certificate: WholeFile
    let key: WholeFile
  }

  /// The content of a server's or provider's certificate files.
  struct Leaf {
    var certificate: X509Certificate?
    /// The certificates after the first in its file.
    var others: [X509Certificate] = []
    var key: ES256PrivateKey?
    /// The reason for which certificate and key are to be replaced; nil if there is none.
    var flaw: String?
    /// Whether certificate and key are valid, in spite of a flaw.
    var isValid = false
  }

  static let hour: Int64 = 3_600_000
  static let day = 24 * hour
  /// The remaining validity below which a certificate is renewed.
  static let renewal = 30 * day
  /// The validity of server and provider certificates. Clients accept at most 398 days.
  static let leafLife = 397 * day

  init(path: String, now: Int64, names: ServerNames) {
    self.path = path
    self.now = now
    self.names = names
  }

  func file(_ name: String) -> WholeFile { WholeFile(path: "\(path)/\(name)") }

  /// Returns a validity period that began an hour ago, for clients in containers and simulators whose clocks are
  /// behind.
  func life(_ length: Int64) -> ClosedRange<Int64> {
    (now - Self.hour)...(now - Self.hour + length)
  }

  /// The command that replaces the CA, with the current extra names.
  var newAuthorityCommand: String {
    let names = names.extra.map { " --san \($0)" }.joined()
    return "apns-mock certs --new-ca --certs '\(path)'\(names)"
  }

  // MARK: - Reading

  /// Returns the certificates of a PEM file in order; at least one.
  func certificates(_ file: WholeFile, repair: String) throws -> [X509Certificate] {
    let text = try file.text()
    do {
      return try X509Certificate.chain(pem: text)
    } catch {
      throw CertificateFolderError(location: file.path, problem: "no certificate: \(error)", repair: repair)
    }
  }

  /// Returns the private key in a file. Adds a notice if other users can read it.
  mutating func privateKey(_ file: WholeFile, repair: String) throws -> ES256PrivateKey {
    let text = try file.text()
    if file.isOpenToOthers { notices.append("\(file.path) can be read by other users: chmod 600 '\(file.path)'") }
    do {
      return try ES256PrivateKey(pem: text)
    } catch {
      throw CertificateFolderError(location: file.path, problem: "no usable private key: \(error)", repair: repair)
    }
  }

  /// Loads a certificate and its key and checks whether they must be replaced.
  mutating func leaf(_ files: LeafFiles, _ authority: Authority, renew: Bool) throws -> Leaf {
    if renew { return Leaf(flaw: "there is a new authority") }
    for file in [files.certificate, files.key] where !file.exists { return Leaf(flaw: "there was no \(file.name)") }
    let repair = "remove \(files.certificate.path) and \(files.key.name) to create new ones"
    let chain = try certificates(files.certificate, repair: repair)
    let certificate = chain[0]
    let key = try privateKey(files.key, repair: repair)
    guard certificate.matches(key) else {
      throw CertificateFolderError(
        location: files.key.path, problem: "the key does not belong to \(files.certificate.name)", repair: repair)
    }
    var leaf = Leaf(certificate: certificate, others: Array(chain.dropFirst()), key: key)
    if !certificate.isIssued(by: authority.certificate) {
      guard certificate.issuerOrganization == CertificateAuthority.organization else {
        throw CertificateFolderError(
          location: files.certificate.path, problem: "was not issued by ca.pem but by \(certificate.issuer)",
          repair: repair)
      }
      leaf.flaw = "the old one is another authority's"
    } else if certificate.notAfter - now < Self.renewal {
      leaf.isValid = certificate.notAfter >= now
      leaf.flaw = leaf.isValid ? "the old one was near its end" : "the old one had expired"
    } else if certificate.notBefore > now {
      leaf.flaw = "the old one is not valid yet"
    } else {
      leaf.isValid = true
    }
    return leaf
  }

  // MARK: - Writing

  /// Returns the CA as an issuer.
  ///
  /// - Throws: `CertificateFolderError` if its key is missing.
  func issuer(_ authority: Authority, for file: WholeFile, _ reason: String) throws -> CertificateAuthority {
    guard let key = authority.key else {
      throw CertificateFolderError(
        location: file.path, problem: "cannot be created (\(reason)) without \(path)/ca-key.pem",
        repair: "restore that file, or create a new CA: \(newAuthorityCommand)")
    }
    return try making(file) { try CertificateAuthority(certificate: authority.certificate, key: key) }
  }

  /// Writes a private key, then the certificate chain.
  func save(_ key: ES256PrivateKey, _ chain: [X509Certificate], in files: LeafFiles) throws {
    let text = try making(files.key) { try key.pem }
    try files.key.replace(with: Array(text.utf8), isPrivate: true)
    try save(chain, in: files.certificate)
  }

  /// Writes certificates in PEM.
  func save(_ chain: [X509Certificate], in file: WholeFile) throws {
    let text = try making(file) { try chain.map { try $0.pem }.joined() }
    try file.replace(with: Array(text.utf8), isPrivate: false)
  }

  /// Runs `work`, which replaces a usable but outdated file. If that fails, as in a read-only folder, keeps the file
  /// and adds a notice.
  ///
  /// - Returns: Whether the file was replaced.
  mutating func replacing(
    _ file: WholeFile, as reason: String, _ work: (CertificateFolderSetup) throws -> Void
  ) throws -> Bool {
    do {
      try work(self)
      return true
    } catch let error as FileError {
      notices.append("\(file.path) \(reason), but cannot be replaced: \(error.path) \(error.problem); \(error.repair)")
      return false
    }
  }

  /// Runs `work`, which replaces a certificate. If that fails, as in a read-only folder or without the CA's key, keeps one that is
  /// valid and adds a notice.
  ///
  /// - Returns: Whether the certificate was replaced.
  mutating func renewing(
    _ file: WholeFile, isValid: Bool, because reason: String, _ work: (CertificateFolderSetup) throws -> Void
  ) throws -> Bool {
    do {
      try work(self)
      return true
    } catch let error where isValid {
      notices.append("\(file.path) is to be replaced (\(reason)) and cannot be, so it is used as it is: \(error)")
      return false
    }
  }

  /// Runs `make` and reports an OpenSSL error as an error of the file.
  func making<Result>(_ file: WholeFile, _ make: () throws -> Result) throws -> Result {
    do {
      return try make()
    } catch let error as TLSError {
      throw CertificateFolderError(
        location: file.path, problem: "cannot be created: \(error)", repair: "check the installation of OpenSSL 3")
    }
  }
}

extension CertificateFolderSetup {
  /// Validates `server.pem` and `server-key.pem`, or creates them.
  mutating func server(_ authority: Authority, renew: Bool) throws {
    let files = LeafFiles(certificate: file("server.pem"), key: file("server-key.pem"))
    let present = try leaf(files, authority, renew: renew)
    let borne = Set(present.certificate?.names ?? [])
    var wanted = names.demanded
    if let host = names.host, !wanted.contains(host) {
      // Host names change unexpectedly, so the host name is included only if the CA's name constraints allow it.
      if try borne.contains(host) || permits(host, authority) {
        wanted.append(host)
      } else {
        notices.append(
          "the server certificate does not contain this machine's name, \(host), which \(path)/ca.pem does not allow; "
            + "if a client needs it: \(newAuthorityCommand)")
      }
    }
    let missing = wanted.filter { !borne.contains($0) }
    let lacks = missing.isEmpty ? nil : "the old one lacked " + missing.map(\.description).joined(separator: ", ")
    guard let reason = present.flaw ?? lacks else {
      return try repairChain(present, authority, in: files.certificate)
    }
    for name in missing where try !permits(name, authority) {
      throw CertificateFolderError(
        location: names.extra.contains(name) ? "--san" : files.certificate.path,
        problem: "the name \(name) is not allowed by \(path)/ca.pem",
        repair: "create a new CA: \(newAuthorityCommand)")
    }
    let isEnough = present.isValid && !missing.contains { names.extra.contains($0) }
    let isCreated = try renewing(files.certificate, isValid: isEnough, because: reason) { setup in
      let issuer = try setup.issuer(authority, for: files.certificate, reason)
      let issued = try setup.making(files.certificate) {
        try issuer.issueServer(names: wanted, valid: setup.life(Self.leafLife))
      }
      try setup.save(issued.key, [issued.certificate, authority.certificate], in: files)
    }
    if isCreated { notices.append("created a server certificate because \(reason): \(files.certificate.path)") }
  }

  /// Replaces the old CA certificate in the server's chain by the re-issued one.
  private mutating func repairChain(_ present: Leaf, _ authority: Authority, in file: WholeFile) throws {
    guard let certificate = present.certificate, present.others.contains(where: \.constrainsAddresses),
      !authority.certificate.constrainsAddresses
    else { return }
    try save([certificate, authority.certificate], in: file)
    notices.append("replaced the certificate authority in \(file.path); the server certificate is the same")
  }

  private func permits(_ name: CertificateName, _ authority: Authority) throws -> Bool {
    try making(file("server.pem")) { try authority.certificate.permits(name) }
  }
}
