import ArgumentParser
import APNSMockClientCommands
import APNSMockPlatformLibc

/// The entry point: parses the arguments, runs the command and exits with its code.
@main
enum Program {
  static func main() async {
    StandardStream.fillGaps()
    let result: ExitResult
    do {
      try CommandNames.check(CommandLine.arguments.dropFirst())
      var command = try await APNSMock.asyncParseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
      result = ExitResult(status: .done)
    } catch {
      result = ExitResult(of: error)
    }
    LogPipe.standardError.flush()
    for line in result.lines { result.stream.line(line) }
    if let loss = StandardStream.loss {
      StandardStream.error.line("error: cannot write to standard output: \(loss); free space, or redirect the output")
      exit(result.status == .done ? ExitStatus.failed.rawValue : result.code)
    }
    exit(result.code)
  }
}

/// The last output of the program and its exit code.
struct ExitResult: Equatable {
  let code: Int32
  var lines: [String] = []
  var stream = StandardStream.error

  /// The status for the code; `failed` for the exit code of a program that `exec` ran.
  var status: ExitStatus { ExitStatus(rawValue: code) ?? .failed }
}

extension ExitResult {
  init(status: ExitStatus, lines: [String] = [], stream: StandardStream = .error) {
    self.init(code: status.rawValue, lines: lines, stream: stream)
  }

  /// The argument that the parser takes for short flags, of which `-h` prints the help: a time such as `-1h`. Nil if the help was
  /// requested.
  private static var valueTakenForHelp: String? {
    let words = CommandLine.arguments.dropFirst().prefix { $0 != "--" }
    guard !words.contains(where: { ["-h", "--help", "-V", "--version", "help"].contains($0) }) else { return nil }
    return words.first { $0.wholeMatch(of: /-[0-9][0-9a-z.]*h[0-9a-z.]*/) != nil }
  }

  /// Creates the result for an error.
  init(of error: any Error) {
    switch error {
    case let failure as CommandFailure:
      self.init(code: failure.code, lines: failure.lines)
    case let code as ExitCode:
      self.init(code: code.rawValue)
    default:
      let code = APNSMock.exitCode(for: error)
      if code == .validationFailure {
        // The parser's message: the error, the usage and where to find help.
        let message = APNSMock.fullMessage(for: error)
        let option = UnknownOption(
          in: message, arguments: Array(CommandLine.arguments.dropFirst()), of: APNSMock.self)
        self.init(
          status: .usage, lines: [option?.message(message) ?? message.replacingPrefix("Error:", with: "error:")])
      } else if code.isSuccess, let value = Self.valueTakenForHelp {
        let words = Array(CommandLine.arguments.dropFirst())
        let option = words.firstIndex(of: value).flatMap {
          $0 > 0 && words[$0 - 1].hasPrefix("--") ? words[$0 - 1] : nil
        }
        let unknown = option.flatMap {
          UnknownOption(in: "Error: Unknown option '\($0)'", arguments: words, of: APNSMock.self)
        }
        self.init(
          status: .usage,
          lines: [
            "error: \(value) is no flag; a value that begins with - is written after =, as in \(option ?? "--flag")=\(value)",
            unknown?.suggestion,
          ].compactMap(\.self))
      } else if code.isSuccess {
        // The requested help or version text is data, so it goes to standard output.
        self.init(status: .done, lines: [APNSMock.fullMessage(for: error)], stream: .output)
      } else {
        self.init(status: .failed, lines: ["error: \(error)"])
      }
    }
  }
}

extension String {
  fileprivate func replacingPrefix(_ prefix: String, with other: String) -> String {
    hasPrefix(prefix) ? other + dropFirst(prefix.count) : self
  }
}

/// The version of apns-mock.
enum Version {
  /// The semantic version.
  static let text = "0.1.0"
}
