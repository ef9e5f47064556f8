import APNSMockRules
import APNSMockClientCommands

/// A commented configuration file with every setting and its default.
enum SampleConfiguration {
  /// The content of the file. `ConfigurationFile` parses it without errors, and its values are the defaults.
  static var yaml: String {
    var lines = [
      "# Settings of apns-mock serve. Each value is the default; commented-out settings have no default.", "",
    ]
    for setting in Setting.allCases where setting != .apns {
      lines += entry(setting.key, setting.documentation)
    }
    lines += ["# Listeners for providers, and the limits of APNs.", "apns:"]
    lines += entry(ConfigurationFile.listen, Setting.apns.documentation, indent: "  ")
    for setting in APNSSetting.allCases {
      lines += entry(setting.rawValue, documentation(setting), indent: "  ")
    }
    return lines.dropLast().joined(separator: "\n") + "\n"
  }

  private static func entry(_ key: String, _ documentation: SettingDocumentation, indent: String = "") -> [String] {
    switch documentation.default {
    case .value(let value): ["\(indent)# \(documentation.text)", "\(indent)\(key): \(value)", ""]
    case .other(let description, let example):
      ["\(indent)# \(documentation.text) Default: \(description).", "\(indent)# \(key): \(example)", ""]
    }
  }

  private static func documentation(_ setting: APNSSetting) -> SettingDocumentation {
    let settings = APNSSettings()
    return switch setting {
    case .tokenMaxAge: .init("The maximum age of a provider token.", .duration(settings.tokenMaxAge))
    case .tokenFuture:
      .init("How far in the future `iat` may be.", .other("apple 1h, strict 5m, lenient any", example: "1h"))
    case .tokenUpdateInterval:
      .init("The minimum time between two provider tokens.", .duration(settings.tokenUpdateInterval))
    case .freeTokenUpdates:
      .init(
        "How many faster token changes are accepted before TooManyProviderTokenUpdates.",
        .value("\(settings.freeTokenUpdates)"))
    case .tokenUpdateScope:
      .init("What token changes are counted for: connection or team.", .value(settings.tokenUpdateScope.rawValue))
    case .idleTimeout: .init("How long a connection may be idle before GOAWAY.", .duration(settings.idleTimeout))
    case .firstStreams:
      .init("MAX_CONCURRENT_STREAMS of the first SETTINGS in token mode.", .value("\(settings.firstStreams)"))
    case .maxStreams:
      .init("MAX_CONCURRENT_STREAMS after the first accepted provider token.", .value("\(settings.maxStreams)"))
    case .expiredTokenCloses:
      .init(
        "Whether all requests after ExpiredProviderToken are rejected with it.",
        .other("lenient false, else true", example: "true"))
    case .abandonedAfter:
      .init(
        "How long a retryable push can remain without another attempt before the finding abandoned.",
        .duration(settings.abandonedAfter))
    case .throttleOn4xx:
      .init("Whether a rejection reduces MAX_CONCURRENT_STREAMS to 1.", .value("\(settings.throttleOn4xx)"))
    case .environmentKeyReason:
      .init("The reason for a key of the other environment.", .value(settings.environmentKeyReason.text))
    case .errorContentType:
      .init("Whether error responses have a content-type.", .value("\(settings.errorContentType)"))
    case .deviceRate: .init("The rate limit per device token, such as 5/1s, or off.", .value("off"))
    case .errorsBeforeGoaway:
      .init("The number of rejections after which a connection is closed with GOAWAY, or off.", .value("off"))
    case .unregisteredDelay:
      .init(
        "How long after the first push to a removed app 410 Unregistered begins.", .duration(settings.unregisteredDelay)
      )
    case .onlineQueue:
      .init(
        "Whether an online device loses a push if the next one arrives before it has acknowledged it: 1, or off.",
        .value("off"))
    case .acknowledgeAfter:
      .init("How long an online device takes to acknowledge a push.", .duration(settings.acknowledgeAfter))
    case .backgroundBudget:
      .init("The background pushes that an app on a device handles, such as 3/1h, or off.", .value("off"))
    case .liveActivityBudget:
      .init("The Live Activity updates that an app on a device handles, such as 20/1h, or off.", .value("off"))
    case .pushToStartBudget:
      .init("The Live Activities that pushes can start for an app on a device, such as 10/1h, or off.", .value("off"))
    case .unregisteredAfter:
      .init(
        "How long pushes to an unregistered device are still accepted.", .duration(settings.unregisteredAfter))
    }
  }
}
