import APNSRules
import ArgumentParser
import MockAPNS
import NIOHTTP1
import TLSEngine
import Notation

/// `apns-mock key add`
struct KeyAdd: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Trust a provider key by its public half.",
    discussion: "A private key is read, never copied: only its public half goes into provider.yaml and to the server.")

  /// The only environment a key is good for.
  enum Limit: String, CaseIterable, ExpressibleByArgument {
    case sandbox, development, production

    var environment: PushEnvironment { self == .production ? .production : .sandbox }
  }

  @Argument(help: "The key: a .p8 file as Apple's download, or its public half in PEM; - for standard input.")
  var file: String

  @Option(name: .long, help: "The key's id. (default: from the file's name, AuthKey_ABC123DEFG.p8)")
  var keyID: String?

  @Option(name: .long, help: "The id of the team it belongs to.")
  var teamID: String

  @Option(name: .long, help: "The only environment it is good for. (default: both)")
  var environment: Limit?

  @Option(name: .long, help: "A topic of a topic-specific key; repeatable. (default: all topics)")
  var topic: [String] = []

  @Option(name: .long, help: "The id of the key that a topic-specific key may share a connection with. (default: none)")
  var relatedKeyID: String?

  @OptionGroup var flags: KeyFlags

  func run() async throws {
    let entry = try entry()
    let neighbour = try flags.neighbour()
    let folder = try flags.folder.opened(for: neighbour.portFile)
    let list = ProviderKeysFile(folder: folder.path)
    let isNew = try FolderFlags.failing { try list.add(entry) }
    let place = "\(isNew ? "written into" : "stood already in") \(list.file.path)"
    let isTold: Bool
    do {
      let answer = try await neighbour.request(.PUT, "/api/v1/keys/\(entry.keyID)", body: try Self.body(of: entry))
      _ = try answer?.succeeded()
      isTold = answer != nil
    } catch let failure as CommandFailure {
      throw CommandFailure(
        code: failure.code, "\(entry.keyID) is \(place), so it is trusted from the next start on; but now: \(failure)")
    }
    let trusted =
      isTold
      ? "trusted by \(neighbour.name) from now on" : "trusted from the next start on, as no server is running now"
    flags.output.print(text: "\(entry.keyID) of team \(entry.teamID): \(place), \(trusted)") { writer in
      entry.writeMembers(to: &writer)
      writer.member("file", list.file.path)
      writer.member("trusted_now", isTold)
      writer.member("trusted_at_start", true)
    }
    if isTold, let fingerprint = try await neighbour.authorityFingerprint(), fingerprint != folder.caFingerprint {
      StandardStream.error.line(
        "\(neighbour.name) has another certificate folder than \(folder.path): it trusts the key until it ends; "
          + "name its folder with --certs DIR to keep it")
    }
  }

  private func entry() throws -> ProviderKeyEntry {
    guard let keyID = keyID ?? AppleKeyFile.keyID(in: file) else {
      throw CommandFailure(.usage, "the name of \(file) does not tell the key's id: give it with --key-id")
    }
    try AppleKeyFile.checkIdentifier(keyID, flag: "--key-id")
    try AppleKeyFile.checkIdentifier(teamID, flag: "--team-id")
    if let relatedKeyID { try AppleKeyFile.checkIdentifier(relatedKeyID, flag: "--related-key-id") }
    for topic in topic where !CertificateFolder.isTopic(topic) {
      throw CommandFailure(
        .usage, "--topic: \"\(topic.onOneLine)\" is not 1 to 255 characters without spaces and control characters")
    }
    return ProviderKeyEntry(
      keyID: keyID, teamID: teamID, publicKey: try AppleKeyFile.publicKey(at: file),
      environment: environment?.environment, topics: topic.isEmpty ? nil : topic,
      relatedKeyID: relatedKeyID)
  }

  /// What the server is told.
  private static func body(of entry: ProviderKeyEntry) throws -> [UInt8] {
    let pem = try entry.publicKey.pem
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("team_id", entry.teamID)
      writer.member("public_key", pem)
      if let environment = entry.environment { writer.member("environment", environment.rawValue) }
      if let topics = entry.topics { writer.member("topics", topics) }
      if let related = entry.relatedKeyID { writer.member("related_key_id", related) }
    }
    return writer.bytes
  }
}

extension ProviderKeyEntry {
  /// Writes what the entry says of its key.
  func writeMembers(to writer: inout JSONWriter) {
    writer.member("key_id", keyID)
    writer.member("team_id", teamID)
    writer.member("environment", environment?.rawValue)
    if let topics { writer.member("topics", topics) } else { writer.nullMember("topics") }
    writer.member("related_key_id", relatedKeyID)
  }
}
