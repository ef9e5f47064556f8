import ArgumentParser
import Faults
import Notation

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

  @Option(name: .long, help: "The number of hexadecimal digits: 64, or 160 as in newer systems.")
  var length = 64

  @Option(name: .long, help: "The code of an outcome such as 4100, or a code with an argument such as 4100:24.")
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
    guard !output.json else { return tokens.forEach { output.print(text: "", $0.write) } }
    Table(header: ["CODE", "OUTCOME", "TOKEN"], rows: tokens.map { [$0.code.rawValue, $0.outcome, $0.text] }).print()
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
    do throws(BadValue) {
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
    writer.member("outcome", outcome)
    writer.member("token", text)
  }
}
