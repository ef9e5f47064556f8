import ArgumentParser
import MockAPNS

/// `apns-mock key`
struct Key: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "key", abstract: "Say which provider keys are trusted.",
    discussion: """
      A key is trusted by its public half, which stands in provider.yaml of the certificate folder. A running server is \
      told at once.
      """,
    subcommands: [KeyAdd.self, KeyList.self, KeyRemove.self])
}

/// What the key commands have in common: they see to the folder, and to the server that may be running on it.
struct KeyFlags: ParsableArguments {
  @OptionGroup var server: ServerFlags
  @OptionGroup var folder: FolderFlags
  @OptionGroup var output: OutputFlags

  /// The server, if there is one.
  func neighbour() throws -> NeighbouringServer {
    try NeighbouringServer(server, environment: Environment.variables)
  }

  /// The list of trusted keys in the folder, where it is or would be.
  func list(beside neighbour: NeighbouringServer) -> ProviderKeysFile {
    ProviderKeysFile(folder: folder.path(of: neighbour.portFile))
  }
}
