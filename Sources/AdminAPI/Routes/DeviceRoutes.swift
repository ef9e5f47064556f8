internal import APNSMockRules
internal import APNSMockDevices
internal import Hummingbird
internal import MockAPNS
internal import APNSMockNotation

/// Routes for devices with their apps, and for single device tokens.
struct DeviceRoutes: Sendable {
  let state: ServerState

  var routes: [Route] {
    [
      Route.get("/devices", list).onQueryExecutor, .post("/devices", add), .get("/devices/:id", show),
      .put("/devices/:id", set),
      .delete("/devices/:id", remove), .get("/devices/:id/subscriptions", subscriptions),
      .post("/devices/:id/subscriptions", subscribe), .delete("/devices/:id/subscriptions", unsubscribe),
      .post("/devices/:id/:action", perform),
    ]
  }

  // MARK: - Tokens

  private func add(_ request: Request, _ context: AdminContext) async throws -> Response {
    let body = try await JSONBody(request).parse(TokenRequest.schema.parse)
    guard let token = body.token else {
      throw Problem.badRequest("the body lacks token", hint: "Use the device token in hexadecimal.")
    }
    return try register(token, body)
  }

  private func set(_ request: Request, _ context: AdminContext) async throws -> Response {
    let body = try await JSONBody(request).parse(TokenRequest.schema.parse)
    let token = try Self.checked(context.parameters.get("id") ?? "")
    if let other = body.token, other.lowercased() != token {
      throw Problem.badRequest(
        "the body is about another device token than the path", hint: "Omit token in the body.")
    }
    return try register(token, body)
  }

  private func register(_ token: String, _ body: TokenRequest) throws(Problem) -> Response {
    if body.topic == "" {
      throw Problem.badRequest("topic is empty", hint: "Use the exact apns-topic, or omit it for any.")
    }
    if let length = body.topic?.utf8.count, length > Rulebook.topicLimit {
      throw .badRequest("topic has \(length) bytes", hint: "APNs accepts at most \(Rulebook.topicLimit) bytes.")
    }
    let device = SingleToken(
      token: try Self.checked(token), topic: body.topic, environment: body.environment, state: body.state,
      since: body.since ?? state.clock.now)
    let isNew = try state.performing { devices throws(DeviceError) in try devices.set(device) }
    return .stored(at: "/devices/\(device.token)", isNew: isNew) { writer in
      writer.object { state.devices.token(device.token)?.write(to: &$0) }
    }
  }

  private func show(_ request: Request, _ context: AdminContext) throws -> Response {
    let id = context.parameters.get("id") ?? ""
    guard DeviceToken.isWellFormed(id) else { return try .json(description(of: id)) }
    guard let token = state.devices.token(id) else { throw Self.unknown(id) }
    return .json { token.write(to: &$0) }
  }

  private func remove(_ request: Request, _ context: AdminContext) throws -> Response {
    let id = context.parameters.get("id") ?? ""
    if DeviceToken.isWellFormed(id) {
      guard state.devices.remove(id) else { throw Self.unknown(id) }
    } else {
      try state.performing { devices throws(DeviceError) in try devices.removeDevice(id) }
    }
    return Response(status: .noContent)
  }

  static func checked(_ token: String) throws(Problem) -> String {
    guard DeviceToken.isWellFormed(token) else {
      throw .badRequest(
        "\"\(token.prefix(80))\" is not a device token",
        hint: "Use an even number of hexadecimal digits, from 2 to 400. PUT /api/v1/fixtures adds devices with an id.")
    }
    return token.lowercased()
  }

  private static func unknown(_ token: String) -> Problem {
    .notFound(
      "the device token \(DeviceToken.abbreviated(token)) is not registered",
      hint: "Unregistered tokens are online for all topics. PUT the device to change that.")
  }

  // MARK: - Devices

  /// Returns a function that writes the members of a device.
  ///
  /// - Throws: `Problem` (404) if there is no such device.
  private func description(of id: String) throws(Problem) -> (inout JSONWriter) -> Void {
    guard let device = state.devices.device(id), let contents = state.devices.contents(of: id) else {
      throw state.problem(.unknownDevice(id))
    }
    let subscriptions = state.devices.subscriptions(of: id)
    let activities = state.devices.activities(on: id)
    return { writer in
      device.writeMembers(to: &writer)
      writer.member("shown", contents.shown.count)
      writer.member("stored", contents.stored.count)
      writer.arrayMember("subscriptions") { writer in
        for channel in subscriptions { writer.object(channel.write) }
      }
      writer.arrayMember("activities") { writer in
        for activity in activities { writer.object(activity.write) }
      }
    }
  }

  private func perform(_ request: Request, _ context: AdminContext) async throws -> Response {
    let id = context.parameters.get("id") ?? ""
    let name = context.parameters.get("action") ?? ""
    // First, so that forms of other web pages are rejected for their content type, whatever the action.
    let json = try await JSONBody(request)
    guard let action = DeviceAction(rawValue: name) else {
      let names = DeviceAction.allCases.map(\.rawValue)
      let guess = Spelling.suggestion(for: name, among: names)
      throw Problem.notFound(
        "devices have no action \"\(name.prefix(80))\"",
        hint: "\(guess)The actions are \(Spelling.choices(for: name, among: names)).")
    }
    let body = try json.parse(action.schema.parse)
    let now = state.clock.now
    switch action {
    case .online: try setState(of: id, .online)
    case .offline: try setState(of: id, .offline)
    case .restrictPower: try setState(of: id, .powerRestricted)
    case .enable: try setState(of: App(body), on: id, .enabled)
    case .disable: try setState(of: App(body), on: id, .disabled)
    case .forceQuit: try setState(of: App(body), on: id, .forceQuit)
    case .uninstall: try setState(of: App(body), on: id, .removed)
    case .launch:
      let app = try App(body)
      try checkInstalled(app, on: id)
      let events = try state.performing { devices throws(DeviceError) in
        try devices.launch(app.bundleID, app.environment, on: id, now: now)
      }
      state.deliveryControl.apply(events)
    case .install, .reinstall:
      guard DeviceDescription.isID(id) else { throw Self.malformed(id) }
      let app = try App(body)
      let kinds = try Self.kinds(body)
      try checkKnown(app)
      let (tokens, events) = try state.performing { devices throws(DeviceError) in
        try devices.install(
          app.bundleID, app.environment, on: id, kinds: kinds, replaces: action == .reinstall,
          defaultEnvironment: state.configuration.environment, now: now, makeToken: { state.newDeviceToken() })
      }
      state.deliveryControl.apply(events)
      return .json { $0.member("tokens", tokens) }
    case .startActivity:
      let app = try App(body)
      try checkInstalled(app, on: id)
      let (token, events) = try state.performing { devices throws(DeviceError) in
        try devices.startActivity(
          of: app.bundleID, app.environment, on: id, now: now, makeToken: { state.newActivityToken() })
      }
      state.deliveryControl.apply(events)
      return .json { $0.member("tokens", [token]) }
    case .rotateActivityToken:
      let token = try activityToken(body, of: id)
      let (new, events) = try state.performing { devices throws(DeviceError) in
        try devices.rotateActivityToken(token, now: now, makeToken: { state.newActivityToken() })
      }
      state.deliveryControl.apply(events)
      return .json { $0.member("tokens", [new]) }
    case .endActivity:
      let token = try activityToken(body, of: id)
      let events = try state.performing { devices throws(DeviceError) in try devices.expire(token, now: now) }
      state.deliveryControl.apply(events)
      return .json { state.devices.token(token)?.write(to: &$0) }
    }
    return try .json(description(of: id))
  }

  /// Returns the token in the body or, without one, in the path.
  ///
  /// - Throws: `Problem` (400) if it is none, or (404) if it is not one of the device in the path.
  private func activityToken(_ body: DeviceActionRequest, of id: String) throws(Problem) -> String {
    let token = try Self.checked(body.token ?? id)
    if token != id.lowercased(), state.devices.token(token)?.deviceID != id {
      throw .notFound(
        "the device token \(DeviceToken.abbreviated(token)) is not one of \(id.prefix(80))",
        hint: "GET /api/v1/devices/\(id.prefix(80)) lists the tokens of the device.")
    }
    return token
  }

  private func setState(of id: String, _ newState: DeviceState) throws(Problem) {
    let events = try state.performing { devices throws(DeviceError) in
      try devices.setState(of: id, newState, now: state.clock.now, settings: state.rulebook.settings)
    }
    state.deliveryControl.apply(events)
  }

  private func setState(of app: App, on id: String, _ newState: InstallationState) throws(Problem) {
    if newState != .removed { try checkInstalled(app, on: id) }
    let events = try state.performing { devices throws(DeviceError) in
      try devices.setState(of: app.bundleID, app.environment, on: id, newState, now: state.clock.now)
    }
    state.deliveryControl.apply(events)
  }

  /// - Throws: `Problem` (409) if the app was removed.
  private func checkInstalled(_ app: App, on id: String) throws(Problem) {
    let found = state.devices.device(id)?.apps.filter {
      $0.bundleID == app.bundleID && (app.environment == nil || $0.environment == app.environment)
    }
    guard let found, !found.isEmpty, found.allSatisfy({ $0.state == .removed }) else { return }
    throw Problem(
      status: .conflict, detail: "\(app.bundleID) was removed from \(id)", hint: "Reinstall it first.")
  }

  /// - Throws: `Problem` (400) if apps are known, but not this one.
  private func checkKnown(_ app: App) throws(Problem) {
    let known = state.apps.load()
    guard known.count > 0, known[app.bundleID] == nil else { return }
    let names = known.apps.map(\.bundleID)
    let guess = Spelling.suggestion(for: app.bundleID, among: names)
    throw .badRequest(
      "the app \(app.bundleID) is unknown",
      hint: "\(guess)Add it to the apps of the fixtures: {\"apps\": [{\"bundle_id\": \"\(app.bundleID)\"}]}.")
  }

  /// Returns the kinds of tokens to register.
  private static func kinds(_ body: DeviceActionRequest) throws(Problem) -> [TokenKind] {
    guard let names = body.pushTypes else { return [.alert] }
    let known = TokenKind.allCases.map(\.text)
    return try names.map { name throws(Problem) in
      guard let kind = TokenKind(text: name) else {
        let guess = Spelling.suggestion(for: name, among: known)
        throw .badRequest(
          "push_types cannot have \"\(name.prefix(80))\"",
          hint: "\(guess)Expected \(Spelling.choices(for: name, among: known)).")
      }
      return kind
    }
  }

  private static func malformed(_ id: String) -> Problem {
    .badRequest(
      "\"\(id.prefix(80))\" is not the id of a device",
      hint:
        "It begins with a letter, has up to 64 letters, digits, _ and -, and is neither hexadecimal nor \"notifications\"."
    )
  }

  // MARK: - Subscriptions

  private func subscriptions(_ request: Request, _ context: AdminContext) throws -> Response {
    let id = context.parameters.get("id") ?? ""
    guard state.devices.device(id) != nil else { throw state.problem(.unknownDevice(id)) }
    let channels = state.devices.subscriptions(of: id)
    return .json { writer in
      writer.arrayMember("items") { writer in
        for channel in channels { writer.object(channel.write) }
      }
    }
  }

  private func subscribe(_ request: Request, _ context: AdminContext) async throws -> Response {
    let id = context.parameters.get("id") ?? ""
    let body = try await JSONBody(request).parse(SubscriptionRequest.schema.parse)
    let channel = try state.channel(
      body.channel, bundleID: body.bundleID, environment: body.environment, forDevice: id)
    try state.performing { devices throws(DeviceError) in try devices.subscribe(id, to: channel) }
    return .json(channel.write)
  }

  private func unsubscribe(_ request: Request, _ context: AdminContext) throws -> Response {
    let id = context.parameters.get("id") ?? ""
    var parameters = try QueryParameters(request)
    guard let given = try parameters.remove("channel"), parameters.all.isEmpty else {
      throw Problem.badRequest(
        "the query must have the parameter channel, and no other",
        hint: "DELETE …/subscriptions?channel=dHN0LXNyY2gtY2hubA==")
    }
    // A plus sign that is not encoded is decoded as a space, which no channel id contains.
    let name = given.replacing(" ", with: "+")
    guard state.devices.device(id) != nil else { throw state.problem(.unknownDevice(id)) }
    let channels = state.devices.subscriptions(of: id).filter { $0.id == name }
    guard !channels.isEmpty else {
      throw Problem.notFound(
        "\(id) is not subscribed to the channel \(name.prefix(80))",
        hint: "GET /api/v1/devices/\(id)/subscriptions lists the subscriptions.")
    }
    for channel in channels { _ = state.devices.unsubscribe(id, from: channel) }
    return Response(status: .noContent)
  }
}

extension ServerState {
  /// Performs a change of the devices and converts its error.
  func performing<Result>(
    _ change: (DeviceRegistry) throws(DeviceError) -> Result
  ) throws(Problem) -> Result {
    do throws(DeviceError) {
      return try change(devices)
    } catch {
      throw problem(error)
    }
  }

  /// Returns the channel that an app on a device is to be subscribed to.
  ///
  /// - Throws: `Problem`: 404 for an unknown device or channel, 400 if several apps on the device have such a channel.
  func channel(
    _ id: String, bundleID: String?, environment: PushEnvironment?, forDevice deviceID: String
  ) throws(Problem) -> ChannelName {
    guard let device = devices.device(deviceID) else { throw problem(.unknownDevice(deviceID)) }
    let channels = channels(withID: id, bundleID: bundleID, environment: environment)
    guard let first = channels.first else {
      throw .notFound("there is no channel \(id.prefix(80))", hint: "GET /api/v1/channels lists the channels.")
    }
    let installed = channels.filter { channel in
      device.apps.contains { $0.bundleID == channel.bundleID && $0.environment == channel.environment }
    }
    guard installed.count < 2 else {
      throw .badRequest(
        "several apps on \(deviceID) have a channel \(id.prefix(80))", hint: "Add bundle_id and environment.")
    }
    // For an app that is not installed, subscribing fails with its name.
    return installed.first ?? first
  }

  /// Returns the problem of a change of devices that is not possible.
  func problem(_ error: DeviceError) -> Problem {
    let status: HTTPResponse.Status =
      switch error {
      case .unknownDevice, .unknownToken: .notFound
      case .malformedToken, .notInstalled, .ambiguousEnvironment, .notActivityToken: .badRequest
      case .activityEnded, .deviceExists, .tokenExists, .alreadyInstalled, .tooManyApps, .tooManyTokens, .limitReached:
        .conflict
      }
    var guess: String?
    switch error {
    case .unknownDevice(let id): guess = Spelling.nearest(to: String(id.prefix(80)), among: devices.ids(limit: 10_000))
    case .notInstalled(let bundleID, _, let installed): guess = Spelling.nearest(to: bundleID, among: installed)
    default: break
    }
    return Problem(
      status: status, detail: "\(error)", hint: (guess.map { "Did you mean \($0)? " } ?? "") + error.hint)
  }
}

extension DeviceRegistry.TokenListing {
  /// Writes the token's members.
  func write(to writer: inout JSONWriter) {
    writer.member("token", token.token)
    writer.member("device", deviceID)
    writer.member("bundle_id", bundleID)
    writer.member("kind", kind?.text)
    writer.member("topic", token.topic)
    writer.member("environment", token.environment?.rawValue)
    writer.member("state", token.state.rawValue)
    writer.member("since", TimestampFormat.text(token.since))
    writer.member("source", token.isFromUpstream ? "upstream" : nil)
    writer.member("device_state", states?.device.rawValue)
    writer.member("app_state", states?.app.rawValue)
    writer.member("stored", stored)
    writer.member("shown", shown)
  }
}

extension ActivityDescription {
  /// Writes the activity's members.
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("token", token)
    writer.member("bundle_id", bundleID)
    writer.member("environment", environment.rawValue)
    writer.member("attributes_type", attributesType)
    writer.member("started_at", TimestampFormat.text(startedAt))
    writer.member("started_by", startedBy)
    writer.member("dismissed_at", dismissedAt.flatMap(TimestampFormat.text))
  }
}

extension ChannelName {
  /// Writes the channel's members.
  func write(to writer: inout JSONWriter) {
    writer.member("channel", id)
    writer.member("bundle_id", bundleID)
    writer.member("environment", environment.rawValue)
  }
}

extension JSONWriter {
  /// Writes a member with device tokens by push type.
  fileprivate mutating func member(_ name: String, _ tokens: [TokenDescription]) {
    self.name(name)
    tokens.write(to: &self)
  }
}
