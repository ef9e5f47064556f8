import ArgumentParser
import MockAPNS
import APNSMockTLSEngine

/// The option for the certificate folder.
struct FolderFlags: ParsableArguments {
  @Option(
    name: .long, help: .value("folder", "The folder of certificates and keys. [APNS_MOCK_CERTS] (default: Certs)"),
    completion: .directory)
  var certs: String?

  /// Returns the folder's path: the flag's, else the port file's, else the variable's, else the default.
  func path(of portFile: PortFile? = nil) -> String {
    certs ?? portFile?.folder ?? Environment.variables.given(Setting.certs.variable)
      ?? MockServer.Configuration().certificates
  }

  /// Opens the folder, creates missing files and reports them on standard error.
  func opened(
    for portFile: PortFile? = nil, extraNames: [String] = [], newAuthority: Bool = false
  ) throws -> CertificateFolder {
    let path = path(of: portFile)
    let folder = try Self.failing {
      try CertificateFolder.open(path: path, extraNames: extraNames, newAuthority: newAuthority)
    }
    for notice in folder.notices { StandardStream.error.line(notice) }
    return folder
  }

  /// Runs `work` and converts its errors to failures of status `usage`: the folder is part of the configuration.
  static func failing<Result>(_ work: () throws -> Result) throws -> Result {
    do {
      return try work()
    } catch let error as CommandFailure {
      throw error
    } catch {
      throw CommandFailure(.usage, "\(error)")
    }
  }
}

/// The files with which a client and a server trust each other: from the port file, else from the environment variables
/// set by `exec`, else from the certificate folder.
struct ServerFiles: Sendable {
  /// The path of the CA in PEM.
  let ca: String
  /// The path of the provider key in PEM (PKCS#8), its key id and team id.
  let key: String
  let keyID: String
  let teamID: String

  /// The paths of the CAs that the server's chain may end with: `ca`, and the next one of its folder.
  var authorities: [String] {
    let next = (ca.lastIndex(of: "/").map { String(ca[...$0]) } ?? "") + "ca-next.pem"
    return ca.hasSuffix("ca.pem") && (try? Files.contents(of: next)) != nil ? [ca, next] : [ca]
  }

  /// Locates the files.
  ///
  /// - Parameter certs: The folder specified by a flag, which overrides all other sources.
  init(certs: String?, portFile: PortFile?, environment: [String: String]) {
    let folder = certs ?? environment.given(Setting.certs.variable) ?? MockServer.Configuration().certificates
    let folderKey = folder + "/AuthKey_\(CertificateFolder.keyID).p8"
    if certs == nil, let portFile {
      (ca, key, keyID, teamID) = (portFile.ca, portFile.key, portFile.keyID, portFile.teamID)
    } else if certs == nil {
      ca = environment.given(EnvironmentVariables.ca) ?? folder + "/ca.pem"
      key = environment.given(EnvironmentVariables.key) ?? folderKey
      keyID = environment.given(EnvironmentVariables.keyID) ?? CertificateFolder.keyID
      teamID = environment.given(EnvironmentVariables.teamID) ?? CertificateFolder.teamID
    } else {
      (ca, key, keyID, teamID) = (folder + "/ca.pem", folderKey, CertificateFolder.keyID, CertificateFolder.teamID)
    }
  }
}

/// The PEM files of a provider certificate and its private key.
struct ProviderCertificateFiles: Sendable {
  let chain: String
  let key: String

  /// Locates the files.
  ///
  /// - Parameter key: The key's path; nil for a key in the certificate's file or its folder: `client-key.pem` for `client.pem`,
  ///   `client.TOPIC.key` for `client.TOPIC.pem`.
  /// - Throws: `CommandFailure` if there is no key.
  init(chain: String, key: String?) throws {
    self.chain = chain
    if let key {
      self.key = key
      return
    }
    let text = try Files.text(of: chain)
    if text.contains("PRIVATE KEY-----") || !text.contains("-----BEGIN ") {
      // A file without PEM is described when the certificate is read.
      self.key = chain
      return
    }
    let stem = chain.hasSuffix(".pem") ? String(chain.dropLast(4)) : chain
    guard let found = [stem + "-key.pem", stem + ".key"].first(where: { (try? Files.contents(of: $0)) != nil }) else {
      throw CommandFailure(.usage, "--cert: no key found in the folder of \(chain): specify it with --cert-key FILE")
    }
    self.key = found
  }

  /// Reads the certificate.
  ///
  /// - Throws: `CommandFailure` that names the file.
  func certificate() throws -> PeerCertificate {
    let pem = try Files.text(of: chain)
    do {
      return PeerCertificate(try X509Certificate.chain(pem: pem)[0])  // `chain` returns at least one.
    } catch {
      throw CommandFailure(.usage, "\(chain): \(error); to create a provider certificate: apns-mock certs client")
    }
  }
}

/// The options for pushing with a provider certificate.
struct ProviderCertificateFlags: ParsableArguments {
  @Option(
    name: .long, help: .value("file", "The provider certificate (PEM) to use instead of a provider token."),
    completion: .file())
  var cert: String?

  @Option(
    name: .long,
    help: .value(
      "file",
      "The certificate's private key. (default: in the same file, or in its folder with the name used by apns-mock certs)"
    ),
    completion: .file())
  var certKey: String?

  func validate() throws {
    guard cert != nil || certKey == nil else { throw ValidationError("--cert-key requires --cert") }
  }

  /// Returns the certificate's files; nil if no certificate was specified.
  ///
  /// - Throws: `CommandFailure` if the key is not found, or does not belong to the certificate.
  func files() throws -> ProviderCertificateFiles? {
    guard let cert else { return nil }
    let files = try ProviderCertificateFiles(chain: cert, key: certKey)
    _ = try files.certificate()
    do {
      _ = try TLSContext(clientTrusting: [], certificate: (files.chain, files.key))
    } catch {
      throw CommandFailure(
        .usage,
        "\(error); specify the certificate's own key with --cert-key FILE, or create both: apns-mock certs client")
    }
    return files
  }
}
