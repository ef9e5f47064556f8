internal import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockFaults
internal import Hummingbird
internal import APNSMockInbox
internal import MockAPNS
internal import APNSMockNotation

/// Routes for provider connections: their timelines, and commands that take effect immediately.
struct ConnectionRoutes: Sendable {
  let state: ServerState

  var routes: [Route] {
    [
      Route.get("/connections", list).onQueryExecutor, .get("/connections/:id", show),
      .post("/connections/goaway", goAway),
      .post("/connections/reset") { request, _ in try await end(.reset, request) },
      .post("/connections/close") { request, _ in try await end(.close, request) },
    ]
  }

  /// The state that a list can be filtered by.
  private enum State: String, CaseIterable {
    case open, closed
  }

  // MARK: - Queries

  private func list(_ request: Request, _ context: AdminContext) throws -> Response {
    var parameters = try QueryParameters(request)
    let requested = try parameters.remove("state", State.self)
    try parameters.end(["state"], hint: "The only parameter is state.")
    let logs = state.connections.logs.filter { log in
      requested.map { $0 == (log.isClosed ? .closed : .open) } ?? true
    }
    return .json { writer in
      writer.arrayMember("items") { writer in
        for log in logs { writer.object { log.write(to: &$0) } }
      }
      writer.member("total", logs.count)
      writer.member("open", state.connections.openCount)
    }
  }

  private func show(_ request: Request, _ context: AdminContext) throws -> Response {
    let id = context.parameters.get("id") ?? ""
    guard let log = state.connections.logs.first(where: { $0.id == id }) else {
      throw Problem.notFound(
        "there is no connection \(id)",
        hint: "\(openConnectionsHint) Only the last 200 closed connections are available.")
    }
    return .json { log.write(to: &$0) }
  }

  private var openConnectionsHint: String {
    let open = state.connections.logs.filter { !$0.isClosed }.map(\.id)
    return open.isEmpty ? "None is open." : "Open are \(open.listed(20))."
  }

  // MARK: - Commands

  private func goAway(_ request: Request, _ context: AdminContext) async throws -> Response {
    let fields = Action.goAwayFields
    let body = try await JSONBody(request)
    let scope = try ConnectionScope(body, listeners: state.listeners.count, beside: fields)
    return try perform(.goAway(try Self.goAwayParameters(body.excerpt(of: fields))), scope)
  }

  private func end(_ action: ConnectionAction, _ request: Request) async throws -> Response {
    try perform(action, try ConnectionScope(try await JSONBody(request), listeners: state.listeners.count))
  }

  /// Parses the fields of the action `goaway` in the same way as in a rule.
  private static func goAwayParameters(_ fields: String) throws(Problem) -> Action.GoAwayParameters {
    let failure: ProfileFailure
    do {
      let definition = try AddedRuleDefinition.parse(#"{"at":"connection","do":{"goaway":\#(fields)}}"#)
      if case .goAway(let parameters) = definition.rule.action { return parameters }
      return Action.GoAwayParameters()
    } catch {
      failure = error
    }
    let first = failure.problems.first { $0.severity == .error }
    let field = first?.path.split(separator: ".").dropFirst(2).joined(separator: ".") ?? ""
    let message = first?.message ?? "the fields are invalid"
    throw .badRequest(
      field.isEmpty ? message : "\(field): \(message)",
      hint: first?.hint ?? "They are those of the action goaway: \(Action.goAwayFields.joined(separator: ", ")).")
  }

  private func perform(_ action: ConnectionAction, _ scope: ConnectionScope) throws(Problem) -> Response {
    if let ids = scope.ids,
      !state.connections.logs.contains(where: { ids.contains($0.id) && !$0.isClosed })
    {
      throw .notFound("not open: \(ids.sorted().listed(20))", hint: openConnectionsHint)
    }
    let affected = state.connections.perform(action, where: scope.contains)
    return .json { $0.member("connections", affected.map(\.id)) }
  }
}

extension Action {
  /// The fields of the action `goaway`.
  fileprivate static let goAwayFields = ["code", "last_stream", "debug", "twice", "close_after"]
}

extension ConnectionLog {
  /// Writes the connection's members.
  fileprivate func write(to writer: inout JSONWriter) {
    let (facts, events) = (facts, events)
    writer.member("id", id)
    writer.member("number", number)
    writer.member("state", isClosed ? "closed" : "open")
    writer.member("listener", listener)
    writer.member("client", client)
    writer.member("sni", facts?.sni)
    writer.member("tls", facts?.tls)
    writer.member("certificate", facts?.certificate?.subjectUID)
    writer.member("pushes", pushes)
    writer.arrayMember("events") { writer in
      for event in events.kept {
        writer.object { writer in
          writer.member("at", TimestampFormat.text(event.at))
          writer.member("event", event.kind.rawValue)
          writer.member("detail", event.detail)
        }
      }
    }
    writer.member("events_dropped", events.dropped)
  }
}
