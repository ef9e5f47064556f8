import APNSMockRules
import ArgumentParser
import MockAPNS
import HTTPTypes
import APNSMockNotation
import APNSMockTLSEngine

/// `apns-mock key`
struct KeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "key", abstract: "Manage trusted provider keys.",
    discussion: """
      The public keys are stored in provider.yaml of the certificate folder. A running server applies changes \
      immediately.
      """,
    subcommands: [KeyAdd.self, KeyList.self, KeyRemove.self])
}

extension ProviderFlags {
  /// Returns the running server, if any.
  func optionalServer() throws -> OptionalServer {
    try OptionalServer(server, environment: Environment.variables)
  }

  /// Returns the file with the trusted keys, which may not exist yet.
  func keysFile(for server: OptionalServer) -> ProviderKeysFile {
    ProviderKeysFile(folder: folder.path(of: server.portFile))
  }
}

/// `apns-mock key ls`
struct KeyList: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List the provider keys that are trusted now or from the next start.",
    discussion: "Prints a table on a terminal; otherwise one line per key with columns separated by tabs, or JSON.")

  @OptionGroup var flags: ProviderFlags

  func run() async throws {
    let server = try flags.optionalServer()
    let list = flags.keysFile(for: server)
    let entries = try FolderFlags.failing { list.file.exists ? try list.entries() : [] }
    let trusted = try await server.request(.get, "/api/v1/keys")?.decoded(TrustedKeysPage.self).items
    let keys = Self.merged(entries, trusted)
    flags.output.print(Row.table(keys), objects: keys.map { JSONWriter.object($0.write) })
    if !list.file.exists { StandardStream.error.line("\(list.file.path) does not exist: the first start creates it") }
    if trusted == nil { StandardStream.error.line("no server is running: these keys are trusted when it starts") }
  }

  /// Returns the keys of the file in their order, then those that only the server trusts.
  static func merged(_ entries: [ProviderKeyEntry], _ trusted: [TrustedKeysPage.Key]?) -> [Row] {
    var rows = entries.map { entry in
      Row(
        keyID: entry.keyID, teamID: entry.teamID, environment: entry.environment?.rawValue, topics: entry.topics,
        teamTopics: entry.teamTopics, relatedKeyID: entry.relatedKeyID,
        isTrustedNow: trusted.map { $0.contains { $0.keyId == entry.keyID } },
        isTrustedAtStart: true)
    }
    for key in trusted ?? [] where !entries.contains(where: { $0.keyID == key.keyId }) {
      rows.append(
        Row(
          keyID: key.keyId, teamID: key.teamId, environment: key.environment, topics: key.topics,
          teamTopics: key.teamTopics, relatedKeyID: key.relatedKeyId, isTrustedNow: true, isTrustedAtStart: false))
    }
    return rows
  }

  /// One key.
  struct Row: Equatable {
    var keyID: String
    var teamID: String
    var environment: String?
    var topics: [String]?
    var teamTopics: [String]?
    var relatedKeyID: String?
    /// Nil if no server is running.
    var isTrustedNow: Bool?
    var isTrustedAtStart: Bool

    private var trust: String {
      switch (isTrustedNow, isTrustedAtStart) {
      case (true, true): "now and at start"
      case (true, false): "until the server stops"
      default: "at the next start"
      }
    }

    /// Returns a table of keys.
    static func table(_ keys: [Row]) -> Table<Row> {
      Table(
        rows: keys,
        columns: [
          .init("KEY ID", \.keyID), .init("TEAM", \.teamID), .init("ENVIRONMENT") { $0.environment ?? "both" },
          .init("TOPICS") { $0.topics?.joined(separator: " ") ?? "all" },
          .init("TEAM TOPICS") { $0.teamTopics?.joined(separator: " ") }, .init("TRUSTED", \.trust),
        ])
    }

    func write(to writer: inout JSONWriter) {
      writer.member("key_id", keyID)
      writer.member("team_id", teamID)
      writer.member("environment", environment)
      if let topics { writer.member("topics", topics) } else { writer.nullMember("topics") }
      if let teamTopics { writer.member("team_topics", teamTopics) } else { writer.nullMember("team_topics") }
      writer.member("related_key_id", relatedKeyID)
      if let isTrustedNow { writer.member("trusted_now", isTrustedNow) } else { writer.nullMember("trusted_now") }
      writer.member("trusted_at_start", isTrustedAtStart)
    }
  }
}

/// `apns-mock key rm`
struct KeyRemove: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm", abstract: "Remove a trusted provider key.",
    discussion: "Removes the key from provider.yaml and from a running server. Key files are not deleted.")

  @Argument(help: .value("id", "The key id."))
  var keyID: String

  @OptionGroup var flags: ProviderFlags

  func run() async throws {
    try AppleKeyFile.checkIdentifier(keyID, flag: "KEY_ID")
    let server = try flags.optionalServer()
    let list = flags.keysFile(for: server)
    let isListed = try FolderFlags.failing { try list.remove(keyID) }
    let wasTrusted: Bool
    do {
      let response = try await server.request(.delete, "/api/v1/keys/\(keyID)")
      // 404: the server may never have known the key.
      let isUnknown = response?.status == 404
      if !isUnknown { _ = try response?.succeeded() }
      wasTrusted = response != nil && !isUnknown
    } catch let failure as CommandFailure where isListed {
      throw CommandFailure(
        code: failure.code, "\(keyID) is removed from \(list.file.path), but the server did not apply it: \(failure)")
    }
    guard isListed || wasTrusted else {
      throw CommandFailure(
        .failed,
        "\(keyID) is neither in \(list.file.path) nor trusted by \(server.name); to list the trusted keys: "
          + "apns-mock key ls")
    }
    var places: [String] = []
    if isListed { places.append("removed from \(list.file.path)") }
    if wasTrusted { places.append("no longer trusted by \(server.name)") }
    flags.output.print(text: "\(keyID): \(places.joined(separator: ", "))") { writer in
      writer.member("key_id", keyID)
      writer.member("file", list.file.path)
      writer.member("removed_from_file", isListed)
      writer.member("removed_from_server", wasTrusted)
    }
  }
}

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

  @Argument(
    help: .value("file", "The key: a .p8 file as downloaded from Apple, or a public key in PEM; - for standard input."),
    completion: .file())
  var file: String

  @Option(name: .long, help: .value("id", "The key id. (default: from the file name, AuthKey_ABC123DEFG.p8)"))
  var keyID: String?

  @Option(name: .long, help: .value("id", "The team id of the key."))
  var teamID: String

  @Option(name: .long, help: .value("environment", "Restrict the key to one environment. (default: both)"))
  var environment: Limit?

  @Option(name: .long, help: .value("topic", "Restrict the key to a topic; repeatable. (default: all topics)"))
  var topic: [String] = []

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Topics that the team is known to have, for serve --topics known; they do not restrict the key. (default: none)",
      valueName: "topic,topic"))
  var teamTopics: String?

  @Option(
    name: .long,
    help: .value("id", "The id of a key that may share a connection with this topic-specific key. (default: none)"))
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
      let response = try await server.request(.put, "/api/v1/keys/\(entry.keyID)", body: try Self.body(of: entry))
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
    let teamTopics = teamTopics.map {
      $0.split(separator: ",", omittingEmptySubsequences: false).map { String($0).trimmed }
    }
    for (flag, topics) in [("--topic", topic), ("--team-topics", teamTopics ?? [])] {
      for topic in topics where !CertificateFolder.isTopic(topic) {
        throw CommandFailure(
          .usage,
          "\(flag) must have 1 to 255 characters without spaces and control characters, not \"\(topic.onOneLine)\"")
      }
    }
    guard topic.isEmpty || teamTopics == nil else {
      throw CommandFailure(
        .usage,
        "--topic and --team-topics exclude each other: a topic-specific key is valid for its topics only, team topics do not "
          + "restrict the key")
    }
    return ProviderKeyEntry(
      keyID: keyID, teamID: teamID, publicKey: try AppleKeyFile.publicKey(at: file),
      environment: environment?.environment, topics: topic.isEmpty ? nil : topic, teamTopics: teamTopics,
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
      if let topics = entry.teamTopics { writer.member("team_topics", topics) }
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
    if let teamTopics { writer.member("team_topics", teamTopics) } else { writer.nullMember("team_topics") }
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
      throw CommandFailure(
        .usage,
        "\(path): \(error); specify the .p8 file downloaded from Apple, or its public key (openssl pkey -pubout)")
    }
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
