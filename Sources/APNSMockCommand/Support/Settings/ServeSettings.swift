import APNSRules
import FaultModel
import Faults
import Logging
import MockAPNS
import Notation

/// The format of log lines.
enum LogFormat: String, CaseIterable, Sendable {
  /// Text for people.
  case text
  /// One JSON object per line.
  case json
}

/// The settings of `serve`, merged from flags, variables and the config file.
struct ServeSettings: Sendable {
  /// The configuration of the server.
  var configuration = Configuration()
  /// The initial fault profile; nil for the one without faults.
  var profile: ProfileChoice?
  /// Whether to generate an admin token (`--admin-token auto`).
  var drawsAdminToken = false
  /// The path of the port file to write.
  var portFile: String?
  /// The path to export the inbox to when the server stops.
  var exportOnExit: String?
  /// The format of log lines.
  var logFormat = LogFormat.text
  /// The minimum log level.
  var logLevel = Logger.Level.info
}

extension ServeSettings {
  /// The value that requests a generated admin token.
  static let drawnToken = "auto"

  /// Sets one setting.
  ///
  /// - Parameter values: Exactly one value, except for settings that are lists.
  mutating func set(_ setting: Setting, to values: [String]) throws(InvalidSettingValue) {
    let value = values.first ?? ""
    if values.count != 1, !setting.isList {
      throw InvalidSettingValue(value: values.joined(separator: ", "), allowed: "one value")
    }
    switch setting {
    case .apns: configuration.apns = try Self.endpoints(values)
    case .admin: configuration.admin = try Value.endpoint(value)
    case .certs: configuration.certificates = try Value.notEmpty(value, allowed: "a folder")
    case .profiles: configuration.profilesFolder = try Value.notEmpty(value, allowed: "a folder with fault profiles")
    case .profile:
      profile = try ProfileChoice(try Value.notEmpty(value, allowed: ProfileChoice.allowed), from: setting.flag)
    case .seed: configuration.seed = try Value.seed(value)
    case .environment: configuration.environment = try Value.word(value, of: PushEnvironment.self)
    case .rules: configuration.rules = try Value.word(value, of: RuleMode.self)
    case .maxRecords: configuration.maxRecords = try Value.whole(value, in: 1...Int.max)
    case .maxBytes: configuration.maxBytes = try Value.size(value)
    case .threads: configuration.threads = try Value.whole(value, in: 1...1024)
    case .portFile: portFile = try Value.notEmpty(value, allowed: "the path of a file")
    case .adminToken:
      drawsAdminToken = value == Self.drawnToken
      configuration.adminToken = drawsAdminToken ? nil : try Self.token(value)
    case .san: configuration.certificateNames = try Self.texts(values, allowed: "a host name or an IP address")
    case .allowHost: configuration.allowedHosts = try Self.texts(values, allowed: "a host name")
    case .clientCA: configuration.clientAuthorities = try Self.texts(values, allowed: "a PEM file with CA certificates")
    case .shutdownTimeout: configuration.shutdownTimeout = try Value.duration(value)
    case .logFormat: logFormat = try Value.word(value, of: LogFormat.self)
    case .logLevel: logLevel = try Value.word(value, of: Logger.Level.self)
    case .exportOnExit: exportOnExit = try Value.notEmpty(value, allowed: "the path of a file")
    case .magicTokens: configuration.magicTokens = try Value.onOrOff(value)
    }
  }

  private static func endpoints(_ values: [String]) throws(InvalidSettingValue) -> [Endpoint] {
    guard !values.isEmpty else { throw InvalidSettingValue(value: "", allowed: "at least one HOST:PORT") }
    var endpoints: [Endpoint] = []
    for value in values { endpoints.append(try Value.endpoint(value)) }
    return endpoints
  }

  private static func texts(_ values: [String], allowed: String) throws(InvalidSettingValue) -> [String] {
    for value in values { _ = try Value.notEmpty(value, allowed: allowed) }
    return values
  }

  /// Validates an admin token: it is sent in an HTTP header, so it must consist of visible ASCII characters (RFC 6750
  /// section 2.1). The error message does not contain it.
  private static func token(_ text: String) throws(InvalidSettingValue) -> String {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      throw InvalidSettingValue(
        value: text.isEmpty ? "" : "…", allowed: "auto, or visible ASCII characters without spaces")
    }
    return text
  }
}

extension ServeSettings {
  /// Remarks about valid fault profiles.
  struct ProfileRemarks {
    /// The warnings.
    var warnings: [String] = []
    /// Information about correct but possibly unexpected facts.
    var notices: [String] = []
  }

  /// Loads the folder of fault profiles and the initial profile.
  ///
  /// - Throws: `CommandFailure` with one line per problem.
  mutating func readProfiles() throws -> ProfileRemarks {
    var remarks = ProfileRemarks()
    var lines: [String] = []
    var hasErrors = false
    func take(_ problems: [ProfileProblem], _ line: (ProfileProblem) -> String) {
      lines += problems.map(line)
      if problems.contains(where: { $0.severity == .error }) { hasErrors = true }
    }
    if let folder = configuration.profilesFolder {
      let reading = configuration.profiles.reloading(folder: folder)
      configuration.profiles = reading.library
      remarks.notices = reading.notices
      take(reading.problems) { $0.words(from: $0.file == folder ? Setting.profiles.flag : nil) }
    }
    // The name may refer to an invalid file of the folder, whose problems are already reported.
    if let profile, !(hasErrors && profile.isName) {
      do throws(ProfileFailure) {
        let (chosen, warnings) = try profile.loaded(from: configuration.profiles)
        configuration.profile = chosen
        take(warnings.filter { !lines.contains(profile.line($0)) }, profile.line)
      } catch {
        take(error.problems.filter { !lines.contains(profile.line($0)) }, profile.line)
      }
    }
    guard !hasErrors else { throw CommandFailure(.usage, lines: lines) }
    remarks.warnings = lines
    return remarks
  }
}

/// The settings of `serve`. The raw value determines the flag, the variable and the key in the config file.
enum Setting: String, CaseIterable, Sendable {
  case apns, admin, certs, profiles, profile, seed, environment, rules
  case maxRecords = "max_records"
  case maxBytes = "max_bytes"
  case threads
  case portFile = "port_file"
  case adminToken = "admin_token"
  case san
  case allowHost = "allow_host"
  case clientCA = "client_ca"
  case shutdownTimeout = "shutdown_timeout"
  case logFormat = "log_format"
  case logLevel = "log_level"
  case magicTokens = "magic_tokens"
  case exportOnExit = "export_on_exit"

  /// The key in the config file.
  var key: String { rawValue }

  /// The flag, such as `--max-records`. A setting that is on by default has only a flag to turn it off.
  var flag: String { (self == .magicTokens ? "--no-" : "--") + rawValue.replacing("_", with: "-") }

  /// The environment variable, such as `APNS_MOCK_MAX_RECORDS`.
  var variable: String { Variables.prefix + rawValue.uppercased() }

  /// Whether the setting accepts several values: a repeated flag, a list in the file, commas in the variable.
  var isList: Bool {
    switch self {
    case .apns, .san, .allowHost, .clientCA: true
    default: false
    }
  }

  /// Returns the values in the variable of a setting that is a list.
  static func list(_ text: String) -> [String] {
    text.split(separator: ",", omittingEmptySubsequences: false).map { String($0).trimmed }
  }
}
