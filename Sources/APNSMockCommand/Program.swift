import ArgumentParser
import PlatformLibc

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
        self.init(status: .usage, lines: [APNSMock.fullMessage(for: error)])
      } else if code.isSuccess {
        // The requested help or version text is data, so it goes to standard output.
        self.init(status: .done, lines: [APNSMock.fullMessage(for: error)], stream: .output)
      } else {
        self.init(status: .failed, lines: ["error: \(error)"])
      }
    }
  }
}

/// The exit codes of the program. Scripts rely on them.
enum ExitStatus: Int32, Sendable {
  case done = 0
  /// An unexpected error, or a push that was rejected.
  case failed = 1
  /// An error in flags, variables, the config file, a fault profile or the certificate folder.
  case usage = 2
  /// A wait timed out.
  case timedOut = 3
  /// The server is unreachable or not ready.
  case unreachable = 4
  /// The result is unknown because records were evicted before they could be checked.
  case inconclusive = 5
  /// Another process uses the port.
  case portInUse = 6
  /// A second signal arrived (128 + SIGINT).
  case interrupted = 130
}

/// The failure of a command: a message that says what failed, where, and how to repair it, and an exit code.
struct CommandFailure: Error, CustomStringConvertible {
  /// The exit code.
  let code: Int32
  /// The status for the code; `failed` for the shell codes 126 and 127.
  var status: ExitStatus { ExitStatus(rawValue: code) ?? .failed }
  /// The message without the prefix `error: `, one line per error.
  let description: String
  /// The lines the program writes to standard error before it exits.
  let lines: [String]

  init(_ status: ExitStatus, _ description: String) { self.init(code: status.rawValue, description) }

  /// Creates a failure with a shell's exit code, such as 126 or 127.
  init(code: Int32, _ description: String) {
    let errors = description.split(separator: "\n").map { String($0).onOneLine }
    self.init(code, errors.map { "error: \($0)" }, errors)
  }

  /// Creates a failure whose lines have no `error:` prefix because they begin with a location: `file:12:7: …`.
  init(_ status: ExitStatus, lines: [String]) {
    let lines = lines.map(\.onOneLine)
    self.init(status.rawValue, lines, lines)
  }

  // Errors quote file content and server responses, so both callers have escaped line breaks in each of them.
  private init(_ code: Int32, _ lines: [String], _ errors: [String]) {
    self.code = code
    self.lines = lines
    description = errors.joined(separator: "\n")
  }
}

/// The version of apns-mock.
enum Version {
  /// The semantic version.
  static let text = "0.1.0"
}
