import APNSRules
import ArgumentParser
import MockAPNS
import NIOHTTP1
import Notation

/// `apns-mock key`
struct Key: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "key", abstract: "Manage trusted provider keys.",
    discussion: """
      The public keys are stored in provider.yaml of the certificate folder. A running server applies changes \
      immediately.
      """,
    subcommands: [KeyAdd.self, KeyList.self, KeyRemove.self])
}

/// The options of the key commands, which change the folder and the server that may use it.
struct KeyFlags: ParsableArguments {
  @OptionGroup var server: ServerFlags
  @OptionGroup var folder: FolderFlags
  @OptionGroup var output: OutputFlags

  /// Returns the running server, if any.
  func optionalServer() throws -> OptionalServer {
    try OptionalServer(server, environment: Environment.variables)
  }

  /// Returns the file with the trusted keys, which may not exist yet.
  func list(from optionalServer: OptionalServer) -> ProviderKeysFile {
    ProviderKeysFile(folder: folder.path(of: optionalServer.portFile))
  }
}

/// `apns-mock key ls`
struct KeyList: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List the provider keys that are trusted now or from the next start.",
    discussion: "Prints a table on a terminal; otherwise one line per key with columns separated by tabs, or JSON.")

  @OptionGroup var flags: KeyFlags

  func run() async throws {
    let optionalServer = try flags.optionalServer()
    let list = flags.list(from: optionalServer)
    let entries = try FolderFlags.failing { list.file.exists ? try list.entries() : [] }
    let present = try await optionalServer.request(.GET, "/api/v1/keys")?.decoded(TrustedKeys.self).items
    let keys = Self.together(entries, present)
    if flags.output.json {
      for key in keys { flags.output.print(text: "", key.write) }
    } else {
      Table(header: ["KEY ID", "TEAM", "ENVIRONMENT", "TOPICS", "TRUSTED"], rows: keys.map(\.row)).print()
    }
    if !list.file.exists { StandardStream.error.line("\(list.file.path) does not exist: the first start creates it") }
    if present == nil { StandardStream.error.line("no server is running: these keys are trusted when it starts") }
  }

  /// The admin API's list of trusted keys.
  struct TrustedKeys: Decodable {
    var items: [Item]

    struct Item: Decodable {
      var key_id: String
      var team_id: String
      var environment: String?
      var topics: [String]?
      var related_key_id: String?
    }
  }

  /// Returns the keys of the file in their order, then those that only the server trusts.
  static func together(_ entries: [ProviderKeyEntry], _ present: [TrustedKeys.Item]?) -> [Row] {
    var rows = entries.map { entry in
      Row(
        keyID: entry.keyID, teamID: entry.teamID, environment: entry.environment?.rawValue, topics: entry.topics,
        relatedKeyID: entry.relatedKeyID, isTrustedNow: present.map { $0.contains { $0.key_id == entry.keyID } },
        isTrustedAtStart: true)
    }
    for key in present ?? [] where !entries.contains(where: { $0.keyID == key.key_id }) {
      rows.append(
        Row(
          keyID: key.key_id, teamID: key.team_id, environment: key.environment, topics: key.topics,
          relatedKeyID: key.related_key_id, isTrustedNow: true, isTrustedAtStart: false))
    }
    return rows
  }

  /// One key.
  struct Row: Equatable {
    var keyID: String
    var teamID: String
    var environment: String?
    var topics: [String]?
    var relatedKeyID: String?
    /// Nil if no server is running.
    var isTrustedNow: Bool?
    var isTrustedAtStart: Bool

    /// The cells of the table row.
    var row: [String] {
      let when =
        switch (isTrustedNow, isTrustedAtStart) {
        case (true, true): "now and at start"
        case (true, false): "until the server stops"
        default: "at the next start"
        }
      return [keyID, teamID, environment ?? "both", topics?.joined(separator: " ") ?? "all", when].map(\.onOneLine)
    }

    func write(to writer: inout JSONWriter) {
      writer.member("key_id", keyID)
      writer.member("team_id", teamID)
      writer.member("environment", environment)
      if let topics { writer.member("topics", topics) } else { writer.nullMember("topics") }
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

  @Argument(help: "The key id.")
  var keyID: String

  @OptionGroup var flags: KeyFlags

  func run() async throws {
    try AppleKeyFile.checkIdentifier(keyID, flag: "KEY_ID")
    let optionalServer = try flags.optionalServer()
    let list = flags.list(from: optionalServer)
    let isListed = try FolderFlags.failing { try list.remove(keyID) }
    let wasTrusted: Bool
    do {
      let answer = try await optionalServer.request(.DELETE, "/api/v1/keys/\(keyID)")
      // 404: the server may never have known the key.
      let isUnknown = answer?.status == 404
      if !isUnknown { _ = try answer?.succeeded() }
      wasTrusted = answer != nil && !isUnknown
    } catch let failure as CommandFailure where isListed {
      throw CommandFailure(
        code: failure.code, "\(keyID) is removed from \(list.file.path), but the server did not apply it: \(failure)")
    }
    guard isListed || wasTrusted else {
      throw CommandFailure(
        .failed,
        "\(keyID) is neither in \(list.file.path) nor trusted by \(optionalServer.name); to list the trusted keys: "
          + "apns-mock key ls")
    }
    var places: [String] = []
    if isListed { places.append("removed from \(list.file.path)") }
    if wasTrusted { places.append("no longer trusted by \(optionalServer.name)") }
    flags.output.print(text: "\(keyID): \(places.joined(separator: ", "))") { writer in
      writer.member("key_id", keyID)
      writer.member("file", list.file.path)
      writer.member("removed_from_file", isListed)
      writer.member("removed_from_server", wasTrusted)
    }
  }
}
