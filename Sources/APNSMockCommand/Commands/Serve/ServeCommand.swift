import ArgumentParser
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

  static let shownDefaults = ShownDefaults(
    apns: "127.0.0.1:2197", admin: "127.0.0.1:8197", certs: "Certs", logLevel: "info")

  @OptionGroup var flags: ServeFlags<ServeCommand>

  func run() async throws {
    let (settings, logger) = try flags.settings(Environment.variables)
    do {
      try await ServerRun(settings: settings, logger: logger).run()
    } catch let failure as CommandFailure where settings.logFormat == .json {
      // With JSON logs, the last line must be JSON too.
      logger.critical("\(failure)")
      throw ExitCode(failure.code)
    }
  }
}

/// A command that starts a server, with its own default values in the help.
protocol ServerCommand {
  static var shownDefaults: ShownDefaults { get }
}

/// The help's descriptions of default values that differ between server commands.
struct ShownDefaults {
  let apns: String
  let admin: String
  let certs: String
  let logLevel: String
}

/// The flags of a command that starts a server, as text: they are parsed together with variables and the config file.
struct ServeFlags<Command: ServerCommand>: ParsableArguments {
  @Option(
    help: """
      The listener for providers, HOST:PORT; repeatable, port 0 selects a free one. \
      (default: \(Command.shownDefaults.apns))
      """)
  var apns: [String] = []

  @Option(help: "The listener for the admin API and web UI, HOST:PORT. (default: \(Command.shownDefaults.admin))")
  var admin: String?

  @Option(
    help: "The folder of certificates and keys, filled at the first start. (default: \(Command.shownDefaults.certs))")
  var certs: String?

  @Option(help: "A folder with fault profiles, *.yaml, in addition to the built-in ones. (default: none)")
  var profiles: String?

  @Option(help: "The initial fault profile: 'flaky-503?rate=0.5' or a file. (default: healthy)")
  var profile: String?

  @Option(help: "The seed, for repeatable ids and faults. (default: random, printed)")
  var seed: String?

  @Option(help: "The environment of APNs: sandbox or production. (default: sandbox)")
  var environment: String?

  @Option(help: "The behavior where APNs is not documented: apple, strict or lenient. (default: apple)")
  var rules: String?

  @Option(help: "The maximum number of pushes in the inbox. (default: 100000)")
  var maxRecords: String?

  @Option(help: "The memory limit of the inbox, such as 64MiB. (default: 256MiB)")
  var maxBytes: String?

  @Option(help: "Worker threads. (default: one per core)")
  var threads: String?

  @Option(help: "Write addresses and paths for clients to this file when ready.")
  var portFile: String?

  @Option(
    help: "Export the inbox to this file at the end: one record per line, or an array if it ends in .json.")
  var exportOnExit: String?

  @Option(help: "The bearer token the admin listener requires; auto generates one. (default: none)")
  var adminToken: String?

  @Option(help: "An additional name in the server certificate; repeatable.")
  var san: [String] = []

  @Option(help: "A host name the admin listener accepts in addition to loopback, addresses and apns-mock; repeatable.")
  var allowHost: [String] = []

  @Option(name: .customLong("client-ca"), help: "A PEM file with an additional CA for client certificates; repeatable.")
  var clientCA: [String] = []

  @Option(help: "How long a shutdown waits for open streams. (default: 5s)")
  var shutdownTimeout: String?

  @Option(help: "The format of log lines: text or json. (default: text)")
  var logFormat: String?

  @Option(
    help:
      "The minimum log level: trace, debug, info, notice, warning or error. (default: \(Command.shownDefaults.logLevel))"
  )
  var logLevel: String?

  @Flag(name: .customLong("no-magic-tokens"), help: "Disable magic device tokens.")
  var noMagicTokens = false

  @Option(
    help: "A YAML file with settings: the flag names with _ instead of -, and apns: with the limits of APNs.")
  var config: String?

  // Not a setting: a common name of the flag in other servers, accepted to suggest the right one.
  @Option(help: .hidden)
  var port: String?

  func validate() throws {
    guard let port else { return }
    let address = Int(port).map { "127.0.0.1:\($0)" } ?? "HOST:PORT"
    throw ValidationError("Unknown option '--port'. Did you mean '--apns \(address)'?")
  }

  /// The values of the specified flags.
  var given: [Setting: [String]] {
    let lists: [(Setting, [String])] = [
      (.apns, apns), (.san, san), (.allowHost, allowHost), (.clientCA, clientCA),
    ]
    let texts: [(Setting, String?)] = [
      (.admin, admin), (.certs, certs), (.profiles, profiles), (.profile, profile), (.seed, seed),
      (.environment, environment), (.rules, rules),
      (.maxRecords, maxRecords), (.maxBytes, maxBytes), (.threads, threads), (.portFile, portFile),
      (.adminToken, adminToken), (.shutdownTimeout, shutdownTimeout), (.logFormat, logFormat), (.logLevel, logLevel),
      (.magicTokens, noMagicTokens ? "off" : nil), (.exportOnExit, exportOnExit),
    ]
    var given: [Setting: [String]] = [:]
    for (setting, values) in lists where !values.isEmpty { given[setting] = values }
    for (setting, value) in texts { given[setting] = value.map { [$0] } }
    return given
  }
}

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
