internal import Hummingbird
internal import APNSMockInbox
package import MockAPNS

/// A route of the admin API.
struct Route: Sendable {
  typealias Handler = @Sendable (Request, AdminContext) async throws -> Response

  let method: HTTPRequest.Method
  /// The path, with `:name` for a variable component.
  let path: String
  let handler: Handler
  /// Whether the route reads many records. Such routes run on the `QueryExecutor` and must not read the request's body.
  var isQuery = false
  /// Whether the response must contain all pushes that were answered, so that only the active server can give it.
  var needsStore = false
  /// Whether the response should contain all pushes that were answered.
  var isOfInbox = false

  static func get(_ path: String, _ handler: @escaping Handler) -> Route {
    Route(method: .get, path: path, handler: handler)
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
    Route(
      method: method, path: "/api/v1" + path, handler: handler, isQuery: isQuery, needsStore: needsStore,
      isOfInbox: true)
  }

  /// The same route, whose response must contain all pushes that were answered.
  var onStore: Route {
    var route = self
    route.needsStore = true
    return route
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
  let health: HealthRoutes
  /// The inbox whose pushes are served.
  let inbox: Inbox
  /// The deliveries to devices; nil without a running server.
  private let deliveries: DeliveryControl?
  /// The name of the export whose pushes are served read-only; nil for a running server.
  let viewedFile: String?
  /// Returns the URL of the active server, or nil if that is unknown. Nil for a server that is no standby.
  let activeURL: (@Sendable () -> String?)?

  /// Creates the routes of a running server.
  package init(state: ServerState, version: String, webhook: Webhook? = nil) {
    health = HealthRoutes(
      phase: { state.phase },
      storeProblem: {
        state.inbox.writer.flatMap { $0.health.problem ?? $0.health.exclusivityProblem }
      })
    let root = RootRoutes { RootRoutes.welcome(to: state, version: version, host: $0) }
    let waits = WaitLimit()
    let reading =
      Self.readingRoutes(state, waits) + [PushRoutes.deletion(in: state)]
      + RunRoutes(source: state, state: state, version: version).routes
    let api =
      ProfileRoutes(faults: state.faults).routes + reading.map(\.onStore)
      + TestRoutes(state: state).routes.map(\.onStore)
      + ClockRoutes(state: state).routes + DeliveryRoutes(state: state).routes
      + DeviceEventRoutes(state: state, waits: waits).routes
      + DeviceRoutes(state: state).routes + ChannelRoutes(state: state).routes + FixtureRoutes(state: state).routes
      + FaultRoutes(state: state).routes + RuleRoutes(state: state).routes
      + KeyRoutes(state: state).routes + CertificateRoutes(state: state).routes + ConnectionRoutes(state: state).routes
      + SendRoutes(state: state).routes
      + ImportRoutes(state: state).routes + ServerRoutes(state: state, version: version).routes
    inbox = state.inbox
    deliveries = state.deliveryControl
    routes =
      api.map(\.underAPI) + health.routes + root.routes + RootRoutes.authorities(of: state)
      + MetricsRoutes(state: state, version: version, webhook: webhook).routes + Self.staticRoutes(version)
    access = AccessRules(
      allowedHosts: state.configuration.allowedHosts, token: state.configuration.adminToken)
    viewedFile = nil
    activeURL = nil
  }

  /// Creates the routes of a standby server: health checks and metrics. It answers everything else with the URL of the active
  /// server.
  package init(
    standbyOf activeURL: @escaping @Sendable () -> String?, _ configuration: MockServer.Configuration, version: String
  ) {
    health = HealthRoutes(phase: { .standby }, storeProblem: { nil })
    routes = health.routes + [MetricsRoutes.standby(version: version, configuration.environment)]
    access = AccessRules(allowedHosts: configuration.allowedHosts, token: configuration.adminToken)
    inbox = Inbox()
    deliveries = nil
    viewedFile = nil
    self.activeURL = activeURL
  }

  /// Creates the routes of an imported inbox: those that read.
  package init(viewer: InboxViewer, version: String) {
    health = HealthRoutes(phase: { .ready }, storeProblem: { viewer.sources?.failure() })
    // The records of an export do not change, so a page needs no server.
    let report = viewer.sources == nil ? ViewedReport(viewer, version: version) : nil
    let root = RootRoutes(
      welcome: { _ in viewer.welcome(version: version) }, page: { try await report?.page() ?? WebUIRoutes.page() })
    let reading = Self.readingRoutes(viewer, WaitLimit()) + RunRoutes(source: viewer, version: version).routes
    routes =
      (reading.map(\.onStore) + [viewer.statusRoute(version: version)]).map(\.underAPI) + health.routes + root.routes
      + Self.staticRoutes(version)
    access = AccessRules(allowedHosts: [], token: viewer.adminToken)
    inbox = viewer.inbox
    deliveries = nil
    viewedFile = viewer.file
    activeURL = nil
  }

  private static func readingRoutes(_ source: any InboxSource, _ waits: WaitLimit) -> [Route] {
    PushRoutes(source: source).routes + AnalysisRoutes(source: source).routes
      + WaitRoutes(source: source, waits: waits).routes + VerifyRoutes(source: source, waits: waits).routes
      + EventRoutes(source: source, waits: waits).routes + ExportRoutes(source: source).routes
  }

  private static func staticRoutes(_ version: String) -> [Route] {
    DescriptionRoutes(version: version).routes + WebUIRoutes.routes
  }

  /// Runs `work` with what the handlers of a request need: its connection, the memory of its body, and a thread.
  private static func withScope<Value: Sendable>(
    of context: AdminContext, on inbox: Inbox, _ work: @Sendable () async throws -> Value
  ) async throws -> Value {
    try await DisconnectCancellation.$channel.withValue(context.channel) {
      try await QueryExecutor.$threadCount.withValue(inbox.concurrentReads) {
        try await MemoryBudget.$body.withValue(MemoryBudget.Reservation(in: .bodies)) {
          try await withTaskExecutorPreference(QueryExecutor.handlers) {
            // The client may have disconnected while many other requests were handled.
            guard context.channel.isActive else { throw CancellationError() }
            return try await work()
          }
        }
      }
    }
  }

  /// Returns the responder for these routes.
  func responder() -> some HTTPResponder<AdminContext> {
    let router = Router(context: AdminContext.self)
    router.add(
      middleware: AdminMiddleware(access: access, routes: routes, viewedFile: viewedFile, activeURL: activeURL))
    for route in routes {
      // HEAD runs the handler of GET; the middleware removes the body.
      for method in route.method == .get ? [.get, .head] : [route.method] {
        router.on(RouterPath(route.path), method: method) { [inbox, deliveries] request, context in
          try await Self.withScope(of: context, on: inbox) {
            // A client that has the response to a broadcast finds that the devices have received it.
            if route.isOfInbox { await deliveries?.awaitBroadcasts() }
            let dependsOnStore = route.isOfInbox && (route.needsStore || route.method != .get)
            if dependsOnStore { try await inbox.checkIsActive() }
            // The status shows what was known before.
            if route.isOfInbox { do { try await inbox.settle() } catch  where !dependsOnStore {} }
            let response = try await Self.response(of: route, to: request, context, inbox)
            if route.method != .get { await inbox.storeServerState() }
            if dependsOnStore { try await inbox.checkIsStillActive() }
            return response
          }
        }
      }
    }
    return RequestPath.Normalizing(next: router.buildResponder())
  }

  private static func response(
    of route: Route, to request: Request, _ context: AdminContext, _ inbox: Inbox
  ) async throws -> Response {
    guard route.isQuery else { return try await route.handler(request, context) }
    return try await QueryExecutor.runLimited {
      guard route.method == .get else { return try await route.handler(request, context) }
      return try await inbox.repeatingAfterReset { try await route.handler(request, context) }
    }
  }
}
