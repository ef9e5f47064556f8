import ArgumentParser
import MockAPNS

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
  func neighbour() throws -> NeighbouringServer {
    try NeighbouringServer(server, environment: Environment.variables)
  }

  /// Returns the file with the trusted keys, which may not exist yet.
  func list(beside neighbour: NeighbouringServer) -> ProviderKeysFile {
    ProviderKeysFile(folder: folder.path(of: neighbour.portFile))
  }
}
