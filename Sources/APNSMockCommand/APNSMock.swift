import ArgumentParser

/// The root of all commands.
///
/// Each of them says its name in `commandName`. Made from the name of the type, as the parser does otherwise for all commands
/// at once, it would be a tenth of the time that the program takes to start.
struct APNSMock: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "apns-mock",
    abstract:
      "A mock of the Apple Push Notification service: takes pushes, judges them as APNs would, keeps them to read.",
    discussion: """
      Without a command it serves. Every flag of serve has a variable (APNS_MOCK_ and its name) and a key in the --config \
      file; flags win over variables, variables over the file.

      Exit codes: 0 done, 1 a push was rejected, something is not as verify expects it, or an unexpected error, 2 a mistake in flags, settings or a fault profile, 3 a wait timed \
      out, 4 no server there or not ready, 5 inconclusive: pushes were dropped before they were looked at, 6 port in use, 130 stopped by a second signal; those of the program for exec.
      """,
    version: Version.text,
    subcommands: [
      Serve.self, Certs.self, Key.self, Token.self, Send.self, List.self, Get.self, Tail.self, Wait.self, Findings.self,
      Verify.self, Remove.self, Export.self,
      View.self, Exec.self,
      ProfileCommand.self, RuleCommand.self, Halt.self, Resume.self, Reset.self, Clock.self, Doctor.self,
      Healthcheck.self, OpenAPI.self,
      ConfigCommand.self, Completion.self, ShowVersion.self,
    ],
    defaultSubcommand: Serve.self)
}
