internal import APNSMockRules
internal import APNSMockDevices
internal import Hummingbird
internal import MockAPNS
internal import APNSMockNotation

/// The channel to create, or whose storage policy to change.
struct ChannelRequest {
  var bundleID = ""
  var environment: PushEnvironment?
  var id: String?
  var storagePolicy = 1

  static let schema = MapSchema(
    "ChannelRequest", ChannelRequest(),
    .required("bundle_id", \.bundleID, .text, example: "com.example.app", "The bundle id of the channel's app."),
    .optional("environment", \.environment, .word, default: "that of `--environment`", "The environment."),
    .optional("id", \.id, .text, default: "a new one", "The id of the channel: base64 with padding."),
    .defaulted(
      "message_storage_policy", \.storagePolicy, .integer(0...1),
      "Whether the newest message is stored for devices that are offline."))
}

/// Routes for broadcast channels.
struct ChannelRoutes: Sendable {
  let state: ServerState

  var routes: [Route] {
    [Route.get("/channels", list).onQueryExecutor, .post("/channels", add), .delete("/channels", remove)]
  }

  private func list(_ request: Request, _ context: AdminContext) throws -> Response {
    let names = ["bundle_id", "environment"]
    let page = try ListPage(request, additionalNames: names)
    var parameters = try QueryParameters(request)
    let bundleID = try parameters.remove("bundle_id")
    let environment = try parameters.remove("environment", PushEnvironment.self)
    // A page needs unique keys in ascending order, and the order of creation is not that of the ids.
    let channels = state.channels.channels(of: bundleID, in: environment).sorted { $0.key < $1.key }
    return page.response(channels, by: \.key) { channel in
      { writer in
        channel.write(to: &writer)
        writer.member("subscribers", state.devices.subscriberCount(of: ChannelName(channel)))
      }
    }
  }

  private func add(_ request: Request, _ context: AdminContext) async throws -> Response {
    let body = try await JSONBody(request).parse(ChannelRequest.schema.parse)
    let bundleID = body.bundleID
    if let (message, hint) = BundleID.problem(with: bundleID) {
      throw Problem.badRequest(
        "bundle_id: \(message)",
        hint: hint.prefix(1).uppercased() + hint.dropFirst() + ".")
    }
    let environment = body.environment ?? state.configuration.environment
    let id = body.id
    if let id, !ChannelID.isWellFormed(id) {
      throw Problem.badRequest(
        "id \"\(id.prefix(80))\" is not the id of a channel",
        hint: "It is standard base64 with padding, at most \(ChannelID.limit) characters. Omit it for a new one.")
    }
    let (channel, isNew) = try add(
      bundleID, environment, id: id, StoragePolicy(rawValue: body.storagePolicy) ?? .newest)
    return .stored(at: "/channels?\(channel.query)", isNew: isNew) { $0.object(channel.write) }
  }

  /// Creates a channel, or changes the storage policy of one that exists.
  private func add(
    _ bundleID: String, _ environment: PushEnvironment, id: String?, _ storagePolicy: StoragePolicy
  ) throws(Problem) -> (channel: ChannelDescription, isNew: Bool) {
    func description(_ id: String) -> ChannelDescription {
      ChannelDescription(
        bundleID: bundleID, environment: environment, id: id, messageStoragePolicy: storagePolicy.rawValue)
    }
    do throws(ChannelLimit) {
      if let id { return (description(id), try state.channels.add([description(id)]) == 1) }
      let reserved = try state.channels.reserve(bundleID, in: environment)
      state.channels.create(reserved, storagePolicy)
      return (description(reserved.id), true)
    } catch {
      throw Problem(
        status: .conflict, detail: "\(error)",
        hint: "Remove channels that are no longer needed: DELETE /api/v1/channels.")
    }
  }

  private func remove(_ request: Request, _ context: AdminContext) throws -> Response {
    var parameters = try QueryParameters(request)
    let bundleID = try parameters.remove("bundle_id")
    let environment = try parameters.remove("environment", PushEnvironment.self)
    let id = try parameters.remove("id")
    try parameters.end(["bundle_id", "environment", "id"])
    guard bundleID != nil || id != nil else {
      throw Problem.badRequest(
        "the query has neither bundle_id nor id",
        hint: "Specify the id of a channel, or bundle_id to remove all channels of an app. Percent-encode + as %2B.")
    }
    let channels = state.channels.channels(of: bundleID, in: environment).filter { id == nil || $0.id == id }
    guard !channels.isEmpty || id == nil else {
      throw Problem.notFound(
        "there is no channel \"\(id?.prefix(80) ?? "")\"",
        hint: "GET /api/v1/channels lists the channels. Percent-encode + as %2B in the query.")
    }
    for channel in channels { state.removeChannel(ChannelName(channel)) }
    return .json { $0.member("deleted", channels.count) }
  }
}

extension ChannelDescription {
  /// The key of the channel in a list, unique and in ascending order of app, environment and id.
  fileprivate var key: String { "\(bundleID) \(environment.rawValue) \(id)" }

  /// The query that selects the channel.
  fileprivate var query: String {
    "bundle_id=\(PercentEncoding.encode(bundleID))&environment=\(environment.rawValue)"
  }

  /// Writes the channel's members.
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("bundle_id", bundleID)
    writer.member("environment", environment.rawValue)
    writer.member("id", id)
    writer.member("message_storage_policy", messageStoragePolicy)
  }
}
