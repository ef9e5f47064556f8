import ArgumentParser
import APNSMockFaults
import MockAPNS
import APNSMockNotation
import APNSMockTLSEngine

/// `apns-mock token`
struct TokenCommand: ParsableCommand {
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

  @OptionGroup var signing: SigningFlags

  @Option(
    name: .long, parsing: .unconditional,
    help: .value(
      "time", "The issue time: RFC 3339, seconds since 1970, or relative to now such as -10m or 5m. (default: now)"))
  var issuedAt: String?

  @Option(
    name: .long, help: .value("file", "The port file of a running server. [APNS_MOCK_PORT_FILE]"), completion: .file())
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
    let token = ProviderTokenRequest(
      keyID: try signing.chosenKeyID(files), teamID: signing.teamID ?? files.teamID, issuedAt: (issued ?? now) / 1000)
    let text = try token.signed(withKeyAt: signing.key ?? files.key)
    output.print(text: text) { writer in
      writer.member("token", text)
      writer.member("key_id", token.keyID)
      writer.member("team_id", token.teamID)
      writer.member("issued_at", TimestampFormat.text(token.issuedAt * 1000))
    }
  }
}

/// `apns-mock token device`
struct TokenDevice: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device",
    abstract: "Print a random device token or a magic one.",
    discussion: """
      The server accepts pushes to a random device token. A magic device token encodes the outcome of its pushes, unless \
      the server runs with --no-magic-tokens. --list prints all of them; the unit of the argument depends on the code: \
      hours, attempts or tenths of a second.
      """)

  @Option(
    name: .long, help: .value("number", "The number of hexadecimal digits: 64, or 160 as in newer systems."),
    completion: .list(["64", "160"]))
  var length = 64

  @Option(
    name: .long,
    help: .value("code", "The code of an outcome such as 4100, or a code with an argument such as 4100:24."))
  var magic: String?

  @Flag(name: .long, help: "Print an example of each magic device token and its outcome.")
  var list = false

  @OptionGroup var output: OutputFlags

  func validate() throws {
    guard length == 64 || length == 160 else { throw ValidationError("--length must be 64 or 160") }
    guard magic == nil || !list else {
      throw ValidationError("--magic and --list exclude each other: specify one of them")
    }
    guard length == 64 || (magic == nil && !list) else {
      throw ValidationError("Magic device tokens have 64 digits: omit --length")
    }
  }

  func run() throws {
    if list { return printList() }
    guard let magic else {
      let text = String.randomDeviceToken(digits: length)
      return output.print(text: text) { $0.member("token", text) }
    }
    let token = try Self.token(magic)
    output.print(text: token.text, token.write)
  }

  private func printList() {
    let tokens = MagicToken.list
    let table = Table(
      rows: tokens, columns: [.init("CODE", \.code.rawValue), .init("OUTCOME", \.summary), .init("TOKEN", \.text)])
    output.print(table, objects: tokens.map { JSONWriter.object($0.write) })
  }

  /// Returns the token for a code and its argument.
  ///
  /// - Throws: `CommandFailure` that lists the codes.
  static func token(_ text: String) throws -> MagicToken {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let code = MagicToken.Code(rawValue: String(parts[0])) else {
      let codes = MagicToken.Code.allCases.map(\.rawValue).joined(separator: ", ")
      throw CommandFailure(
        .usage, "--magic: unknown code \"\(parts[0])\"; the codes are \(codes); --list describes them".onOneLine)
    }
    // A code that requires an argument defaults to the one in the list.
    guard parts.count == 2 else { return MagicToken.list.first { $0.code == code } ?? .make(code: code) }
    do throws(InvalidSettingValue) {
      return .make(code: code, argument: try Value.whole(String(parts[1]), in: 0...9999))
    } catch {
      throw CommandFailure(.usage, SettingError(error, from: "--magic").description.onOneLine)
    }
  }
}

extension MagicToken {
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("code", code.rawValue)
    writer.member("argument", argument)
    writer.member("outcome", summary)
    writer.member("token", text)
  }
}

extension ProviderTokenRequest {
  /// Returns the JWT, signed with the key in the file `keyPath`.
  ///
  /// - Throws: `CommandFailure` that names the file.
  func signed(withKeyAt keyPath: String) throws -> String {
    let pem: String
    do {
      pem = try Files.text(of: keyPath)
    } catch let error as CommandFailure {
      throw CommandFailure(
        .usage, "\(error); create a key with apns-mock certs, or specify one with --key FILE or --certs DIR")
    }
    do {
      return try signed(with: ES256PrivateKey(pem: pem))
    } catch {
      throw CommandFailure(.usage, "\(keyPath): \(error); specify a P-256 key such as Apple's .p8 file")
    }
  }
}
