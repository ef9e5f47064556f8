internal import Hummingbird
internal import Logging
internal import MockAPNS
internal import Notation

/// A route of the admin API.
struct Route: Sendable {
  typealias Answer = @Sendable (Request, BasicRequestContext) async throws -> Response

  let method: HTTPRequest.Method
  /// The path, with `:name` for a variable component.
  let path: String
  let answer: Answer
  /// Whether the response is streamed. Such routes are allowed only for pages of this server.
  var isStreaming = false
  /// Whether the route reads many records. Such routes run on the `QueryExecutor` and must not read the request's body.
  var isQuery = false

  static func get(_ path: String, _ answer: @escaping Answer) -> Route {
    Route(method: .get, path: path, answer: answer)
  }
  static func stream(_ path: String, _ answer: @escaping Answer) -> Route {
    Route(method: .get, path: path, answer: answer, isStreaming: true)
  }
  static func post(_ path: String, _ answer: @escaping Answer) -> Route {
    Route(method: .post, path: path, answer: answer)
  }
  static func put(_ path: String, _ answer: @escaping Answer) -> Route {
    Route(method: .put, path: path, answer: answer)
  }
  static func patch(_ path: String, _ answer: @escaping Answer) -> Route {
    Route(method: .patch, path: path, answer: answer)
  }
  static func delete(_ path: String, _ answer: @escaping Answer) -> Route {
    Route(method: .delete, path: path, answer: answer)
  }

  /// The same route below `/api/v1`.
  var underAPI: Route {
    Route(method: method, path: "/api/v1" + path, answer: answer, isStreaming: isStreaming, isQuery: isQuery)
  }

  /// The same route, run on the `QueryExecutor`.
  var onQueryExecutor: Route {
    var route = self
    route.isQuery = true
    return route
  }

  /// Returns whether the route's path template matches `path`.
  func matches(_ path: String) -> Bool {
    let template = self.path.split(separator: "/")
    let parts = path.split(separator: "/")
    return template.count == parts.count && zip(template, parts).allSatisfy { $0.hasPrefix(":") || $0 == $1 }
  }
}

/// All routes of the admin listener, and their middleware.
struct AdminRoutes: Sendable {
  let state: ServerState
  let version: String
  private let waits = WaitLimit()

  init(state: ServerState, version: String) {
    self.state = state
    self.version = version
  }

  /// All routes, in the order of the documentation.
  var routes: [Route] {
    let inbox =
      PushRoutes(state: state).routes + FindingRoutes(state: state).routes
      + WaitRoutes(state: state, waits: waits).routes + VerifyRoutes(state: state, waits: waits).routes
      + EventRoutes(state: state, waits: waits).routes + StatsRoutes(state: state).routes
      + ExportRoutes(state: state).routes
    if let view { return (inbox.filter(ReadOnlyRoutes.reads) + view.routes).map(\.underAPI) + outside }
    let api =
      inbox + SendRoutes(state: state).routes + ClockRoutes(clock: state.clock).routes
      + DeviceRoutes(state: state).routes + KeyRoutes(keys: state.keys).routes
      + ProfileRoutes(faults: state.faults).routes + ActiveProfileRoutes(faults: state.faults).routes
      + RuleRoutes(state: state).routes + FaultRoutes(faults: state.faults).routes
      + ConnectionRoutes(state: state).routes
      + ServerRoutes(state: state, version: version).routes
    return api.map(\.underAPI) + outside
  }

  private var outside: [Route] {
    HealthRoutes(state: state, version: version).routes + MetricsRoutes(state: state, version: version).routes
      + DescriptionRoutes(version: version).routes + PageRoutes.routes
  }

  /// The routes of a read-only view of an export; nil for a running server.
  private var view: ReadOnlyRoutes? {
    state.viewedFile.map { ReadOnlyRoutes(state: state, version: version, file: $0) }
  }

  /// Returns the responder for these routes.
  func responder() -> some HTTPResponder<AdminContext> {
    let routes = routes
    let router = Router(context: AdminContext.self)
    let access = AccessRules(
      allowedHosts: state.configuration.allowedHosts, token: state.configuration.adminToken)
    router.add(middleware: AdminMiddleware(access: access, routes: routes, view: view))
    for route in routes {
      // HEAD runs the handler of GET; the middleware removes the body.
      for method in route.method == .get ? [.get, .head] : [route.method] {
        router.on(RouterPath(route.path), method: method) { request, context in
          if route.isStreaming { try access.checkOrigin(of: request) }
          return try await DisconnectCancellation.$channel.withValue(context.channel) {
            let basic = context.basic
            guard route.isQuery else { return try await route.answer(request, basic) }
            return try await QueryExecutor.runLimited { try await route.answer(request, basic) }
          }
        }
      }
    }
    return router.buildResponder()
  }
}

/// The middleware of all requests: access control, problem documents for errors, common response header fields.
struct AdminMiddleware: RouterMiddleware {
  let access: AccessRules
  let routes: [Route]
  let view: ReadOnlyRoutes?

  /// Header fields of every response that does not set them itself.
  static let fields: HTTPFields = [
    .xContentTypeOptions: "nosniff", .cacheControl: "no-store",
    .contentSecurityPolicy: "default-src 'none'; frame-ancestors 'none'",
  ]

  func handle(
    _ request: Request, context: AdminContext,
    next: (Request, AdminContext) async throws -> Response
  ) async throws -> Response {
    var response: Response
    do {
      try access.check(request)
      try view?.check(request, among: routes)
      response = try await next(request, context)
    } catch let problem as Problem {
      response = problem.response
    } catch let error as HTTPError where error.status == .notFound {
      // The router does not distinguish an unknown path from an unsupported method.
      response = missing(request).response
    } catch is CancellationError {
      // The client has disconnected; the response is not sent.
      response = Response(status: .serviceUnavailable)
    } catch {
      context.logger.error("\(request.method) \(request.uri.path): \(error)")
      response =
        Problem(
          status: .internalServerError, detail: "internal error, see the server's log",
          hint: "Please report it with that line of the log."
        ).response
    }
    // Keep the fields that a route set itself.
    for field in Self.fields where response.headers[field.name] == nil { response.headers.append(field) }
    return request.method == .head ? HeadResponseHandler.answer(for: response) : response
  }

  private func missing(_ request: Request) -> Problem {
    let path = request.uri.path
    // As in the router, literal paths take precedence over variable ones.
    let literal = routes.filter { $0.path == path }
    let here = literal.isEmpty ? routes.filter { $0.matches(path) } : literal
    guard here.isEmpty else {
      var methods = here.map(\.method.rawValue)
      if methods.contains("GET") { methods.append("HEAD") }
      let list = methods.joined(separator: ", ")
      return Problem(
        status: .methodNotAllowed, detail: "\(path) does not support \(request.method)",
        hint: "The allowed methods are \(list).",
        headers: [.allow: list])
    }
    // Do not suggest the files of the web UI.
    let paths = routes.map(\.path).filter { !$0.hasPrefix(PageRoutes.folder) }
      .reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
    let guess = Spelling.nearest(to: path, among: paths).map { "Did you mean \($0)? " } ?? ""
    return .notFound("there is no \(path)", hint: "\(guess)/openapi.json lists the paths.")
  }
}
