import ArgumentParser
import MockAPNS
import Notation

/// `apns-mock token`
struct Token: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token", abstract: "Generate a provider token or a device token.",
    subcommands: [TokenProvider.self, TokenDevice.self])
}

/// `apns-mock token provider`
struct TokenProvider: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "provider",
    abstract: "Print a new provider token (a JWT) that the server trusts.",
    discussion: "Example of a request header: authorization: bearer $(apns-mock token provider)")

  @Option(name: .long, help: "The private key in PEM, such as Apple's AuthKey_….p8. (default: the server's)")
  var key: String?

  @Option(name: .long, help: "The key id. (default: from the file name, or the server's)")
  var keyID: String?

  @Option(name: .long, help: "The team id. (default: the server's)")
  var teamID: String?

  @Option(
    name: .long, parsing: .unconditional,
    help: "The issue time: RFC 3339, seconds since 1970, or relative to now such as -10m or 5m. (default: now)")
  var issuedAt: String?

  @Option(name: .long, help: "The port file of a running server. [APNS_MOCK_PORT_FILE]")
  var portFile: String?

  @OptionGroup var folder: FolderFlags
  @OptionGroup var output: OutputFlags

  func run() throws {
    let environment = Environment.variables
    let written = try PortFile.named(byFlag: portFile, environment)
    let files = ServerFiles(certs: folder.certs, portFile: written, environment: environment)
    let now = ServerClock().now
    let issued = try issuedAt.map { text in
      guard let time = TimeArgument.milliseconds(text, now: now) else {
        throw CommandFailure(.usage, "--issued-at: \"\(text)\" is not a time: \(TimeArgument.allowed)")
      }
      return time
    }
    let token = FreshToken(
      keyID: try chosenKeyID(files), teamID: teamID ?? files.teamID, issuedAt: (issued ?? now) / 1000)
    let text = try token.signed(withKeyAt: key ?? files.key)
    output.print(text: text) { writer in
      writer.member("token", text)
      writer.member("key_id", token.keyID)
      writer.member("team_id", token.teamID)
      writer.member("issued_at", WrittenTime.text(token.issuedAt * 1000))
    }
  }

  private func chosenKeyID(_ files: ServerFiles) throws -> String {
    if let keyID { return keyID }
    guard let key else { return files.keyID }
    guard let keyID = AppleKeyFile.keyID(in: key) else {
      throw CommandFailure(.usage, "--key: the file name \(key) does not contain the key id: specify it with --key-id")
    }
    return keyID
  }
}
