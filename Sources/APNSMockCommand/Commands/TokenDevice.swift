import ArgumentParser
import Faults
import Notation

/// `apns-mock token device`
struct TokenDevice: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device",
    abstract: "Print a device token: a random one, which the server takes for an online device, or a magic one.",
    discussion: """
      Pushes to a magic device token come to the outcome that its digits ask for, unless the server runs with \
      --no-magic-tokens. --list shows them all; the argument counts hours, attempts or tenths of a second, by the code.
      """)

  @Option(name: .long, help: "How many hexadecimal digits: 64 as iOS has them, or 160 as newer ones may have.")
  var length = 64

  @Option(name: .long, help: "The code of an outcome, as 4100, or with an argument as 4100:24.")
  var magic: String?

  @Flag(name: .long, help: "Print one of each magic device token, and what becomes of pushes to it.")
  var list = false

  @OptionGroup var output: OutputFlags

  func validate() throws {
    guard length == 64 || length == 160 else { throw ValidationError("--length is 64 or 160") }
    guard magic == nil || !list else { throw ValidationError("--magic makes one, --list shows all: give one of them") }
    guard length == 64 || (magic == nil && !list) else {
      throw ValidationError("magic device tokens have 64 digits: leave --length out")
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

  /// The token for a code and its argument.
  ///
  /// - Throws: `CommandFailure` that says which codes there are.
  static func token(_ text: String) throws -> MagicToken {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let code = MagicToken.Code(rawValue: String(parts[0])) else {
      let codes = MagicToken.Code.allCases.map(\.rawValue).joined(separator: ", ")
      throw CommandFailure(
        .usage, "--magic: there is no code \"\(parts[0])\"; there are \(codes); --list says what they do".onOneLine)
    }
    // Without an argument a code that needs one has that of the list.
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
