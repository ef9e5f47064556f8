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
