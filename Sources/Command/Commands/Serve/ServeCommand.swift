import ArgumentParser
import APNSMockClientCommands
import Logging

/// `apns-mock serve`
struct ServeCommand: AsyncParsableCommand, ServerCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve", abstract: "Run the server until SIGTERM or SIGINT.",
    discussion: """
      Each flag can also be set by an environment variable (--max-records is APNS_MOCK_MAX_RECORDS) and in the --config \
      file (max_records); flags override variables, variables override the file. APNS_MOCK_PROFILE_INLINE can contain the \
      text of a fault profile instead of its name. SIGHUP reloads the profiles.
      """)

  static let defaultDescriptions: [Setting: String] = [:]

  @OptionGroup var flags: ServeFlags<ServeCommand>

  @Flag(
    help: """
      Stop when standard input reaches its end. A test suite that holds the other end of a pipe then leaves no server \
      behind, even if it is killed.
      """)
  var exitOnStdinClose = false

  func run() async throws {
    let (settings, logger) = try flags.settings(Environment.variables)
    do {
      try await ServerRun(settings: settings, stopsAtEndOfInput: exitOnStdinClose, logger: logger).run()
    } catch let failure as CommandFailure where settings.logFormat == .json {
      // With JSON logs, the last line must be JSON too.
      logger.critical("\(failure)")
      throw ExitCode(failure.code)
    }
  }
}
