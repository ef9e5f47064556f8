import ArgumentParser
import Logging

extension ServeFlags {
  /// Merges flags, variables and the config file, loads the fault profiles, creates the logger and logs warnings.
  ///
  /// - Parameters:
  ///   - defaults: The values of settings that are not specified.
  ///   - flagsAlone: Settings that variables and the config file cannot set.
  /// - Throws: `CommandFailure` with one line per error.
  func settings(
    _ environment: [String: String], defaults: ServeSettings = ServeSettings(), flagsAlone: Set<Setting> = []
  ) throws -> (ServeSettings, Logger) {
    var file = try (config ?? environment.given(Variables.config)).map { path in
      ConfigurationFile(path: path, yaml: try Files.text(of: path))
    }
    file?.leaveOut(flagsAlone)
    var environment = environment
    for setting in flagsAlone { environment[setting.variable] = nil }
    let sources = SettingSources(
      flags: given, environment: environment, file: file, defaults: defaults, readFile: Files.text)
    let result = sources.merged()
    guard result.errors.isEmpty else {
      throw CommandFailure(.usage, result.errors.map(\.description).joined(separator: "\n"))
    }
    var settings = result.settings
    let remarks = try settings.readProfiles()
    let logger = Logger(label: "apns-mock") { [settings] _ in
      LineLogHandler(format: settings.logFormat, level: settings.logLevel)
    }
    for warning in result.warnings + remarks.warnings { logger.warning("\(warning)") }
    for notice in remarks.notices { logger.notice("\(notice)") }
    return (settings, logger)
  }
}
