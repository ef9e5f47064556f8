import APNSRules
import ArgumentParser
import MockAPNS
import NIOHTTP1
import Notation

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
    let trusted = try await server.request(.GET, "/api/v1/keys")?.decoded(TrustedKeysPage.self).items
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
        relatedKeyID: entry.relatedKeyID, isTrustedNow: trusted.map { $0.contains { $0.keyId == entry.keyID } },
        isTrustedAtStart: true)
    }
    for key in trusted ?? [] where !entries.contains(where: { $0.keyID == key.keyId }) {
      rows.append(
        Row(
          keyID: key.keyId, teamID: key.teamId, environment: key.environment, topics: key.topics,
          relatedKeyID: key.relatedKeyId, isTrustedNow: true, isTrustedAtStart: false))
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
          .init("TOPICS") { $0.topics?.joined(separator: " ") ?? "all" }, .init("TRUSTED", \.trust),
        ])
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

  @OptionGroup var flags: ProviderFlags

  func run() async throws {
    try AppleKeyFile.checkIdentifier(keyID, flag: "KEY_ID")
    let server = try flags.optionalServer()
    let list = flags.keysFile(for: server)
    let isListed = try FolderFlags.failing { try list.remove(keyID) }
    let wasTrusted: Bool
    do {
      let response = try await server.request(.DELETE, "/api/v1/keys/\(keyID)")
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
