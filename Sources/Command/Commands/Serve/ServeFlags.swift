import ArgumentParser
import APNSMockAdminAPI
import APNSMockClientCommands
import Logging
import MockAPNS

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
    return .value(setting.placeholder, "\(text) (default: \(defaultDescriptions[setting] ?? standard))")
  }
}

/// The flags of a command that starts a server, as text: they are parsed together with variables and the config file.
struct ServeFlags<Command: ServerCommand>: ParsableArguments {
  @OptionGroup(title: "Listeners") var listeners: ListenerFlags<Command>
  @OptionGroup(title: "Rules and faults") var behavior: BehaviorFlags<Command>
  @OptionGroup(title: "Inbox") var inbox: InboxFlags<Command>
  @OptionGroup(title: "Store") var store: StoreFlags<Command>
  @OptionGroup(title: "Upstream") var upstream: UpstreamFlags<Command>
  @OptionGroup(title: "Devices") var devices: DeviceFlags<Command>
  @OptionGroup(title: "Certificates and access") var access: AccessFlags<Command>
  @OptionGroup(title: "Webhook") var webhook: WebhookFlags<Command>
  @OptionGroup(title: "Process") var process: ProcessFlags<Command>

  /// The values of the specified flags.
  var given: [Setting: [String]] {
    let lists: [Setting: [String]] = [
      .apns: listeners.apns, .apnsPlain: listeners.apnsPlain, .manage: listeners.manage, .fixtures: devices.fixtures,
      .san: access.san, .allowHost: access.allowHost, .clientCA: access.clientCA,
      .upstreamCA: upstream.upstreamCA, .webhookCA: webhook.webhookCA, .allowTopics: upstream.allowTopics,
      .allowTokens: upstream.allowTokens,
    ]
    let texts: [Setting: String?] = [
      .proxy: listeners.proxy, .admin: listeners.admin, .rules: behavior.rules, .environment: behavior.environment,
      .topics: behavior.topics, .profile: behavior.profile, .profiles: behavior.profiles, .seed: behavior.seed,
      .magicTokens: behavior.noMagicTokens ? "off" : nil, .maxRecords: inbox.maxRecords, .maxBytes: inbox.maxBytes,
      .record: inbox.record, .exportOnExit: inbox.exportOnExit, .store: store.store, .durable: store.durable,
      .storeFailure: store.storeFailure, .retain: store.retain, .advertise: store.advertise,
      .devices: devices.devices, .maxDevices: devices.maxDevices, .certs: access.certs,
      .adminToken: access.adminToken, .portFile: process.portFile, .threads: process.threads,
      .upstream: upstream.upstream, .upstreamCert: upstream.upstreamCert, .upstreamKey: upstream.upstreamKey,
      .upstreamConnections: upstream.upstreamConnections, .learn: upstream.noLearn ? "off" : nil,
      .webhook: webhook.webhook, .webhookFilter: webhook.webhookFilter,
      .webhookPayload: webhook.webhookPayload ? "on" : nil, .webhookAnywhere: webhook.webhookAnywhere ? "on" : nil,
      .shutdownTimeout: process.shutdownTimeout, .logFormat: process.logFormat, .logLevel: process.logLevel,
    ]
    return lists.filter { !$0.value.isEmpty }
      .merging(texts.compactMapValues { $0.map { [$0] } }) { given, _ in given }
  }
}

/// The flags for the addresses that a server listens on.
struct ListenerFlags<Command: ServerCommand>: ParsableArguments {
  @Option(help: Command.help(.apns), completion: Setting.apns.completion) var apns: [String] = []
  @Option(help: Command.help(.apnsPlain), completion: Setting.apnsPlain.completion) var apnsPlain: [String] = []
  @Option(help: Command.help(.proxy), completion: Setting.proxy.completion) var proxy: String?
  @Option(help: Command.help(.manage), completion: Setting.manage.completion) var manage: [String] = []
  @Option(help: Command.help(.admin), completion: Setting.admin.completion) var admin: String?
}

/// The flags for what a server decides about pushes.
struct BehaviorFlags<Command: ServerCommand>: ParsableArguments {
  @Option(help: Command.help(.rules), completion: Setting.rules.completion) var rules: String?
  @Option(help: Command.help(.environment), completion: Setting.environment.completion) var environment: String?
  @Option(help: Command.help(.topics), completion: Setting.topics.completion) var topics: String?
  @Option(help: Command.help(.profile), completion: Setting.profile.completion) var profile: String?
  @Option(help: Command.help(.profiles), completion: Setting.profiles.completion) var profiles: String?
  @Option(help: Command.help(.seed), completion: Setting.seed.completion) var seed: String?
  @Flag(name: .customLong("no-magic-tokens"), help: "Disable magic device tokens.") var noMagicTokens = false
}

/// The flags for the pushes that a server keeps.
struct InboxFlags<Command: ServerCommand>: ParsableArguments {
  @Option(help: Command.help(.maxRecords), completion: Setting.maxRecords.completion) var maxRecords: String?
  @Option(help: Command.help(.maxBytes), completion: Setting.maxBytes.completion) var maxBytes: String?
  @Option(help: Command.help(.record), completion: Setting.record.completion) var record: String?
  @Option(help: Command.help(.exportOnExit), completion: Setting.exportOnExit.completion) var exportOnExit: String?
}

/// The flags for a store that outlasts the server.
struct StoreFlags<Command: ServerCommand>: ParsableArguments {
  @Option(help: Command.help(.store), completion: Setting.store.completion) var store: String?
  @Option(help: Command.help(.durable), completion: Setting.durable.completion) var durable: String?
  @Option(help: Command.help(.storeFailure), completion: Setting.storeFailure.completion) var storeFailure: String?
  @Option(help: Command.help(.retain), completion: Setting.retain.completion) var retain: String?
  @Option(help: Command.help(.advertise), completion: Setting.advertise.completion) var advertise: String?
}

/// The flags for the service that pushes are forwarded to.
struct UpstreamFlags<Command: ServerCommand>: ParsableArguments {
  @Option(help: Command.help(.upstream), completion: Setting.upstream.completion) var upstream: String?
  @Option(name: .customLong("upstream-ca"), help: Command.help(.upstreamCA), completion: Setting.upstreamCA.completion)
  var upstreamCA: [String] = []
  @Option(help: Command.help(.upstreamCert), completion: Setting.upstreamCert.completion) var upstreamCert: String?
  @Option(help: Command.help(.upstreamKey), completion: Setting.upstreamKey.completion) var upstreamKey: String?
  @Option(help: Command.help(.upstreamConnections), completion: Setting.upstreamConnections.completion)
  var upstreamConnections: String?
  @Option(help: Command.help(.allowTopics), completion: Setting.allowTopics.completion) var allowTopics: [String] = []
  @Option(help: Command.help(.allowTokens), completion: Setting.allowTokens.completion) var allowTokens: [String] = []
  @Flag(name: .customLong("no-learn"), help: "Do not register device tokens that --upstream rejects.")
  var noLearn = false
}

/// The flags for the devices that a server knows.
struct DeviceFlags<Command: ServerCommand>: ParsableArguments {
  @Option(help: Command.help(.fixtures), completion: Setting.fixtures.completion) var fixtures: [String] = []
  @Option(help: Command.help(.devices), completion: Setting.devices.completion) var devices: String?
  @Option(help: Command.help(.maxDevices), completion: Setting.maxDevices.completion) var maxDevices: String?
}

/// The flags for who may connect to a server, and what it shows of itself.
struct AccessFlags<Command: ServerCommand>: ParsableArguments {
  @Option(help: Command.help(.certs), completion: Setting.certs.completion) var certs: String?
  @Option(help: Command.help(.san), completion: Setting.san.completion) var san: [String] = []
  @Option(name: .customLong("client-ca"), help: Command.help(.clientCA), completion: Setting.clientCA.completion)
  var clientCA: [String] = []
  @Option(help: Command.help(.adminToken), completion: Setting.adminToken.completion) var adminToken: String?
  @Option(help: Command.help(.allowHost), completion: Setting.allowHost.completion) var allowHost: [String] = []
}

/// The flags for where pushes are sent.
struct WebhookFlags<Command: ServerCommand>: ParsableArguments {
  @Option(help: Command.help(.webhook)) var webhook: String?
  @Option(name: .customLong("webhook-ca"), help: Command.help(.webhookCA), completion: Setting.webhookCA.completion)
  var webhookCA: [String] = []
  @Option(help: Command.help(.webhookFilter)) var webhookFilter: String?
  @Flag(help: "With --webhook: send the payloads too.") var webhookPayload = false
  @Flag(help: "With --webhook: allow addresses that are neither loopback nor private.") var webhookAnywhere = false
}

/// The flags for a server's process.
struct ProcessFlags<Command: ServerCommand>: ParsableArguments {
  @Option(
    help: .value(
      "file", "A YAML file with settings: the flag names with _ instead of -, and apns: with the limits of APNs."),
    completion: .file(extensions: ["yaml", "yml"]))
  var config: String?
  @Option(help: Command.help(.portFile), completion: Setting.portFile.completion) var portFile: String?
  @Option(help: Command.help(.threads), completion: Setting.threads.completion) var threads: String?
  @Option(help: Command.help(.shutdownTimeout), completion: Setting.shutdownTimeout.completion) var shutdownTimeout:
    String?
  @Option(help: Command.help(.logFormat), completion: Setting.logFormat.completion) var logFormat: String?
  @Option(help: Command.help(.logLevel), completion: Setting.logLevel.completion) var logLevel: String?
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
    var file = try (process.config ?? environment.given(EnvironmentVariables.config)).map { path in
      ConfigurationFile(path: path, yaml: try Files.text(of: path))
    }
    file?.remove(onlyByFlag)
    var environment = environment
    for setting in onlyByFlag { environment[setting.variable] = nil }
    // In a program that `exec` runs, these name the server of `exec`, whose addresses and port file are in use.
    if environment[EnvironmentVariables.run]?.isEmpty == false {
      for setting in [Setting.apns, .apnsPlain, .proxy, .manage, .admin, .portFile] {
        environment[setting.variable] = nil
      }
    }
    let sources = SettingSources(
      flags: given, environment: environment, file: file, defaults: defaults, readFile: Files.text)
    let result = sources.merged()
    guard result.errors.isEmpty else {
      throw CommandFailure(.usage, result.errors.map(\.description).joined(separator: "\n"))
    }
    var settings = result.settings
    if settings.webhook.url?.isSecure == false, !settings.webhook.authorities.isEmpty {
      throw CommandFailure(.usage, "\(Setting.webhookCA.flag) needs a \(Setting.webhook.flag) with https://")
    }
    settings.configuration.upstream = try settings.upstream.settings(environment)
    let remarks = try settings.readProfiles()
    let logger = Logger(label: "apns-mock") { [settings] _ in
      LineLogHandler(format: settings.logFormat, level: settings.logLevel)
    }
    for warning in result.warnings + remarks.warnings { logger.warning("\(warning)") }
    for notice in remarks.notices { logger.notice("\(notice)") }
    return (settings, logger)
  }
}
