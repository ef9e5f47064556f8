import APNSMockAdminAPI
import APNSMockRules
import APNSMockClientCommands
import APNSMockFaults
import APNSMockInbox
import Logging
import MockAPNS
import APNSMockNotation

// MARK: - Documentation

/// The documentation of a setting, for the help and the sample configuration.
struct SettingDocumentation {
  /// The effect if the setting is not specified.
  enum Default {
    /// The effect of this value.
    case value(String)
    /// An effect that no value has, described for people. The example is a valid value.
    case other(String, example: String)

    static func duration(_ duration: Duration) -> Default { .value(DurationFormat.text(duration)) }
  }

  let text: String
  let `default`: Default

  init(_ text: String, _ standard: Default) {
    self.text = text
    self.default = standard
  }
}

extension Setting {
  /// The documentation. The default values are literals, because the help's texts are created at each start.
  var documentation: SettingDocumentation {
    switch self {
    case .apns:
      .init(
        "The listener for providers, HOST:PORT; port 0 selects a free one; HOST:PORT=production names its environment; HOST:PORT+proxy-protocol behind a TCP balancer.",
        .value("127.0.0.1:2197"))
    case .apnsPlain:
      .init(
        "The listener for providers that use http://, HOST:PORT: HTTP/2 with prior knowledge, and HTTP/1.1.",
        .other("none", example: "127.0.0.1:2198"))
    case .proxy:
      .init(
        "The listener of an HTTP CONNECT proxy for Apple's push hosts, HOST:PORT.",
        .other("none", example: "127.0.0.1:2199"))
    case .manage:
      .init(
        "The listener for broadcasts and channel management only, HOST:PORT or HOST:PORT=production.",
        .other("none", example: "127.0.0.1:2195"))
    case .admin: .init("The listener for the admin API and web UI, HOST:PORT.", .value("127.0.0.1:8197"))
    case .certs: .init("The folder of certificates and keys, filled at the first start.", .value("Certs"))
    case .profiles:
      .init(
        "A folder with fault profiles, *.yaml, in addition to the built-in ones.",
        .other("none", example: "FaultProfiles"))
    case .profile:
      .init(
        "The initial fault profile: a name with parameters such as 'flaky-503?rate=0.5', or a file.", .value("healthy"))
    case .seed: .init("The seed, for repeatable ids and faults.", .other("random, printed", example: "7"))
    case .environment:
      .init("The environment of listeners that name none: sandbox or production.", .value("sandbox"))
    case .rules: .init("The behavior where APNs is not documented: apple, strict or lenient.", .value("apple"))
    case .topics:
      .init("The topics that are accepted: any, or known: those of known apps of the credential's team.", .value("any"))
    case .maxRecords:
      .init(
        "The maximum number of pushes in the inbox.", .other("100000, unlimited with --store", example: "100000"))
    case .maxBytes:
      .init("The size limit of the inbox, such as 64MiB.", .other("256MiB, unlimited with --store", example: "256MiB"))
    case .record:
      .init(
        "The pushes in the inbox: all, sample=1/N for one of N with its attempts, or counters for none.",
        .value("all"))
    case .store:
      .init("Where pushes are kept: memory, sqlite:FILE, or postgres://… (one server is active).", .value("memory"))
    case .durable:
      .init(
        "With --store: send the response at once (soon), or when the push is on the disk (answer).", .value("soon"))
    case .storeFailure:
      .init(
        "While the store fails: answer 503 (refuse), or answer as usual and lose the pushes (drop).", .value("refuse"))
    case .retain:
      .init("With --store: the age after which pushes are removed, such as 7d.", .other("keep all", example: "7d"))
    case .advertise:
      .init(
        "With --store postgres://…: the URL of this server's admin API, which standby servers name.",
        .other("the address of --admin, unless it is loopback or a wildcard", example: "http://mock-1:8197"))
    case .fixtures:
      .init(
        "Files with the apps, devices and channels that exist, YAML or JSON; a reset restores them.", .value("[]"))
    case .devices:
      .init(
        "The device tokens that pushes are accepted for: any, or known for those that are registered.", .value("any"))
    case .maxDevices:
      .init("The maximum number of devices, and of device tokens registered without one.", .value("1000000"))
    case .threads: .init("The number of worker threads.", .other("one per core", example: "2"))
    case .portFile:
      .init("Write addresses and paths for clients to this file when ready.", .other("none", example: "ports.json"))
    case .adminToken:
      .init(
        "The bearer token the admin listener requires; auto generates one.", .other("none", example: "auto"))
    case .san: .init("Additional names in the server certificate.", .value("[]"))
    case .allowHost:
      .init("Host names the admin listener accepts in addition to loopback, addresses and apns-mock.", .value("[]"))
    case .clientCA: .init("PEM files with additional CAs for client certificates.", .value("[]"))
    case .upstream:
      .init(
        "Forward pushes to the real service and give its answers: sandbox, production or https://HOST:PORT.",
        .other("none", example: "sandbox"))
    case .upstreamCA: .init("PEM files with the CAs of --upstream, instead of the system's.", .value("[]"))
    case .upstreamCert:
      .init("The provider certificate for --upstream, a PEM file.", .other("none", example: "provider.pem"))
    case .upstreamKey:
      .init("The private key of --upstream-cert, a PEM file.", .other("none", example: "provider-key.pem"))
    case .upstreamConnections: .init("The maximum number of connections to --upstream.", .value("2"))
    case .allowTopics:
      .init("The topics that are forwarded to --upstream, such as com.example.*; others stay here.", .value("[]"))
    case .allowTokens: .init("The device tokens that are forwarded to --upstream; others stay here.", .value("[]"))
    case .learn: .init("Whether device tokens that --upstream rejects are registered with that state.", .value("on"))
    case .shutdownTimeout: .init("How long a shutdown waits for open streams.", .value("5s"))
    case .logFormat: .init("The format of log lines: text or json.", .value("text"))
    case .logLevel:
      .init("The minimum log level: trace, debug, info, notice, warning or error.", .value("info"))
    case .magicTokens: .init("Whether magic device tokens are enabled.", .value("on"))
    case .exportOnExit:
      .init(
        "Export the inbox to this file at the end: one record per line, or an array if it ends in .json.",
        .other("none", example: "run.ndjson"))
    case .webhook:
      .init(
        "The URL, http or https, that each push and each finding is sent to with POST as JSON.",
        .other("none", example: "http://127.0.0.1:9000/pushes"))
    case .webhookCA: .init("PEM files with the CAs of --webhook, instead of the system's.", .value("[]"))
    case .webhookFilter:
      .init(
        "With --webhook: a query for the pushes to send, such as finding:*.", .other("all", example: "status:4*"))
    case .webhookPayload: .init("With --webhook: send the payloads too.", .value("off"))
    case .webhookAnywhere:
      .init("With --webhook: allow addresses that are neither loopback nor private.", .value("off"))
    }
  }
}

// MARK: - Parsing

extension ServeSettings {
  /// Sets one setting.
  ///
  /// - Parameter values: Exactly one value, except for settings that are lists.
  mutating func set(_ setting: Setting, to values: [String]) throws(InvalidSettingValue) {
    let value = values.first ?? ""
    if values.count != 1, !setting.isList {
      throw InvalidSettingValue(value: values.joined(separator: ", "), allowed: "one value")
    }
    switch setting {
    case .apns: configuration.apnsListeners = try Self.listeners(values, allowsProxyProtocol: true)
    case .apnsPlain: configuration.apnsPlainListeners = try Self.listeners(values)
    case .proxy: configuration.proxyListener = try Value.listener(value)
    case .manage: configuration.manageListeners = try Self.listeners(values)
    case .admin: configuration.admin = try Value.endpoint(value)
    case .certs: configuration.certificates = try Value.notEmpty(value, allowed: "a folder")
    case .profiles: configuration.profilesFolder = try Value.notEmpty(value, allowed: "a folder with fault profiles")
    case .profile:
      profile = try ProfileChoice(try Value.notEmpty(value, allowed: ProfileChoice.allowed), from: setting.flag)
    case .seed: configuration.seed = try Value.seed(value)
    case .environment: configuration.environment = try Value.word(value, of: PushEnvironment.self)
    case .rules: configuration.rules = try Value.word(value, of: RuleMode.self)
    case .topics: configuration.requiresKnownTopics = try Value.word(value, of: Acceptance.self) == .known
    case .maxRecords:
      configuration.maxRecords = try Value.whole(value, in: 1...Int.max)
      store.hasRecordLimit = true
    case .maxBytes:
      configuration.maxBytes = try Value.size(value)
      store.hasSizeLimit = true
    case .store: store.place = try StoreSettings.Place(value)
    case .durable: store.options.durability = try Value.word(value, of: RecordWriter.Durability.self)
    case .storeFailure: store.options.failurePolicy = try Value.word(value, of: RecordWriter.FailurePolicy.self)
    case .retain: store.options.retention = try Value.duration(value, isPositive: true).milliseconds
    case .advertise: store.advertisedURL = try Self.url(value)
    case .record:
      guard let recording = Recording(value) else {
        throw InvalidSettingValue(value: value, allowed: "all, counters, or sample=1/N such as sample=1/1000")
      }
      configuration.recording = recording
    case .fixtures: configuration.fixtures = try Self.texts(values, allowed: "a fixture file")
    case .devices: configuration.requiresRegisteredDevices = try Value.word(value, of: Acceptance.self) == .known
    case .maxDevices: configuration.maxDevices = try Value.whole(value, in: 1...Self.maxDevices)
    case .threads: configuration.threads = try Value.whole(value, in: 1...1024)
    case .portFile: portFile = try Value.notEmpty(value, allowed: "the path of a file")
    case .adminToken:
      generatesAdminToken = value == Setting.generatedToken
      configuration.adminToken = generatesAdminToken ? nil : try Self.token(value)
    case .san: configuration.certificateNames = try Self.texts(values, allowed: "a host name or an IP address")
    case .allowHost: configuration.allowedHosts = try Self.texts(values, allowed: "a host name")
    case .clientCA: configuration.clientAuthorities = try Self.texts(values, allowed: "a PEM file with CA certificates")
    case .upstream:
      guard let service = UpstreamSettings(value) else {
        throw InvalidSettingValue(
          value: value, allowed: "sandbox, production, or a URL without a path such as https://127.0.0.1:2197")
      }
      upstream.endpoint = service.endpoint
      upstream.isChosen = true
    case .upstreamCA: upstream.authorities = try Self.texts(values, allowed: "a PEM file with CA certificates")
    case .upstreamCert: upstream.certificate = try Value.notEmpty(value, allowed: "a PEM file with a certificate")
    case .upstreamKey: upstream.key = try Value.notEmpty(value, allowed: "a PEM file with a private key")
    case .upstreamConnections:
      upstream.connections = try Value.whole(value, in: 1...UpstreamSettings.maxConnections)
    case .allowTopics: upstream.allowedTopics = try Self.texts(values, allowed: "a topic such as com.example.*")
    case .allowTokens: upstream.allowedTokens = try Self.texts(values, allowed: "a device token such as ab12*")
    case .learn: upstream.learnsTokens = try Value.onOrOff(value)
    case .shutdownTimeout: configuration.shutdownTimeout = try Value.duration(value)
    case .logFormat: logFormat = try Value.word(value, of: LogFormat.self)
    case .logLevel: logLevel = try Value.word(value, of: Logger.Level.self)
    case .exportOnExit: exportOnExit = try Value.notEmpty(value, allowed: "the path of a file")
    case .magicTokens: configuration.magicTokens = try Value.onOrOff(value)
    case .webhook:
      guard let url = WebhookURL(value) else {
        throw InvalidSettingValue(
          value: value, allowed: "a URL such as http://127.0.0.1:9000/pushes or https://hooks.example.com/pushes")
      }
      webhook.url = url
    case .webhookCA: webhook.authorities = try Self.texts(values, allowed: "a PEM file with CA certificates")
    case .webhookFilter: webhook.filter = value
    case .webhookPayload: webhook.includesPayload = try Value.onOrOff(value)
    case .webhookAnywhere: webhook.allowsAnyAddress = try Value.onOrOff(value)
    }
  }

  private static func listeners(
    _ values: [String], allowsProxyProtocol: Bool = false
  ) throws(InvalidSettingValue) -> [ListenerAddress] {
    guard !values.isEmpty else { throw InvalidSettingValue(value: "", allowed: "at least one HOST:PORT") }
    var listeners: [ListenerAddress] = []
    for value in values { listeners.append(try Value.listener(value, allowsProxyProtocol: allowsProxyProtocol)) }
    return listeners
  }

  /// The largest number of devices that the registry can have.
  private static let maxDevices = 10_000_000

  private static func texts(_ values: [String], allowed: String) throws(InvalidSettingValue) -> [String] {
    for value in values { _ = try Value.notEmpty(value, allowed: allowed) }
    return values
  }

  /// Validates a URL without a query, and removes the slash at its end.
  private static func url(_ text: String) throws(InvalidSettingValue) -> String {
    let host = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false).dropFirst().first ?? ""
    guard text.hasPrefix("http://") || text.hasPrefix("https://"), host.first.map({ $0 != "/" }) ?? false,
      text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }), !text.contains(where: { "?#".contains($0) })
    else { throw InvalidSettingValue(value: text, allowed: "a URL such as http://mock-1:8197") }
    return text.hasSuffix("/") ? String(text.dropLast()) : text
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

/// Parsers of values that only the command line has.
extension Value {
  static func seed(_ text: String) throws(InvalidSettingValue) -> UInt64 {
    guard let seed = UInt64(text) else {
      throw InvalidSettingValue(value: text, allowed: "a whole number from 0 to \(UInt64.max)")
    }
    return seed
  }

  /// Parses a switch, including 0 and 1, which are common in environment variables.
  static func onOrOff(_ text: String) throws(InvalidSettingValue) -> Bool {
    switch text {
    case "0": return false
    case "1": return true
    default:
      guard let isOn = try? flag(text) else { throw InvalidSettingValue(value: text, allowed: "0 or 1, off or on") }
      return isOn
    }
  }
}

extension Setting {
  /// The setting without which this one has no effect, with an example of its value; nil for none.
  var needed: (setting: Setting, example: String)? {
    switch self {
    case .durable, .storeFailure, .retain: (.store, "sqlite:FILE")
    case .upstreamCA, .upstreamCert, .upstreamKey, .upstreamConnections, .allowTopics, .allowTokens, .learn:
      (.upstream, "sandbox")
    case .webhookFilter, .webhookPayload, .webhookAnywhere: (.webhook, "http://127.0.0.1:9000/pushes")
    case .webhookCA: (.webhook, "https://hooks.example.com/pushes")
    default: nil
    }
  }
}

/// The topics or device tokens that are accepted.
enum Acceptance: String, CaseIterable, Sendable {
  /// All.
  case any
  /// Those that the server knows.
  case known
}

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
  var configuration = MockServer.Configuration()
  /// The initial fault profile; nil for the one without faults.
  var profile: ProfileChoice?
  /// Whether to generate an admin token (`--admin-token auto`).
  var generatesAdminToken = false
  /// The path of the port file to write.
  var portFile: String?
  /// The path to export the inbox to when the server stops.
  var exportOnExit: String?
  /// Where pushes are forwarded to.
  var upstream = UpstreamChoice()
  /// Where pushes are sent.
  var webhook = WebhookSettings()
  /// Where the inbox is kept.
  var store = StoreSettings()
  /// The format of log lines.
  var logFormat = LogFormat.text
  /// The minimum log level.
  var logLevel = Logger.Level.info
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
    func append(_ problems: [ProfileProblem], _ line: (ProfileProblem) -> String) {
      lines += problems.map(line)
      if problems.contains(where: { $0.severity == .error }) { hasErrors = true }
    }
    if let folder = configuration.profilesFolder {
      let reading = configuration.profiles.reloading(folder: folder)
      configuration.profiles = reading.library
      remarks.notices = reading.notices
      append(reading.problems) { $0.text(from: $0.file == folder ? Setting.profiles.flag : nil) }
    }
    // The name may refer to an invalid file of the folder, whose problems are already reported.
    if let profile, !(hasErrors && profile.isName) {
      do throws(ProfileFailure) {
        let (chosen, warnings) = try profile.loaded(from: configuration.profiles)
        configuration.profile = chosen
        append(warnings.filter { !lines.contains(profile.line($0)) }, profile.line)
      } catch {
        append(error.problems.filter { !lines.contains(profile.line($0)) }, profile.line)
      }
    }
    guard !hasErrors else { throw CommandFailure(.usage, lines: lines) }
    remarks.warnings = lines
    return remarks
  }
}
