import ArgumentParser
import MockAPNS
import Notation
import TLSEngine

/// The options by which client commands locate a server.
struct ServerFlags: ParsableArguments {
  @Option(name: .long, help: "The port file of the running server. [APNS_MOCK_PORT_FILE]")
  var portFile: String?

  @Option(name: .long, help: "The server's admin listener, HOST:PORT. [APNS_MOCK_ADMIN] (default: 127.0.0.1:8197)")
  var admin: String?

  @Option(
    name: .long,
    help: "The token the admin listener requires. [APNS_MOCK_ADMIN_TOKEN] (default: the one in the port file)")
  var adminToken: String?
}

/// The location of a running server: `--port-file`, else `APNS_MOCK_PORT_FILE`, else `--admin` or `APNS_MOCK_ADMIN`,
/// else the default address of `serve`.
struct RunningServer: Sendable {
  /// The server's port file, if it was located by one.
  let portFile: PortFile?
  /// The client of its admin API.
  let client: AdminClient

  /// Locates the server without connecting to it.
  ///
  /// - Throws: `CommandFailure`: `unreachable` if the port file does not exist (yet), `usage` if it is invalid.
  init(_ flags: ServerFlags, environment: [String: String]) throws {
    if let found = try PortFile.named(byFlag: flags.portFile, environment) {
      guard let admin = found.admin else {
        throw CommandFailure(.unreachable, "the server of the port file has no admin listener")
      }
      portFile = found
      client = AdminClient(
        endpoint: admin.reachable, token: flags.adminToken ?? found.adminToken,
        origin: ", the address in the port file")
      return
    }
    portFile = nil
    client = AdminClient(
      endpoint: try Self.adminEndpoint(flag: flags.admin, environment).reachable,
      token: try flags.adminToken ?? Self.adminToken(environment))
  }

  /// Returns the admin address of the flag, else the variable, else the default of `serve`.
  ///
  /// - Throws: `CommandFailure` of status `usage` for an invalid address.
  static func adminEndpoint(flag: String?, _ environment: [String: String]) throws -> Endpoint {
    let given = [
      (flag, Setting.admin.flag), (environment.given(Setting.admin.variable), Setting.admin.variable),
    ]
    for case (let text?, let source) in given {
      do throws(InvalidSettingValue) {
        return try Value.endpoint(text)
      } catch {
        throw CommandFailure(.usage, SettingError(error, from: source).description)
      }
    }
    return Configuration().admin ?? Endpoint(host: "127.0.0.1", port: 8197)
  }

  /// Returns the admin token that the variables specify.
  ///
  /// - Throws: `CommandFailure` for a file that cannot be read.
  static func adminToken(_ environment: [String: String]) throws -> String? {
    if let token = environment.given(Setting.adminToken.variable) {
      // `auto`: only the port file contains the token that the server generated.
      return token == ServeSettings.drawnToken ? nil : token
    }
    return try environment.given(Variables.adminTokenFile).map { try Files.text(of: $0).trimmed }
  }
}

/// The option for the certificate folder.
struct FolderFlags: ParsableArguments {
  @Option(name: .long, help: "The folder of certificates and keys. [APNS_MOCK_CERTS] (default: Certs)")
  var certs: String?
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

  /// Locates the files.
  ///
  /// - Parameter certs: The folder specified by a flag, which overrides all other sources.
  init(certs: String?, portFile: PortFile?, environment: [String: String]) {
    let folder = certs ?? environment.given(Setting.certs.variable) ?? Configuration().certificates
    let folderKey = folder + "/AuthKey_\(CertificateFolder.keyID).p8"
    if certs == nil, let portFile {
      (ca, key, keyID, teamID) = (portFile.ca, portFile.key, portFile.keyID, portFile.teamID)
    } else if certs == nil {
      ca = environment.given(Variables.ca) ?? folder + "/ca.pem"
      key = environment.given(Variables.key) ?? folderKey
      keyID = environment.given(Variables.keyID) ?? CertificateFolder.keyID
      teamID = environment.given(Variables.teamID) ?? CertificateFolder.teamID
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
  /// - Parameter key: The key's path; nil searches the certificate's folder: `client-key.pem` for `client.pem`,
  ///   `client.TOPIC.key` for `client.TOPIC.pem`.
  /// - Throws: `CommandFailure` if there is no key.
  init(chain: String, key: String?) throws {
    self.chain = chain
    if let key {
      self.key = key
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
