import ArgumentParser
import APNSMockClientCommands
import Testing

@testable import APNSMockCommand

/// How commands exit.
@Suite struct ExitResultTests {
  @Test(arguments: [
    (["--nonsense"], APNSMockClientCommands.ExitStatus.usage, StandardStream.error, "--nonsense"),
    (["ls", "--limit", "x"], .usage, .error, "--limit"), (["rm"], .usage, .error, "--all"),
    (["get"], .usage, .error, "<id>"),
    (["token", "device", "--length", "7"], .usage, .error, "--length must be 64 or 160"),
    (["send", "ab", "--cert-key", "k.pem"], .usage, .error, "--cert-key requires --cert"),
    (["doctor", "--cert-key", "k.pem"], .usage, .error, "--cert-key requires --cert"),
    (["doctor", "--cert", "c.pem", "--key", "k.p8"], .usage, .error, "only one of --key, --cert"),
    (["clock", "advance", "far"], .usage, .error, "90s, 20m"), (["--help"], .done, .output, "SUBCOMMANDS"),
    (["--version"], .done, .output, Version.text),
    (["-V"], .done, .output, Version.text), (["serve", "-V"], .done, .output, Version.text),
  ])
  func usageErrorsExitWithTwoAndHelpWithZero(
    _ arguments: [String], _ status: APNSMockClientCommands.ExitStatus, _ stream: StandardStream, _ words: String
  ) throws {
    let error = try #require(throws: (any Error).self) {
      var command = try APNSMock.parseAsRoot(arguments)
      // Help is returned as a command.
      try command.run()
    }
    let result = ExitResult(of: error)
    #expect(result.status == status)
    #expect(result.stream == stream)
    #expect(result.lines.joined().contains(words), "\(result.lines)")
    if status == .usage { #expect(result.lines.first?.hasPrefix("error: ") == true) }
    if status == .usage { #expect(result.lines.joined().contains("--help"), "it says where to read more") }
  }

  @Test func failureHasOneLinePerProblem() {
    let result = ExitResult(of: CommandFailure(.portInUse, "one\ntwo"))
    #expect(result == ExitResult(status: .portInUse, lines: ["error: one", "error: two"]))
  }

  @Test func failureEscapesQuotedFileContent() {
    let failure = CommandFailure(.usage, "a \u{1B}[31mred\u{7}\u{85} key")
    #expect(ExitResult(of: failure).lines == [#"error: a \u{1B}[31mred\u{07}\u{0085} key"#])
    // In the description, which may be used within a line, the characters are escaped too.
    #expect(failure.description == #"a \u{1B}[31mred\u{07}\u{0085} key"#)
    #expect(CommandFailure(.usage, lines: ["a:1:1: \u{7}\nb"]).lines == [#"a:1:1: \u{07}\nb"#])
  }

  @Test func unexpectedErrorsExitWithOne() {
    struct UnexpectedError: Error {}
    #expect(ExitResult(of: UnexpectedError()).status == .failed)
    #expect(ExitResult(of: ExitCode(3)) == ExitResult(status: .timedOut))
  }
}
