import Notation
import ArgumentParser
import MockAPNS
import NIOHTTP1

/// `apns-mock key rm`
struct KeyRemove: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm", abstract: "Trust a provider key no longer.",
    discussion: "Its entry in provider.yaml goes, and a running server is told. Key files stay where they are.")

  @Argument(help: "The key's id.")
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
      // 404: the key may be one that the server was never told of.
      let isUnknown = answer?.status == 404
      if !isUnknown { _ = try answer?.succeeded() }
      wasTrusted = answer != nil && !isUnknown
    } catch let failure as CommandFailure where isListed {
      throw CommandFailure(code: failure.code, "\(keyID) is removed from \(list.file.path); but now: \(failure)")
    }
    guard isListed || wasTrusted else {
      throw CommandFailure(
        .failed,
        "no key \(keyID) in \(list.file.path), nor trusted by \(neighbour.name); apns-mock key ls shows those that are")
    }
    var places: [String] = []
    if isListed { places.append("removed from \(list.file.path)") }
    if wasTrusted { places.append("trusted no longer by \(neighbour.name)") }
    flags.output.print(text: "\(keyID): \(places.joined(separator: ", "))") { writer in
      writer.member("key_id", keyID)
      writer.member("file", list.file.path)
      writer.member("removed_from_file", isListed)
      writer.member("removed_from_server", wasTrusted)
    }
  }
}
