import ArgumentParser
import HTTPTypes
import APNSMockNotation

/// `apns-mock device`
struct DeviceCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "device", abstract: "List devices, change them, and show what they received.",
    discussion: """
      Devices are created by fixtures (apns-mock fixtures load FILE) or by device install; device register and device \
      unregister set the state of a device token alone.
      """,
    groupedSubcommands: [
      CommandGroup(
        name: "Device",
        subcommands: [
          DeviceList.self, DeviceShow.self, DeviceNotifications.self, DeviceStateCommand<OnlineAction>.self,
          DeviceStateCommand<OfflineAction>.self, DeviceStateCommand<RestrictPowerAction>.self,
        ]),
      CommandGroup(
        name: "App",
        subcommands: [
          DeviceInstall<InstallAction>.self, DeviceAppCommand<UninstallAction>.self,
          DeviceInstall<ReinstallAction>.self, DeviceAppCommand<EnableAction>.self,
          DeviceAppCommand<DisableAction>.self, DeviceAppCommand<ForceQuitAction>.self,
          DeviceAppCommand<LaunchAction>.self,
        ]),
      CommandGroup(name: "Device token", subcommands: [DeviceRegister.self, DeviceUnregister.self]),
      CommandGroup(
        name: "Live Activity",
        subcommands: [DeviceStartActivity.self, DeviceRotateActivityToken.self, DeviceEndActivity.self]),
      CommandGroup(name: "Broadcast", subcommands: [DeviceSubscribe.self, DeviceUnsubscribe.self]),
    ])
}

/// An action of the admin API on a device, as a command.
protocol DeviceAction {
  /// The name of the command and of the action in the API.
  static var name: String { get }
  static var abstract: String { get }
  static var discussion: String { get }
}

extension DeviceAction {
  static var discussion: String { "" }

  /// The configuration of the command.
  fileprivate static var configuration: CommandConfiguration {
    CommandConfiguration(commandName: name, abstract: abstract, discussion: discussion)
  }
}

extension AdminFlags {
  /// Performs an action on a device.
  ///
  /// - Parameter members: Writes the members of the request's body.
  /// - Throws: `CommandFailure`, also if the server rejects the request.
  func perform(
    _ action: String, on id: String, _ members: (inout JSONWriter) -> Void = { _ in }
  ) async throws -> AdminClient.Response {
    let response = try await request(
      .post, "/devices/\(id.percentEncoded)/\(action)", body: JSONWriter.object(members))
    _ = try response.succeeded()
    return response
  }
}

// MARK: - Lists

/// `apns-mock device ls`
struct DeviceList: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List the registered device tokens, with their devices and apps.",
    discussion: """
      Prints a table on a terminal; otherwise one line per token: columns separated by tabs, or with --json an object.
      """)

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    var query = ""
    while true {
      let response = try await flags.request(.get, "/devices\(query)")
      let page = try response.decoded(TokenPage.self)
      flags.output.print(TokenPage.table(page.items), objects: response.items)
      guard let next = page.next else { return }
      query = "?after=\(next.percentEncoded)"
    }
  }
}

/// The response of `GET /devices`.
struct TokenPage: Decodable {
  var items: [Token]
  var next: String?

  struct Token: Decodable {
    var token: String
    var device: String?
    var bundleId: String?
    var kind: String?
    var topic: String?
    var environment: String?
    var state: String
    var deviceState: String?
    var appState: String?
    var stored: Int
    var shown: Int
  }

  static func table(_ tokens: [Token]) -> Table<Token> {
    Table(
      rows: tokens,
      columns: [
        .init("DEVICE", \.device), .init("TOKEN", shortened: { $0.count > 16 ? $0.prefix(13) + "…" : $0 }, \.token),
        .init("KIND", \.kind), .init("APP") { $0.bundleId ?? $0.topic }, .init("ENVIRONMENT", \.environment),
        .init("STATE", \.state), .init("DEVICE STATE", \.deviceState), .init("APP STATE", \.appState),
        .init("STORED") { String($0.stored) }, .init("SHOWN") { String($0.shown) },
      ])
  }
}

/// `apns-mock device show`
struct DeviceShow: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a device or a device token.",
    discussion: "Prints YAML, or with --json an object.")

  @Argument(help: "The id of a device, or a device token.")
  var id: String

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    try flags.printYAML(try await flags.request(.get, "/devices/\(id.percentEncoded)"))
  }
}

extension AdminFlags {
  /// Prints a response as YAML, or with `--json` unchanged.
  ///
  /// - Throws: `CommandFailure` if the server rejected the request.
  func printYAML(_ response: AdminClient.Response) throws {
    let body = try response.succeeded()
    let yaml = output.json ? nil : try? JSONNodeReader.document(body).yaml
    if let yaml { StandardStream.output.write(Array(yaml.utf8)) } else { output.print(json: body) }
  }
}

// MARK: - Connection

enum OnlineAction: DeviceAction {
  static let name = "online"
  static let abstract = "Connect a device to APNs; what is stored for it is delivered."
}

enum OfflineAction: DeviceAction {
  static let name = "offline"
  static let abstract = "Disconnect a device from APNs: the newest push of each app is stored."
}

enum RestrictPowerAction: DeviceAction {
  static let name = "restrict-power"
  static let abstract = "Let a device save power: pushes with priority 5 or 1 are stored."
}

/// A command that changes the connection of a device.
struct DeviceStateCommand<Action: DeviceAction>: AsyncParsableCommand {
  static var configuration: CommandConfiguration { Action.configuration }

  @Argument(help: "The id of the device.")
  var id: String

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let response = try await flags.perform(Action.name, on: id)
    let device = try response.decoded(Device.self)
    flags.print(
      response, text: "\(device.id): \(device.state), \(device.shown) shown, \(device.stored) stored".onOneLine)
  }

  private struct Device: Decodable {
    var id: String
    var state: String
    var shown: Int
    var stored: Int
  }
}

// MARK: - Apps

/// The arguments that select an app on a device.
struct InstallationArguments: ParsableArguments {
  @Argument(help: "The id of the device.")
  var id: String

  @Argument(help: ArgumentHelp("The bundle id of the app.", valueName: "bundle-id"))
  var bundleID: String

  @Option(
    name: .long,
    help: .value("environment", "sandbox or production. (default: that of the installed app, else the server's)"),
    completion: .environment)
  var environment: String?

  /// Writes the app as members of a request's body.
  func write(to writer: inout JSONWriter) {
    writer.member("bundle_id", bundleID)
    if let environment { writer.member("environment", environment) }
  }
}

enum UninstallAction: DeviceAction {
  static let name = "uninstall"
  static let abstract = "Remove an app from a device: after the next accepted push, its tokens are unregistered (410)."
}

enum EnableAction: DeviceAction {
  static let name = "enable"
  static let abstract = "Enable notifications of an app on a device."
}

enum DisableAction: DeviceAction {
  static let name = "disable"
  static let abstract = "Disable notifications of an app on a device: alerts are accepted and discarded."
}

enum ForceQuitAction: DeviceAction {
  static let name = "force-quit"
  static let abstract = "Force-quit an app on a device: the newest background push is held until its launch."
}

enum LaunchAction: DeviceAction {
  static let name = "launch"
  static let abstract = "Launch an app on a device: the background push that is held for it is delivered."
}

/// A command that changes the state of an app on a device.
struct DeviceAppCommand<Action: DeviceAction>: AsyncParsableCommand {
  static var configuration: CommandConfiguration { Action.configuration }

  @OptionGroup var app: InstallationArguments
  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let response = try await flags.perform(Action.name, on: app.id) { app.write(to: &$0) }
    let device = try response.decoded(Device.self)
    let states = device.apps.filter { $0.bundleId == app.bundleID }.map { "\($0.state) (\($0.environment))" }
    flags.print(response, text: "\(app.bundleID) on \(device.id): \(states.joined(separator: ", "))".onOneLine)
  }

  private struct Device: Decodable {
    var id: String
    var apps: [App]
  }

  private struct App: Decodable {
    var bundleId: String
    var environment: String
    var state: String
  }
}

enum InstallAction: DeviceAction {
  static let name = "install"
  static let abstract = "Install an app on a device and print its new device tokens."
  static let discussion = "Creates the device if there is none. Prints the push type and the token, one per line."
}

enum ReinstallAction: DeviceAction {
  static let name = "reinstall"
  static let abstract = "Install an app again and print its new device tokens; the former tokens die."
  static let discussion = "Prints the push type and the token, one per line."
}

/// A command that installs an app.
struct DeviceInstall<Action: DeviceAction>: AsyncParsableCommand {
  static var configuration: CommandConfiguration { Action.configuration }

  @OptionGroup var app: InstallationArguments

  @Option(
    name: .long,
    help: .value(
      "push-type",
      """
      The push type to register a token for, such as voip, or liveactivity_start for a push-to-start token; repeatable. \
      (default: alert)
      """), completion: .pushType)
  var pushType: [String] = []

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let response = try await flags.perform(Action.name, on: app.id) { writer in
      app.write(to: &writer)
      if !pushType.isEmpty { writer.member("push_types", pushType) }
    }
    try flags.printTokens(response)
  }
}

extension AdminFlags {
  /// Prints the tokens in a response: type and token on a line, or with `--json` the response.
  func printTokens(_ response: AdminClient.Response) throws {
    let tokens = try response.decoded(NewTokens.self).tokens.sorted { $0.key < $1.key }
    let lines = tokens.flatMap { kind, tokens in tokens.texts.map { "\(kind)\t\($0)" } }
    print(response, text: lines.joined(separator: "\n"))
  }
}

/// The response of an action that registers device tokens.
private struct NewTokens: Decodable {
  var tokens: [String: Tokens]

  /// One token or several.
  struct Tokens: Decodable {
    let texts: [String]

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      texts = try (try? container.decode(String.self)).map { [$0] } ?? container.decode([String].self)
    }
  }
}

// MARK: - Subscriptions

/// `apns-mock device subscribe`
struct DeviceSubscribe: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "subscribe", abstract: "Subscribe a device to a broadcast channel of one of its apps.")

  @Argument(help: "The id of the device.")
  var id: String

  @Argument(help: "The id of the channel, in base64.")
  var channel: String

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let response = try await flags.perform("subscriptions", on: id) { $0.member("channel", channel) }
    flags.print(response, text: "\(id) is subscribed to \(channel)".onOneLine)
  }
}

/// `apns-mock device unsubscribe`
struct DeviceUnsubscribe: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unsubscribe", abstract: "End the subscription of a device to a broadcast channel.")

  @Argument(help: "The id of the device.")
  var id: String

  @Argument(help: "The id of the channel, in base64.")
  var channel: String

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let path = "/devices/\(id.percentEncoded)/subscriptions?channel=\(channel.percentEncoded)"
    _ = try await flags.request(.delete, path).succeeded()
    flags.output.print(text: "\(id) is not subscribed to \(channel) any more".onOneLine) { writer in
      writer.member("device", id)
      writer.member("unsubscribed", channel)
    }
  }
}
