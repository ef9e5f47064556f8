import ArgumentParser
import Logging

/// `apns-mock serve`
struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Take pushes as APNs does, until a signal comes.",
    discussion: """
      Each flag can also be given as a variable (--max-records is APNS_MOCK_MAX_RECORDS) and in the --config file \
      (max_records); flags win over variables, variables over the file. APNS_MOCK_PROFILE_INLINE can hold the text of a \
      fault profile in place of its name. SIGHUP has the profiles read again.
      """)

  @OptionGroup var flags: ServeFlags

  func run() async throws {
    var (settings, warnings) = try gathered(Environment.variables)
    let remarks = try settings.readProfiles()
    let (format, level) = (settings.logFormat, settings.logLevel)
    let logger = Logger(label: "apns-mock") { _ in
      LineLogHandler(format: format, level: level)
    }
    for warning in warnings + remarks.warnings { logger.warning("\(warning)") }
    for notice in remarks.notices { logger.notice("\(notice)") }
    do {
      try await ServerRun(settings: settings, logger: logger).run()
    } catch let failure as CommandFailure where settings.logFormat == .json {
      // Whoever reads the log as JSON gets the last line as JSON too.
      logger.critical("\(failure)")
      throw ExitCode(failure.status.rawValue)
    }
  }

  /// What flags, variables and config file say together.
  ///
  /// - Throws: `CommandFailure` with everything that is wrong in them, a line each.
  private func gathered(_ environment: [String: String]) throws -> (ServeSettings, warnings: [String]) {
    let file = try (flags.config ?? environment.given(Variables.config)).map { path in
      ConfigurationFile(path: path, yaml: try Files.text(of: path))
    }
    let sources = SettingSources(
      flags: flags.given, environment: environment, file: file, readFile: Files.text)
    let result = sources.merged()
    guard result.errors.isEmpty else {
      throw CommandFailure(.usage, result.errors.map(\.description).joined(separator: "\n"))
    }
    return (result.settings, result.warnings)
  }
}
