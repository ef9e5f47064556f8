/// What `serve` can be told. Each has one name, which makes its flag, its variable and its key in the config file.
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

  /// `--max-records`; what is on unless somebody says no has a flag for that alone.
  var flag: String { (self == .magicTokens ? "--no-" : "--") + rawValue.replacing("_", with: "-") }

  /// `APNS_MOCK_MAX_RECORDS`.
  var variable: String { Variables.prefix + rawValue.uppercased() }

  /// Whether it takes several values: a repeated flag, a list in the file, commas in the variable.
  var isList: Bool {
    switch self {
    case .apns, .san, .allowHost, .clientCA: true
    default: false
    }
  }

  /// The values in a variable of a setting that takes several.
  static func list(_ text: String) -> [String] {
    text.split(separator: ",", omittingEmptySubsequences: false).map { String($0).trimmed }
  }
}
