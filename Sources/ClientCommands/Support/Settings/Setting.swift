import APNSMockRules
package import MockAPNS
package import APNSMockNotation

/// The settings of `serve`. The raw value determines the flag, the variable and the key in the config file.
///
/// A new setting needs a case here, its documentation and parser in `ServeSettings.swift`, and a flag in `ServeFlags`.
package enum Setting: String, CaseIterable, Sendable {
  case apns
  case apnsPlain = "apns_plain"
  case proxy, manage, admin, certs, profiles, profile, seed, environment, rules, topics
  case maxRecords = "max_records"
  case maxBytes = "max_bytes"
  case record
  case store, durable
  case storeFailure = "store_failure"
  case retain, advertise
  case fixtures, devices
  case maxDevices = "max_devices"
  case threads
  case portFile = "port_file"
  case adminToken = "admin_token"
  case san
  case allowHost = "allow_host"
  case clientCA = "client_ca"
  case upstream
  case upstreamCA = "upstream_ca"
  case upstreamCert = "upstream_cert"
  case upstreamKey = "upstream_key"
  case upstreamConnections = "upstream_connections"
  case allowTopics = "allow_topics"
  case allowTokens = "allow_tokens"
  case learn
  case shutdownTimeout = "shutdown_timeout"
  case logFormat = "log_format"
  case logLevel = "log_level"
  case magicTokens = "magic_tokens"
  case exportOnExit = "export_on_exit"
  case webhook
  case webhookCA = "webhook_ca"
  case webhookFilter = "webhook_filter"
  case webhookPayload = "webhook_payload"
  case webhookAnywhere = "webhook_anywhere"

  /// The key in the config file.
  package var key: String { rawValue }

  /// The flag, such as `--max-records`. A setting that is on by default has only a flag to turn it off.
  package var flag: String {
    (self == .magicTokens || self == .learn ? "--no-" : "--") + rawValue.replacing("_", with: "-")
  }

  /// The environment variable, such as `APNS_MOCK_MAX_RECORDS`.
  package var variable: String { EnvironmentVariables.prefix + rawValue.uppercased() }

  /// Whether the setting accepts several values: a repeated flag, a list in the file, commas in the variable.
  package var isList: Bool {
    switch self {
    case .apns, .apnsPlain, .manage, .fixtures, .san, .allowHost, .clientCA, .upstreamCA, .webhookCA, .allowTopics,
      .allowTokens:
      true
    default: false
    }
  }

  /// The value of `adminToken` that requests a generated token.
  package static let generatedToken = "auto"

  /// Returns the values in the variable of a setting that is a list.
  package static func list(_ text: String) -> [String] {
    text.split(separator: ",", omittingEmptySubsequences: false).map { String($0).trimmed }
  }
}

/// Parsers of addresses that only the command line has.
extension Value {
  package static func endpoint(_ text: String) throws(InvalidSettingValue) -> MockServer.Endpoint {
    guard let endpoint = MockServer.Endpoint(text) else {
      throw InvalidSettingValue(
        value: text, allowed: portProblem(text) ?? "HOST:PORT such as 127.0.0.1:2197, [::1]:2197 or localhost:0")
    }
    return endpoint
  }

  /// Returns what is expected instead of a URL, or of a port that is out of range; nil for any other mistake.
  private static func portProblem(_ text: some StringProtocol) -> String? {
    if text.contains("://") { return "HOST:PORT without a scheme, such as 127.0.0.1:2197" }
    guard let colon = text.lastIndex(of: ":"), text[..<colon].last != ":" else { return nil }
    let port = text[text.index(after: colon)...]
    guard !port.isEmpty, port.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2D }) else { return nil }
    return Int(port).map { (0...65535).contains($0) } == true
      ? nil : "a port from 0 to 65535 after the colon (0 selects a free one)"
  }

  /// Parses `HOST:PORT[=ENVIRONMENT][+proxy-protocol]`.
  ///
  /// - Parameter allowsProxyProtocol: Whether the listener may be behind a TCP balancer.
  package static func listener(
    _ text: String, allowsProxyProtocol: Bool = false
  ) throws(InvalidSettingValue) -> ListenerAddress {
    let suffix = "+proxy-protocol"
    let hasProxyProtocol = allowsProxyProtocol && text.hasSuffix(suffix)
    let parts = text.dropLast(hasProxyProtocol ? suffix.count : 0).split(
      separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let environment = parts.count == 2 ? PushEnvironment(rawValue: String(parts[1])) : nil
    guard let endpoint = MockServer.Endpoint(parts[0]), parts.count == 1 || environment != nil else {
      let order = allowsProxyProtocol ? ", then \(suffix) if needed" : ""
      let forms =
        parts.count == 2
        ? "HOST:PORT=sandbox or HOST:PORT=production\(order)"
        : "HOST:PORT such as 127.0.0.1:2197, [::1]:2197, localhost:0 or 127.0.0.1:2198=production\(order)"
      throw InvalidSettingValue(value: text, allowed: portProblem(parts[0]) ?? forms)
    }
    return ListenerAddress(endpoint, environment: environment, hasProxyProtocol: hasProxyProtocol)
  }
}
