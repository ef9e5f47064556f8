import APNSMockNotation
import APNSMockRules
import ArgumentParser
import MockAPNS
import HTTPTypes

/// `apns-mock certs`
struct CertsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "certs", abstract: "Create missing certificates and keys and show their paths.",
    subcommands: [CertsShow.self, CertsClient.self, CertsRotate.self], defaultSubcommand: CertsShow.self)
}

/// `apns-mock certs` and `apns-mock certs show`
struct CertsShow: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Create missing files and show all paths.")

  @Option(
    name: .long, help: .value("host", "An additional name in the server certificate; repeatable. [APNS_MOCK_SAN]"))
  var san: [String] = []

  @Flag(name: .customLong("new-ca"), help: "Replace the CA and all certificates with new ones.")
  var newAuthority = false

  @OptionGroup var folder: FolderFlags
  @OptionGroup var output: OutputFlags

  func run() throws {
    let names = san.isEmpty ? Environment.variables.given(Setting.san.variable).map(Setting.list) ?? [] : san
    let made = try folder.opened(extraNames: names, newAuthority: newAuthority)
    let keyFile = made.providerKeyPath
    let text = """
      folder                 \(made.path)
      CA                     \(made.caPath)
      CA fingerprint         \(made.caFingerprint) (SHA-256)
      next CA                \(made.nextCAPEM == nil ? "none" : made.nextCAPath) (for certs rotate)
      server certificate     \(made.serverPath)
      provider key           \(keyFile) (key id \(CertificateFolder.keyID), team id \(CertificateFolder.teamID))
      provider certificate   \(made.clientPath) (topic \(CertificateFolder.topic))
        its key              \(made.clientKeyPath)
        both, as PKCS#12     \(made.clientP12Path) (password \(CertificateFolder.password))
      trusted keys           \(made.providerKeysPath)
      """
    output.print(text: text) { writer in
      writer.member("folder", made.path)
      writer.member("ca", made.caPath)
      writer.member("ca_fingerprint", made.caFingerprint)
      writer.member("ca_next", made.nextCAPEM == nil ? nil : made.nextCAPath)
      writer.member("server", made.serverPath)
      writer.member("server_key", made.serverKeyPath)
      writer.member("key", keyFile)
      writer.member("key_id", CertificateFolder.keyID)
      writer.member("team_id", CertificateFolder.teamID)
      writer.member("certificate", made.clientPath)
      writer.member("certificate_key", made.clientKeyPath)
      writer.member("p12", made.clientP12Path)
      writer.member("p12_password", CertificateFolder.password)
      writer.member("trusted_keys", made.providerKeysPath)
    }
  }
}

/// `apns-mock certs client`
struct CertsClient: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "client", abstract: "Create a provider certificate for your own topics.")

  /// The environments in which a provider certificate is valid.
  enum Use: String, CaseIterable, ExpressibleByArgument {
    case development, sandbox, production, both

    var environments: Set<PushEnvironment> {
      switch self {
      case .development, .sandbox: [.sandbox]
      case .production: [.production]
      case .both: [.sandbox, .production]
      }
    }
  }

  @Option(
    name: .long,
    help: .value("topic", "A topic the certificate allows, usually a bundle id; repeatable. The first one is its UID."))
  var topic: [String]

  @Option(name: .long, help: .value("environment", "The environment the certificate is valid in."))
  var environment = Use.both

  @Flag(name: .long, help: "Create a certificate that expired yesterday.")
  var expired = false

  @OptionGroup var folder: FolderFlags
  @OptionGroup var output: OutputFlags

  func validate() throws {
    guard !topic.isEmpty else {
      throw ValidationError("Specify the topics of the certificate: --topic com.example.app")
    }
  }

  func run() throws {
    let made = try FolderFlags.failing {
      try folder.opened().makeClientCertificate(
        topics: topic, environments: environment.environments, expired: expired)
    }
    let text = """
      certificate   \(made.certificate)
      key           \(made.key)
      p12           \(made.p12) (password \(CertificateFolder.password))
      """
    output.print(text: text) { writer in
      writer.member("certificate", made.certificate)
      writer.member("key", made.key)
      writer.member("p12", made.p12)
    }
  }
}

/// `apns-mock certs rotate`
struct CertsRotate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Switch a running server to a certificate of its next CA, ca-next.pem.",
    discussion: """
      Connections that begin later see the new chain; open connections stay. Rehearses a new root CA: a provider must trust \
      both CAs before the switch. apns-mock reset, and a restart, switch back.
      """)

  /// The CA that the server's chain ends with.
  enum Target: String, CaseIterable, ExpressibleByArgument {
    case next, current
  }

  @Option(name: .long, help: .value("ca", "The CA to switch to."))
  var to = Target.next

  @OptionGroup var flags: AdminFlags

  private struct State: Decodable {
    var chain: String
    var current: Authority
    var next: Authority?

    struct Authority: Decodable {
      var path: String
    }
  }

  func run() async throws {
    let body = JSONWriter.object { $0.member("to", to.rawValue) }
    let response = try await flags.request(.post, "/certificates/rotate", body: body)
    let state = try response.decoded(State.self)
    let path = state.chain == "next" ? state.next?.path : state.current.path
    flags.print(response, text: "new connections see a certificate of \(path ?? state.chain)".onOneLine)
  }
}
