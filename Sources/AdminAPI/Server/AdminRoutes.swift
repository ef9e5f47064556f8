internal import Hummingbird
internal import Inbox
package import MockAPNS

/// A route of the admin API.
struct Route: Sendable {
  typealias Handler = @Sendable (Request, BasicRequestContext) async throws -> Response

  let method: HTTPRequest.Method
  /// The path, with `:name` for a variable component.
  let path: String
  let handler: Handler
  /// Whether the response is streamed. A browser may request it only from this server's own web UI (`checkOrigin`).
  var isStreaming = false
  /// Whether the route reads many records. Such routes run on the `QueryExecutor` and must not read the request's body.
  var isQuery = false

  static func get(_ path: String, _ handler: @escaping Handler) -> Route {
    Route(method: .get, path: path, handler: handler)
  }
  static func stream(_ path: String, _ handler: @escaping Handler) -> Route {
    Route(method: .get, path: path, handler: handler, isStreaming: true)
  }
  static func post(_ path: String, _ handler: @escaping Handler) -> Route {
    Route(method: .post, path: path, handler: handler)
  }
  static func put(_ path: String, _ handler: @escaping Handler) -> Route {
    Route(method: .put, path: path, handler: handler)
  }
  static func patch(_ path: String, _ handler: @escaping Handler) -> Route {
    Route(method: .patch, path: path, handler: handler)
  }
  static func delete(_ path: String, _ handler: @escaping Handler) -> Route {
    Route(method: .delete, path: path, handler: handler)
  }

  /// The same route below `/api/v1`.
  var underAPI: Route {
    Route(method: method, path: "/api/v1" + path, handler: handler, isStreaming: isStreaming, isQuery: isQuery)
  }

  /// The same route, run on the `QueryExecutor`.
  var onQueryExecutor: Route {
    var route = self
    route.isQuery = true
    return route
  }

  /// The number of variable components of the path.
  var variableCount: Int { path.count { $0 == ":" } }

  /// Returns whether the route's path template matches `path`.
  func matches(_ path: String) -> Bool {
    let template = self.path.split(separator: "/")
    let parts = path.split(separator: "/")
    return template.count == parts.count && zip(template, parts).allSatisfy { $0.hasPrefix(":") || $0 == $1 }
  }
}

/// The routes of the admin listener, and their access rules.
package struct AdminRoutes: Sendable {
  /// All routes, in the order of the documentation.
  let routes: [Route]
  let access: AccessRules
  /// The name of the export whose pushes are served read-only; nil for a running server.
  let viewedFile: String?

  /// Creates the routes of a running server.
  package init(state: ServerState, version: String) {
    let health = RootRoutes(
      phase: { state.phase }, storeProblem: { state.inbox.writer?.figures.problem },
      welcome: { RootRoutes.welcome(to: state, version: version, host: $0) })
    let waits = WaitLimit()
    let api =
      Self.readingRoutes(state, waits) + SendRoutes(state: state).routes + ClockRoutes(state: state).routes
      + DeliveryRoutes(state: state, waits: waits).routes + DeviceRoutes(state: state).routes
      + ChannelRoutes(state: state).routes + FixtureRoutes(state: state).routes + KeyRoutes(keys: state.keys).routes
      + ProfileRoutes(faults: state.faults).routes + FaultRoutes(faults: state.faults).routes
      + RuleRoutes(state: state).routes + ConnectionRoutes(state: state).routes
      + ServerRoutes(state: state, version: version).routes + ImportRoutes(state: state).routes + [
        PushRoutes.deletion(in: state)
      ]
    routes =
      api.map(\.underAPI) + health.routes + [RootRoutes.authority(of: state)]
      + MetricsRoutes(state: state, version: version).routes + Self.staticRoutes(version)
    access = AccessRules(
      allowedHosts: state.configuration.allowedHosts, token: state.configuration.adminToken)
    viewedFile = nil
  }

  /// Creates the routes of an imported inbox: those that read.
  package init(viewer: InboxViewer, version: String) {
    let health = RootRoutes(
      phase: { .ready }, storeProblem: { nil }, welcome: { _ in viewer.welcome(version: version) })
    routes =
      (Self.readingRoutes(viewer, WaitLimit()) + [viewer.statusRoute(version: version)]).map(\.underAPI) + health.routes
      + Self.staticRoutes(version)
    access = AccessRules(allowedHosts: [], token: viewer.adminToken)
    viewedFile = viewer.file
  }

  private static func readingRoutes(_ source: any InboxSource, _ waits: WaitLimit) -> [Route] {
    PushRoutes(source: source).routes + AnalysisRoutes(source: source).routes
      + WaitRoutes(source: source, waits: waits).routes + VerifyRoutes(source: source, waits: waits).routes
      + EventRoutes(source: source, waits: waits).routes + ExportRoutes(source: source).routes
  }

  private static func staticRoutes(_ version: String) -> [Route] {
    DescriptionRoutes(version: version).routes + WebUIRoutes.routes
  }

  /// Returns the responder for these routes.
  func responder() -> some HTTPResponder<AdminContext> {
    let router = Router(context: AdminContext.self)
    router.add(middleware: AdminMiddleware(access: access, routes: routes, viewedFile: viewedFile))
    for route in routes {
      // HEAD runs the handler of GET; the middleware removes the body.
      for method in route.method == .get ? [.get, .head] : [route.method] {
        router.on(RouterPath(route.path), method: method) { [access] request, context in
          if route.isStreaming { try access.checkOrigin(of: request) }
          return try await DisconnectCancellation.$channel.withValue(context.channel) {
            let basic = context.basic
            guard route.isQuery else { return try await route.handler(request, basic) }
            return try await QueryExecutor.runLimited { try await route.handler(request, basic) }
          }
        }
      }
    }
    return router.buildResponder()
  }
}
