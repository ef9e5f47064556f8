import ArgumentParser

/// The root command.
///
/// Every command sets `commandName`: deriving the names from the types, which the parser does for all commands at once,
/// takes a tenth of the program's start time.
struct APNSMock: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "apns-mock",
    abstract:
      "A mock of the Apple Push Notification service: accepts pushes, validates them as APNs does and stores them.",
    discussion: """
      The default command is serve. Every serve flag has an environment variable (APNS_MOCK_ and its name) and a key in \
      the --config file; flags override variables, variables override the file.

      Exit codes: 0 success; 1 a push was rejected, an expectation of verify was not met, or an unexpected error; \
      2 an error in flags, settings or a fault profile; 3 a wait timed out; 4 the server is unreachable or not ready; \
      5 inconclusive, because pushes were evicted before they were checked; 6 port in use; 130 stopped by a second \
      signal. exec returns the exit code of its program.
      """,
    version: Version.text,
    subcommands: [
      Serve.self, Certs.self, Key.self, Token.self, Send.self, List.self, Get.self, Tail.self, Wait.self, Findings.self,
      Verify.self, Remove.self, Export.self,
      View.self, Exec.self,
      ProfileCommand.self, RuleCommand.self, FaultsCommand.self, Halt.self, Resume.self, Reset.self, Clock.self,
      Doctor.self,
      Healthcheck.self, OpenAPI.self,
      ConfigCommand.self, Completion.self, ShowVersion.self,
    ],
    defaultSubcommand: Serve.self)
}
