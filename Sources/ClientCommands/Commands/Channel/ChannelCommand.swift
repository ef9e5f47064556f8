import APNSMockRules
import ArgumentParser
import HTTPTypes
import APNSMockNotation

/// `apns-mock channel`
struct ChannelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "channel", abstract: "List, create and remove broadcast channels.",
    subcommands: [ChannelList.self, ChannelCreate.self, ChannelRemove.self])
}

/// The environment of channels.
enum ChannelEnvironment: String, CaseIterable, ExpressibleByArgument {
  case sandbox, production
}

/// `apns-mock channel ls`
struct ChannelList: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List channels.",
    discussion: """
      Prints a table on a terminal; otherwise one line per channel: columns separated by tabs, or with --json an object.
      """)

  @Argument(help: .value("bundle-id", "Only the channels of this app. (default: all apps)"))
  var bundleID: String?

  @Option(name: .long, help: .value("environment", "Only the channels of this environment. (default: both)"))
  var environment: ChannelEnvironment?

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    var next: String?
    repeat {
      let query = ChannelQuery(bundleID: bundleID, environment: environment).text([("after", next)])
      let response = try await flags.request(.get, "/channels\(query)")
      let page = try response.decoded(ChannelPage.self)
      flags.output.print(ChannelPage.table(page.items), objects: response.items)
      next = page.next
    } while next != nil
  }
}

/// `apns-mock channel create`
struct ChannelCreate: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create", abstract: "Create a channel and print its id.",
    discussion: "A provider creates channels with a request to APNs; this command is for the setup of a test.")

  @Argument(help: .value("bundle-id", "The bundle id of the app."))
  var bundleID: String

  @Option(name: .long, help: .value("environment", "The environment. (default: that of serve --environment)"))
  var environment: ChannelEnvironment?

  @Option(name: .long, help: .value("id", "The id, standard base64. (default: a new one)"))
  var id: String?

  @Option(
    name: .long,
    help: .value(
      "0|1", "The message storage policy: 0 stores nothing for devices that are offline, 1 the newest broadcast."),
    completion: .list(["0", "1"]))
  var storagePolicy = 1

  @OptionGroup var flags: AdminFlags

  func validate() throws {
    guard StoragePolicy(rawValue: storagePolicy) != nil else {
      throw ValidationError("--storage-policy must be 0 or 1")
    }
  }

  func run() async throws {
    let body = JSONWriter.object { writer in
      writer.member("bundle_id", bundleID)
      if let environment { writer.member("environment", environment.rawValue) }
      if let id { writer.member("id", id) }
      writer.member("message_storage_policy", storagePolicy)
    }
    let response = try await flags.request(.post, "/channels", body: body)
    flags.print(response, text: try response.decoded(ChannelPage.Channel.self).id)
  }
}

/// `apns-mock channel rm`
struct ChannelRemove: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm", abstract: "Remove a channel, or all channels of an app.")

  @Argument(help: .value("id", "The id of the channel. (default: all channels of the app)"))
  var id: String?

  @Option(name: .long, help: .value("bundle-id", "The bundle id of the app."))
  var bundleID: String?

  @Option(name: .long, help: .value("environment", "Only in this environment. (default: both)"))
  var environment: ChannelEnvironment?

  @OptionGroup var flags: AdminFlags

  func validate() throws {
    guard id != nil || bundleID != nil else { throw ValidationError("Specify the id of a channel, or --bundle-id") }
  }

  func run() async throws {
    let query = ChannelQuery(bundleID: bundleID, environment: environment).text([("id", id)])
    let response = try await flags.request(.delete, "/channels\(query)")
    let count = try response.decoded(DeletedChannels.self).deleted
    flags.print(response, text: "\(count.counted("channel")) removed")
  }

  private struct DeletedChannels: Decodable {
    var deleted: Int
  }
}

/// The parameters of the admin API that select channels.
private struct ChannelQuery {
  let bundleID: String?
  let environment: ChannelEnvironment?

  /// Returns the query string with further parameters; empty without any.
  func text(_ others: [(String, String?)]) -> String {
    let all = [("bundle_id", bundleID), ("environment", environment?.rawValue)] + others
    let pairs = all.compactMap { name, value in value.map { "\(name)=\($0.percentEncoded)" } }
    return pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&")
  }
}

/// The response of `GET /channels`.
struct ChannelPage: Decodable {
  var items: [Channel]
  var next: String?

  struct Channel: Decodable {
    var bundleId: String
    var environment: String
    var id: String
    var messageStoragePolicy: Int
    var subscribers: Int?
  }

  static func table(_ channels: [Channel]) -> Table<Channel> {
    Table(
      rows: channels,
      columns: [
        .init("APP", \.bundleId), .init("ENVIRONMENT", \.environment), .init("ID", \.id),
        .init("STORAGE POLICY") { String($0.messageStoragePolicy) },
        .init("SUBSCRIBERS") { $0.subscribers.map(String.init) ?? "0" },
      ])
  }
}
