internal import APNSRules
internal import Devices
internal import Hummingbird
internal import MockAPNS
internal import Notation

/// Routes for the registry of device tokens with a status of their own.
struct DeviceRoutes: Sendable {
  let state: ServerState

  var routes: [Route] {
    [
      .get("/devices", list), .post("/devices", add), .get("/devices/:token", show), .put("/devices/:token", set),
      .delete("/devices/:token", remove),
    ]
  }

  private static let members = ["topic", "environment", "state", "since"]

  private func list(_ request: Request, _ context: BasicRequestContext) throws -> Response {
    try ListPage(request).response(
      state.devices.tokens(limit: .max).items.map(\.token).sorted { $0.token < $1.token }, by: \.token,
      SingleToken.write)
  }

  private func add(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
    let body = try await JSONBody(request, allowing: ["token"] + Self.members)
    return try register(try body.required("token", hint: "Use the device token in hexadecimal."), body)
  }

  private func set(_ request: Request, _ context: BasicRequestContext) async throws -> Response {
    let body = try await JSONBody(request, allowing: ["token"] + Self.members)
    let token = try token(context)
    if let other = try body.text("token"), other.lowercased() != token {
      throw Problem.badRequest(
        "the body is about another device token than the path", hint: "Omit token in the body.")
    }
    return try register(token, body)
  }

  private func register(_ token: String, _ body: JSONBody) throws(Problem) -> Response {
    let topic = try body.text("topic")
    if topic == "" {
      throw .badRequest("topic is empty", hint: "Use the exact apns-topic, or omit it for any.")
    }
    if let length = topic?.utf8.count, length > Rulebook.topicLimit {
      throw .badRequest("topic has \(length) bytes", hint: "APNs accepts at most \(Rulebook.topicLimit) bytes.")
    }
    let device = SingleToken(
      token: try Self.checked(token), topic: topic,
      environment: try body.choice("environment", PushEnvironment.self),
      state: try body.choice("state", SingleToken.State.self) ?? .online,
      since: try body.time("since") ?? state.clock.now)
    let isNew: Bool
    do throws(DeviceError) {
      isNew = try state.devices.set(device)
    } catch {
      throw Problem(status: .conflict, detail: "\(error)", hint: error.hint)
    }
    return .stored(at: "/devices/\(device.token)", isNew: isNew) { $0.object(device.write) }
  }

  private func show(_ request: Request, _ context: BasicRequestContext) throws -> Response {
    let token = try token(context)
    guard let device = state.devices.token(token) else { throw Self.unknown(token) }
    return .json { device.token.write(to: &$0) }
  }

  private func remove(_ request: Request, _ context: BasicRequestContext) throws -> Response {
    let token = try token(context)
    guard state.devices.remove(token) else { throw Self.unknown(token) }
    return Response(status: .noContent)
  }

  private func token(_ context: BasicRequestContext) throws(Problem) -> String {
    try Self.checked(context.parameters.get("token") ?? "")
  }

  private static func checked(_ token: String) throws(Problem) -> String {
    guard DeviceToken.isWellFormed(token) else {
      throw .badRequest(
        "\"\(token.prefix(80))\" is not a device token",
        hint: "Use an even number of hexadecimal digits, from 2 to 400.")
    }
    return token.lowercased()
  }

  private static func unknown(_ token: String) -> Problem {
    .notFound(
      "the device token \(DeviceToken.abbreviated(token)) is not registered",
      hint: "Unregistered tokens are online for all topics. PUT the device to change that.")
  }
}

extension SingleToken {
  /// Writes the device's members.
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("token", token)
    writer.member("topic", topic)
    writer.member("environment", environment?.rawValue)
    writer.member("state", state.rawValue)
    writer.member("since", TimestampFormat.text(since))
  }
}
