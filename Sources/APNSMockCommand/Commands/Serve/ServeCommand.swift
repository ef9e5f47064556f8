import ArgumentParser
import ClientCommands
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
      Stop when standard input reaches its end. A test suite that holds the other end of a pipe then leaves no server behind,       even if it is killed.
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

/// A command that starts a server.
protocol ServerCommand {
  /// The defaults that differ from those of `serve`, for the help.
  static var defaultDescriptions: [Setting: String] { get }
}

extension ServerCommand {
  /// Returns the help of the flag for a setting.
  fileprivate static func help(_ setting: Setting) -> ArgumentHelp {
    let documentation = setting.documentation
    let text = setting.isList ? "\(documentation.text.dropLast()); repeatable." : documentation.text
    let standard =
      switch documentation.default {
      case .value("[]"): "none"
      case .value(let value): value
      case .other(let description, _): description
      }
    return "\(text) (default: \(defaultDescriptions[setting] ?? standard))"
  }
}

/// The flags of a command that starts a server, as text: they are parsed together with variables and the config file.
struct ServeFlags<Command: ServerCommand>: ParsableArguments {
  @Option(help: Command.help(.apns)) var apns: [String] = []
  @Option(help: Command.help(.apnsPlain)) var apnsPlain: [String] = []
  @Option(help: Command.help(.proxy)) var proxy: String?
  @Option(help: Command.help(.manage)) var manage: [String] = []
  @Option(help: Command.help(.admin)) var admin: String?
  @Option(help: Command.help(.certs)) var certs: String?
  @Option(help: Command.help(.profiles)) var profiles: String?
  @Option(help: Command.help(.profile)) var profile: String?
  @Option(help: Command.help(.seed)) var seed: String?
  @Option(help: Command.help(.environment)) var environment: String?
  @Option(help: Command.help(.rules)) var rules: String?
  @Option(help: Command.help(.topics)) var topics: String?
  @Option(help: Command.help(.maxRecords)) var maxRecords: String?
  @Option(help: Command.help(.maxBytes)) var maxBytes: String?
  @Option(help: Command.help(.record)) var record: String?
  @Option(help: Command.help(.store)) var store: String?
  @Option(help: Command.help(.durable)) var durable: String?
  @Option(help: Command.help(.storeFailure)) var storeFailure: String?
  @Option(help: Command.help(.retain)) var retain: String?
  @Option(help: Command.help(.advertise)) var advertise: String?
  @Option(help: Command.help(.fixtures)) var fixtures: [String] = []
  @Option(help: Command.help(.devices)) var devices: String?
  @Option(help: Command.help(.maxDevices)) var maxDevices: String?
  @Option(help: Command.help(.threads)) var threads: String?
  @Option(help: Command.help(.portFile)) var portFile: String?
  @Option(help: Command.help(.exportOnExit)) var exportOnExit: String?
  @Option(help: Command.help(.adminToken)) var adminToken: String?
  @Option(help: Command.help(.san)) var san: [String] = []
  @Option(help: Command.help(.allowHost)) var allowHost: [String] = []
  @Option(name: .customLong("client-ca"), help: Command.help(.clientCA)) var clientCA: [String] = []
  @Option(help: Command.help(.shutdownTimeout)) var shutdownTimeout: String?
  @Option(help: Command.help(.logFormat)) var logFormat: String?
  @Option(help: Command.help(.logLevel)) var logLevel: String?
  @Flag(name: .customLong("no-magic-tokens"), help: "Disable magic device tokens.") var noMagicTokens = false

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
    let lists: [Setting: [String]] = [
      .apns: apns, .apnsPlain: apnsPlain, .manage: manage, .fixtures: fixtures, .san: san, .allowHost: allowHost,
      .clientCA: clientCA,
    ]
    let texts: [Setting: String?] = [
      .proxy: proxy, .admin: admin, .certs: certs, .profiles: profiles, .profile: profile, .seed: seed,
      .environment: environment,
      .rules: rules, .topics: topics, .maxRecords: maxRecords, .maxBytes: maxBytes, .record: record, .devices: devices,
      .store: store, .durable: durable, .storeFailure: storeFailure, .retain: retain, .advertise: advertise,
      .maxDevices: maxDevices, .threads: threads, .portFile: portFile,
      .adminToken: adminToken, .shutdownTimeout: shutdownTimeout, .logFormat: logFormat, .logLevel: logLevel,
      .magicTokens: noMagicTokens ? "off" : nil, .exportOnExit: exportOnExit,
    ]
    return lists.filter { !$0.value.isEmpty }
      .merging(texts.compactMapValues { $0.map { [$0] } }) { given, _ in given }
  }
}

extension ServeFlags {
  /// Merges flags, variables and the config file, loads the fault profiles, creates the logger and logs warnings.
  ///
  /// - Parameters:
  ///   - defaults: The values of settings that are not specified.
  ///   - onlyByFlag: Settings that variables and the config file cannot set.
  /// - Throws: `CommandFailure` with one line per error.
  func settings(
    _ environment: [String: String], defaults: ServeSettings = ServeSettings(), onlyByFlag: Set<Setting> = []
  ) throws -> (ServeSettings, Logger) {
    var file = try (config ?? environment.given(EnvironmentVariables.config)).map { path in
      ConfigurationFile(path: path, yaml: try Files.text(of: path))
    }
    file?.remove(onlyByFlag)
    var environment = environment
    for setting in onlyByFlag { environment[setting.variable] = nil }
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
