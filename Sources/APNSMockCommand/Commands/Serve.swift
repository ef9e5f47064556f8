import ArgumentParser
import Logging

/// `apns-mock serve`
struct Serve: AsyncParsableCommand, ServerCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve", abstract: "Take pushes as APNs does, until a signal comes.",
    discussion: """
      Each flag can also be given as a variable (--max-records is APNS_MOCK_MAX_RECORDS) and in the --config file \
      (max_records); flags win over variables, variables over the file. APNS_MOCK_PROFILE_INLINE can hold the text of a \
      fault profile in place of its name. SIGHUP has the profiles read again.
      """)

  static let shownDefaults = ShownDefaults(
    apns: "127.0.0.1:2197", admin: "127.0.0.1:8197", certs: "Certs", logLevel: "info")

  @OptionGroup var flags: ServeFlags<Serve>

  func run() async throws {
    let (settings, logger) = try flags.settings(Environment.variables)
    do {
      try await ServerRun(settings: settings, logger: logger).run()
    } catch let failure as CommandFailure where settings.logFormat == .json {
      // Whoever reads the log as JSON gets the last line as JSON too.
      logger.critical("\(failure)")
      throw ExitCode(failure.code)
    }
  }
}
