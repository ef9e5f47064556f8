import APNSRules
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
  mutating func set(_ setting: Setting, to values: [String]) throws(BadValue) {
    let value = values.first ?? ""
    if values.count != 1, !setting.isList {
      throw BadValue(value: values.joined(separator: ", "), allowed: "one value")
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

  private static func endpoints(_ values: [String]) throws(BadValue) -> [Endpoint] {
    guard !values.isEmpty else { throw BadValue(value: "", allowed: "at least one HOST:PORT") }
    var endpoints: [Endpoint] = []
    for value in values { endpoints.append(try Value.endpoint(value)) }
    return endpoints
  }

  private static func texts(_ values: [String], allowed: String) throws(BadValue) -> [String] {
    for value in values { _ = try Value.notEmpty(value, allowed: allowed) }
    return values
  }

  /// Validates an admin token: it is sent in an HTTP header, so it must consist of visible ASCII characters (RFC 6750
  /// section 2.1). The error message does not contain it.
  private static func token(_ text: String) throws(BadValue) -> String {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      throw BadValue(value: text.isEmpty ? "" : "…", allowed: "auto, or visible ASCII characters without spaces")
    }
    return text
  }
}
