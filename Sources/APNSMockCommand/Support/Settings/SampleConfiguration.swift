import APNSRules
import MockAPNS
import Notation

/// A commented configuration file with every setting and its default.
enum SampleConfiguration {
  /// The content of the file. `ConfigurationFile` parses it without errors, and its values are the defaults.
  static var yaml: String {
    var lines = [
      "# Settings of apns-mock serve. Each value is the default; commented-out settings have no default.", "",
    ]
    for setting in Setting.allCases where setting != .apns {
      let (description, value) = entry(setting)
      append(setting.key, description, value, to: &lines, indent: "")
    }
    lines += ["# Listeners for providers, and the limits of APNs.", "apns:"]
    let addresses = Configuration().apns.map(\.description)
    append(
      ConfigurationFile.listen, "The listener for providers: HOST:PORT, or a list of them; port 0 selects a free one.",
      .active(addresses.count == 1 ? addresses[0] : "[\(addresses.joined(separator: ", "))]"), to: &lines, indent: "  ")
    for setting in APNSSetting.allCases {
      let (description, value) = entry(setting)
      append(setting.rawValue, description, value, to: &lines, indent: "  ")
    }
    if lines.last?.isEmpty == true { lines.removeLast() }
    return lines.joined(separator: "\n") + "\n"
  }

  /// A value as YAML.
  private enum Value {
    /// The default.
    case active(String)
    /// An example for a setting without a default.
    case example(String)
  }

  private static func append(
    _ key: String, _ description: String, _ value: Value, to lines: inout [String], indent: String
  ) {
    lines.append("\(indent)# \(description)")
    switch value {
    case .active(let text): lines.append("\(indent)\(key): \(text)")
    case .example(let text): lines.append("\(indent)# \(key): \(text)")
    }
    lines.append("")
  }

  private static func entry(_ setting: Setting) -> (String, Value) {
    let settings = ServeSettings()
    let configuration = settings.configuration
    return switch setting {
    case .apns: ("The listener for providers, HOST:PORT.", .active(configuration.apns.description))
    case .admin:
      (
        "The listener for the admin API and web UI, HOST:PORT.",
        configuration.admin.map { .active($0.description) } ?? .example("127.0.0.1:8197")
      )
    case .certs:
      ("The folder of certificates and keys, filled at the first start.", .active(configuration.certificates))
    case .profiles:
      ("A folder with fault profiles, *.yaml, in addition to the built-in ones.", .example("FaultProfiles"))
    case .profile: ("The initial fault profile: a name with parameters, or a file.", .active("healthy"))
    case .seed: ("The seed, for repeatable ids and faults; random if absent.", .example("7"))
    case .environment: ("The environment of APNs: sandbox or production.", .active(configuration.environment.rawValue))
    case .rules:
      (
        "The behavior where APNs is not documented: apple, strict or lenient.",
        .active(configuration.rules.rawValue)
      )
    case .maxRecords: ("The maximum number of pushes in the inbox.", .active(String(configuration.maxRecords)))
    case .maxBytes: ("The memory limit of the inbox.", .active("\(configuration.maxBytes >> 20)MiB"))
    case .threads: ("Worker threads; one per core if absent.", .example("2"))
    case .portFile:
      ("A file for the addresses and paths that clients need, written when ready.", .example("ports.json"))
    case .adminToken:
      ("The bearer token the admin listener requires; auto generates one.", .example("auto"))
    case .san: ("Additional names in the server certificate.", .active("[]"))
    case .allowHost:
      ("Host names the admin listener accepts in addition to loopback, addresses and apns-mock.", .active("[]"))
    case .clientCA: ("PEM files with additional CAs of client certificates.", .active("[]"))
    case .shutdownTimeout:
      ("How long a shutdown waits for open streams.", .active(DurationFormat.text(configuration.shutdownTimeout)))
    case .logFormat: ("The format of log lines: text or json.", .active(settings.logFormat.rawValue))
    case .logLevel:
      ("The minimum log level: trace, debug, info, notice, warning or error.", .active("\(settings.logLevel)"))
    case .magicTokens:
      ("Whether magic device tokens are enabled.", .active(configuration.magicTokens ? "on" : "off"))
    case .exportOnExit: ("A file the inbox is exported to at the end.", .example("run.ndjson"))
    }
  }

  private static func entry(_ setting: APNSSetting) -> (String, Value) {
    let settings = APNSSettings()
    return switch setting {
    case .tokenMaxAge: ("The maximum age of a provider token.", .active(DurationFormat.text(settings.tokenMaxAge)))
    case .tokenFuture:
      (
        "How far in the future `iat` may be. Default by mode: apple 1h, strict 5m, lenient any.",
        settings.tokenFuture.map { .active(DurationFormat.text($0)) } ?? .example("1h")
      )
    case .tokenUpdateInterval:
      (
        "The minimum time between two provider tokens.",
        .active(DurationFormat.text(settings.tokenUpdateInterval))
      )
    case .freeTokenUpdates:
      (
        "How many faster token changes are accepted before TooManyProviderTokenUpdates.",
        .active("\(settings.freeTokenUpdates)")
      )
    case .idleTimeout:
      ("How long a connection may be idle before GOAWAY.", .active(DurationFormat.text(settings.idleTimeout)))
    case .firstStreams:
      ("MAX_CONCURRENT_STREAMS of the first SETTINGS in token mode.", .active("\(settings.firstStreams)"))
    case .maxStreams:
      ("MAX_CONCURRENT_STREAMS after the first accepted provider token.", .active("\(settings.maxStreams)"))
    case .expiredTokenCloses:
      (
        "Whether all requests after ExpiredProviderToken are rejected with it. Default by mode: lenient false, else true.",
        settings.expiredTokenCloses.map { .active("\($0)") } ?? .example("true")
      )
    case .abandonedAfter:
      (
        "How long a retryable push can remain without another attempt before the finding abandoned.",
        .active(DurationFormat.text(settings.abandonedAfter))
      )
    case .throttleOn4xx:
      ("Whether a rejection reduces MAX_CONCURRENT_STREAMS to 1.", .active("\(settings.throttleOn4xx)"))
    case .environmentKeyReason:
      ("The reason for a key of the other environment.", .active(settings.environmentKeyReason.text))
    case .errorContentType:
      ("Whether error responses have a content-type.", .active("\(settings.errorContentType)"))
    case .deviceRate:
      (
        "The rate limit per device token, such as 5/1s, or off.",
        .active(settings.deviceRate.map { "\($0.count)/\(DurationFormat.text($0.per))" } ?? "off")
      )
    case .errorsBeforeGoaway:
      (
        "The number of rejections after which a connection is closed with GOAWAY, or off.",
        .active(settings.errorsBeforeGoaway.map(String.init) ?? "off")
      )
    case .unregisteredAfter:
      (
        "How long pushes to an unregistered device are still accepted.",
        .active(DurationFormat.text(settings.unregisteredAfter))
      )
    }
  }
}
