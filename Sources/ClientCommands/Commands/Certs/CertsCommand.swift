import Notation
import APNSRules
import ArgumentParser
import MockAPNS

/// `apns-mock certs`
struct CertsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "certs", abstract: "Create missing certificates and keys and show their paths.",
    subcommands: [CertsShow.self, CertsClient.self], defaultSubcommand: CertsShow.self)
}

/// `apns-mock certs` and `apns-mock certs show`
struct CertsShow: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Create missing files and show all paths.")

  @Option(name: .long, help: "An additional name in the server certificate; repeatable. [APNS_MOCK_SAN]")
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
    name: .long, help: "A topic the certificate allows, usually a bundle id; repeatable. The first one is its UID.")
  var topic: [String]

  @Option(name: .long, help: "The environment the certificate is valid in.")
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
