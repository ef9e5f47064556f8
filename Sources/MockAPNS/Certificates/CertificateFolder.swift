package import APNSMockRules
internal import APNSMockPlatformLibc
internal import APNSMockTLSEngine

/// A complete, consistent folder of certificates and keys (`Certs/`).
///
/// `Certs/README.md` describes the files.
package struct CertificateFolder: Sendable {
  /// The path of the folder, absolute and without symbolic links.
  package let path: String
  /// The CA certificate in PEM, which clients must trust.
  package let caPEM: String
  /// The SHA-256 fingerprint of the CA certificate, as 64 lower-case hexadecimal digits.
  package let caFingerprint: String
  /// The certificate of the CA that `certs rotate` switches to, in PEM; nil if the folder has none and cannot be written.
  package let nextCAPEM: String?
  /// The SHA-256 fingerprint of that certificate.
  package let nextCAFingerprint: String?
  /// The provider keys listed in `provider.yaml`, in its order.
  package let providerKeys: [ProviderKeyEntry]
  /// Messages for the log: files created or renewed, and problems; one line each.
  package let notices: [String]

  /// The key id of the generated provider key.
  package static let keyID = "MOCKKEY001"
  /// The team id of the generated provider key and certificates.
  package static let teamID = "MOCKTEAM01"
  /// The first topic of the generated provider certificate, its `UID`.
  package static let topic = "com.example.app"
  /// All topics of the generated provider certificate: those of an app, as in Apple's certificates (Protocol.md,
  /// section 4.1).
  package static let topics = [topic, topic + ".voip", topic + ".complication"]
  /// The password of every generated `.p12` file.
  package static let password = "mock"

  /// The path of the CA certificate, which clients must trust.
  package var caPath: String { path + "/ca.pem" }
  /// The path of the certificate of the CA that `certs rotate` switches to.
  package var nextCAPath: String { path + "/ca-next.pem" }
  /// The paths of the CA certificates that the server's chain may end with.
  package var authorityPaths: [String] { nextCAPEM == nil ? [caPath] : [caPath, nextCAPath] }
  /// The path of the server certificate, followed in the file by the CA certificate.
  package var serverPath: String { path + "/server.pem" }
  /// The path of the server's private key.
  package var serverKeyPath: String { path + "/server-key.pem" }
  /// The path of the provider key, in the format of Apple's downloads.
  package var providerKeyPath: String { path + "/AuthKey_\(Self.keyID).p8" }
  /// The path of the provider certificate.
  package var clientPath: String { path + "/client.pem" }
  /// The path of the provider certificate's private key.
  package var clientKeyPath: String { path + "/client-key.pem" }
  /// The path of the provider certificate and key as PKCS #12, with the password `password`.
  package var clientP12Path: String { path + "/client.p12" }
  /// When the certificates in the files expire that the server and the clients of this folder use, by their names: `ca`,
  /// `server`, `client`. In milliseconds since 1970.
  package var expiries: [String: Int64] {
    ["ca": caPath, "server": serverPath, "client": clientPath].compactMapValues { path in
      let pem = try? WholeFile(path: path).bytes(limit: 1 << 20)
      return pem.flatMap { try? X509Certificate.chain(pem: String(decoding: $0, as: UTF8.self)).first?.notAfter }
    }
  }

  /// The path of the list of trusted provider keys, which users edit.
  package var providerKeysPath: String { path + "/provider.yaml" }

  /// Opens a folder and creates missing files.
  ///
  /// Existing files are kept, with these exceptions: a certificate that expires within 30 days is issued again, and
  /// so is a server certificate that lacks a required name; a CA certificate with IP addresses in its name
  /// constraints is re-issued with the same key and subject; certificates other than the leaf are removed from
  /// `client.pem` and `client.p12`.
  ///
  /// - Parameters:
  ///   - path: The folder; created if it does not exist, with a `.gitignore` that excludes all of its files.
  ///   - extraNames: Host names and addresses in the server certificate in addition to the usual ones (`--san`).
  ///   - newAuthority: Whether to replace the certificate authority and all certificates. Clients that trusted the
  ///     old CA need the new one. The provider key is kept.
  /// - Throws: `CertificateFolderError`, also for a name that the existing CA's name constraints exclude.
  package static func open(
    path: String, extraNames: [String] = [], newAuthority: Bool = false
  ) throws -> CertificateFolder {
    try open(
      path: path, extraNames: extraNames, newAuthority: newAuthority, hostName: currentHostName, now: currentTime)
  }

  /// Opens a folder with the given host name and time (milliseconds since 1970).
  static func open(
    path: String, extraNames: [String], newAuthority: Bool, hostName: String?, now: Int64
  ) throws -> CertificateFolder {
    let path = try makeFolder(path)
    var setup = CertificateFolderSetup(path: path, now: now, names: try ServerNames(extra: extraNames, host: hostName))
    return try FolderLock.holding(path) {
      try CertificateFolderError.wrapping {
        let authority = try setup.authority(new: newAuthority)
        try setup.server(authority, renew: newAuthority)
        try setup.providerKey()
        try setup.client(authority, renew: newAuthority)
        let next = setup.nextAuthority(new: newAuthority)
        let keys = try setup.providerKeys()
        return CertificateFolder(
          path: path, caPEM: try setup.pem(of: authority.certificate), caFingerprint: authority.certificate.fingerprint,
          nextCAPEM: try next.map { try setup.pem(of: $0) }, nextCAFingerprint: next?.fingerprint,
          providerKeys: keys, notices: setup.notices)
      }
    }
  }

  /// Creates the folder and its parents, and returns its absolute path. A new folder gets a `.gitignore` before any key
  /// is written, so that no private key is committed by mistake.
  private static func makeFolder(_ path: String) throws -> String {
    var partial = path.hasPrefix("/") ? "" : "."
    var failure: Int32 = 0
    var isNew = false
    for part in path.split(separator: "/") where part != "." {
      partial += "/" + part
      // The first failure is the cause: later ones follow from it.
      isNew = mkdir(partial, 0o755) == 0
      if !isNew, errno != EEXIST, failure == 0 { failure = errno }
    }
    guard let resolved = realpath(path.isEmpty ? "." : path, nil) else {
      let reason = String(cString: strerror(failure == 0 ? errno : failure))
      throw CertificateFolderError(
        location: path, problem: "cannot create the folder: \(reason)", repair: "specify another one with --certs")
    }
    defer { free(resolved) }
    let folder = String(cString: resolved)
    if isNew {
      try CertificateFolderError.wrapping {
        try WholeFile(path: folder + "/.gitignore").replace(with: Array("*\n".utf8), isPrivate: false)
      }
    }
    return folder
  }

  /// The machine's host name; nil if the system provides none.
  static var currentHostName: String? {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return nil }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The machine's time, not the server clock's, in milliseconds since 1970: clients validate certificates by their
  /// own clocks.
  static var currentTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}

extension CertificateFolder {
  /// The files of one provider certificate.
  package struct ClientCertificate: Sendable, Equatable {
    /// The path of the certificate alone, in PEM.
    package let certificate: String
    /// The path of the private key, in PEM.
    package let key: String
    /// The certificate and its key as PKCS #12, with the password `CertificateFolder.password`.
    package let p12: String
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
  package func makeClientCertificate(
    topics: [String], environments: Set<PushEnvironment> = Set(PushEnvironment.allCases), expired: Bool = false
  ) throws -> ClientCertificate {
    try makeClientCertificate(topics: topics, environments: environments, expired: expired, now: Self.currentTime)
  }

  func makeClientCertificate(
    topics: [String], environments: Set<PushEnvironment>, expired: Bool, now: Int64
  ) throws -> ClientCertificate {
    guard let first = topics.first, topics.allSatisfy(Self.isTopic) else {
      throw CertificateFolderError(
        location: "--topic", problem: "a topic is 1 to 255 characters without spaces and control characters",
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

/// An error in the folder of certificates and keys. Its description is one line: place, problem and repair.
package struct CertificateFolderError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The file, with a line number where that helps (`Certs/provider.yaml:7`), or the setting.
  package let location: String
  /// The problem.
  package let problem: String
  /// The way to solve the problem.
  package let repair: String

  /// Creates an error.
  init(location: String, problem: String, repair: String) {
    self.location = location
    self.problem = problem
    self.repair = repair
  }

  /// The place, the problem and the repair on one line.
  package var description: String { "\(location): \(problem); \(repair)" }

  /// Runs `work` and converts file errors that it throws.
  static func wrapping<Result>(_ work: () throws -> Result) throws -> Result {
    do {
      return try work()
    } catch let error as FileError {
      throw CertificateFolderError(
        location: error.path, problem: error.problem, repair: error.repair + ", or name another folder with --certs")
    }
  }
}
