import ArgumentParser

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Runs the command that was asked for, and ends with its exit code.
@main
enum Program {
  static func main() async {
    StandardStream.fillGaps()
    let ending: Ending
    do {
      try CommandNames.check(CommandLine.arguments.dropFirst())
      var command = try await APNSMock.asyncParseAsRoot()
      if var command = command as? any AsyncParsableCommand {
        try await command.run()
      } else {
        try command.run()
      }
      ending = Ending(status: .done)
    } catch {
      ending = Ending(of: error)
    }
    LogPipe.standardError.flush()
    for line in ending.lines { ending.stream.line(line) }
    if let loss = StandardStream.loss {
      StandardStream.error.line("error: standard output cannot be written: \(loss); make room, or send it elsewhere")
      exit(ending.status == .done ? ExitStatus.failed.rawValue : ending.code)
    }
    exit(ending.code)
  }
}

/// The last words of the program, and its exit code.
struct Ending: Equatable {
  let code: Int32
  var lines: [String] = []
  var stream = StandardStream.error

  /// The meaning of the code, as far as it is one of ours and not of a program that `exec` ran.
  var status: ExitStatus { ExitStatus(rawValue: code) ?? .failed }
}

extension Ending {
  init(status: ExitStatus, lines: [String] = [], stream: StandardStream = .error) {
    self.init(code: status.rawValue, lines: lines, stream: stream)
  }

  /// What an error says at the end.
  init(of error: any Error) {
    switch error {
    case let failure as CommandFailure:
      self.init(code: failure.code, lines: failure.lines)
    case let code as ExitCode:
      self.init(code: code.rawValue)
    default:
      let code = APNSMock.exitCode(for: error)
      if code == .validationFailure {
        // The parser's own words: what is wrong, how the command is used, and where to read more.
        self.init(status: .usage, lines: [APNSMock.fullMessage(for: error)])
      } else if code.isSuccess {
        // Help or version, which were asked for: data.
        self.init(status: .done, lines: [APNSMock.fullMessage(for: error)], stream: .output)
      } else {
        self.init(status: .failed, lines: ["error: \(error)"])
      }
    }
  }
}
