import Notation
import ArgumentParser
import MockAPNS
import NIOHTTP1

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
    let neighbour = try flags.neighbour()
    let list = flags.list(beside: neighbour)
    let isListed = try FolderFlags.failing { try list.remove(keyID) }
    let wasTrusted: Bool
    do {
      let answer = try await neighbour.request(.DELETE, "/api/v1/keys/\(keyID)")
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
        "\(keyID) is neither in \(list.file.path) nor trusted by \(neighbour.name); to list the trusted keys: "
          + "apns-mock key ls")
    }
    var places: [String] = []
    if isListed { places.append("removed from \(list.file.path)") }
    if wasTrusted { places.append("no longer trusted by \(neighbour.name)") }
    flags.output.print(text: "\(keyID): \(places.joined(separator: ", "))") { writer in
      writer.member("key_id", keyID)
      writer.member("file", list.file.path)
      writer.member("removed_from_file", isListed)
      writer.member("removed_from_server", wasTrusted)
    }
  }
}
