import APNSRules
import ArgumentParser
import MockAPNS
import NIOHTTP1
import Notation
import TLSEngine

/// `apns-mock key add`
struct KeyAdd: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Trust a provider key.",
    discussion: "A private key is not copied: only its public key is stored in provider.yaml and sent to the server.")

  /// The environment a key is restricted to.
  enum Limit: String, CaseIterable, ExpressibleByArgument {
    case sandbox, development, production

    var environment: PushEnvironment { self == .production ? .production : .sandbox }
  }

  @Argument(help: "The key: a .p8 file as downloaded from Apple, or a public key in PEM; - for standard input.")
  var file: String

  @Option(name: .long, help: "The key id. (default: from the file name, AuthKey_ABC123DEFG.p8)")
  var keyID: String?

  @Option(name: .long, help: "The team id of the key.")
  var teamID: String

  @Option(name: .long, help: "Restrict the key to one environment. (default: both)")
  var environment: Limit?

  @Option(name: .long, help: "Restrict the key to a topic; repeatable. (default: all topics)")
  var topic: [String] = []

  @Option(
    name: .long, help: "The id of a key that may share a connection with this topic-specific key. (default: none)")
  var relatedKeyID: String?

  @OptionGroup var flags: ProviderFlags

  func run() async throws {
    let entry = try entry()
    let server = try flags.optionalServer()
    let folder = try flags.folder.opened(for: server.portFile)
    let list = ProviderKeysFile(folder: folder.path)
    let isNew = try FolderFlags.failing { try list.add(entry) }
    let place = "\(isNew ? "added to" : "already in") \(list.file.path)"
    let isTrustedNow: Bool
    do {
      let response = try await server.request(.PUT, "/api/v1/keys/\(entry.keyID)", body: try Self.body(of: entry))
      _ = try response?.succeeded()
      isTrustedNow = response != nil
    } catch let failure as CommandFailure {
      throw CommandFailure(
        code: failure.code,
        "\(entry.keyID) is \(place) and trusted from the next start, but the server did not apply it: \(failure)")
    }
    let trusted =
      isTrustedNow
      ? "trusted by \(server.name)" : "trusted from the next start (no server is running)"
    flags.output.print(text: "\(entry.keyID) of team \(entry.teamID): \(place), \(trusted)") { writer in
      entry.writeMembers(to: &writer)
      writer.member("file", list.file.path)
      writer.member("trusted_now", isTrustedNow)
      writer.member("trusted_at_start", true)
    }
    if isTrustedNow, let fingerprint = try await server.authorityFingerprint(),
      fingerprint != folder.caFingerprint
    {
      StandardStream.error.line(
        "\(server.name) does not use the certificate folder \(folder.path): it trusts the key until it stops; "
          + "to keep the key, specify its folder with --certs DIR")
    }
  }

  private func entry() throws -> ProviderKeyEntry {
    guard let keyID = keyID ?? AppleKeyFile.keyID(in: file) else {
      throw CommandFailure(.usage, "the file name \(file) does not contain the key id: specify it with --key-id")
    }
    try AppleKeyFile.checkIdentifier(keyID, flag: "--key-id")
    try AppleKeyFile.checkIdentifier(teamID, flag: "--team-id")
    if let relatedKeyID { try AppleKeyFile.checkIdentifier(relatedKeyID, flag: "--related-key-id") }
    for topic in topic where !CertificateFolder.isTopic(topic) {
      throw CommandFailure(
        .usage,
        "--topic must have 1 to 255 characters without spaces and control characters, not \"\(topic.onOneLine)\"")
    }
    return ProviderKeyEntry(
      keyID: keyID, teamID: teamID, publicKey: try AppleKeyFile.publicKey(at: file),
      environment: environment?.environment, topics: topic.isEmpty ? nil : topic,
      relatedKeyID: relatedKeyID)
  }

  /// Returns the request body for the admin API.
  private static func body(of entry: ProviderKeyEntry) throws -> [UInt8] {
    let pem = try entry.publicKey.pem
    return JSONWriter.object { writer in
      writer.member("team_id", entry.teamID)
      writer.member("public_key", pem)
      if let environment = entry.environment { writer.member("environment", environment.rawValue) }
      if let topics = entry.topics { writer.member("topics", topics) }
      if let related = entry.relatedKeyID { writer.member("related_key_id", related) }
    }
  }
}

extension ProviderKeyEntry {
  /// Writes the key's description as JSON members.
  func writeMembers(to writer: inout JSONWriter) {
    writer.member("key_id", keyID)
    writer.member("team_id", teamID)
    writer.member("environment", environment?.rawValue)
    if let topics { writer.member("topics", topics) } else { writer.nullMember("topics") }
    writer.member("related_key_id", relatedKeyID)
  }
}

/// A provider key file as downloaded from Apple: `AuthKey_ABC123DEFG.p8`.
enum AppleKeyFile {
  /// Returns the key id in the file name; nil if the name has another form.
  static func keyID(in path: String) -> String? {
    let name = path.split(separator: "/").last ?? ""
    guard name.hasPrefix("AuthKey_"), name.hasSuffix(".p8") else { return nil }
    return String(name.dropFirst("AuthKey_".count).dropLast(".p8".count))
  }

  /// Returns the public key from a file with a private or public key in PEM.
  ///
  /// - Throws: `CommandFailure` that names the file and describes its content.
  static func publicKey(at path: String) throws -> ES256PublicKey {
    let pem = try Files.text(of: path)
    do {
      return pem.contains("-----BEGIN PUBLIC KEY-----")
        ? try ES256PublicKey(pem: pem) : try ES256PrivateKey(pem: pem).publicKey
    } catch {
      throw CommandFailure(.usage, "\(path): \(error); \(repair(pem, path))")
    }
  }

  private static func repair(_ pem: String, _ path: String) -> String {
    if pem.contains("ENCRYPTED") {
      return "decrypt it: openssl pkey -in \(path.shellQuoted) -out decrypted.p8"
    }
    return "specify the .p8 file downloaded from Apple, or its public key (openssl pkey -pubout)"
  }

  /// Validates an id specified by a flag.
  ///
  /// - Throws: `CommandFailure` that names the flag.
  static func checkIdentifier(_ text: String, flag: String) throws {
    guard ProviderKeysFile.isIdentifier(text) else {
      throw CommandFailure(
        .usage, "\(flag): \"\(text)\" is not an id of ten letters and digits, as shown in Apple's developer account")
    }
  }
}
