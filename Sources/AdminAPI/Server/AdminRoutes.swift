internal import Hummingbird
internal import Inbox
package import Logging
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
  /// Whether the response depends on all pushes that servers have answered, so that it needs the store of the inbox.
  var needsStore = false
  /// Whether the response should contain all pushes that servers have answered, if the store of the inbox works.
  var isOfInbox = false
  /// Set if servers that share the store of the inbox all have to execute the request.
  var command: StoreCommand.Kind?

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
      isOfInbox: true, command: command)
  }

  /// The same route, whose response depends on all pushes that servers have answered.
  var onStore: Route {
    var route = self
    route.needsStore = true
    return route
  }

  /// The same route, which servers that share a store all execute if it changes something.
  func shared(_ kind: StoreCommand.Kind = .state) -> Route {
    var route = self
    if method != .get, !path.hasSuffix("/lint"), !path.hasSuffix("/simulate"), !path.hasSuffix("/preview") {
      route.command = kind
    }
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
  private let inbox: Inbox
  /// The deliveries to devices; nil without a running server.
  private let deliveries: DeliveryControl?
  /// The name of the export whose pushes are served read-only; nil for a running server.
  let viewedFile: String?
  /// What servers that share a store all execute; nil for a server that shares none.
  let commands: SharedRequests?

  /// Creates the routes of a running server.
  package init(state: ServerState, version: String) {
    health = HealthRoutes(phase: { state.phase }, storeProblem: { state.inbox.writer?.figures.problem })
    let root = RootRoutes { RootRoutes.welcome(to: state, version: version, host: $0) }
    let waits = WaitLimit()
    let reading = Self.readingRoutes(state, waits) + [PushRoutes.deletion(in: state)]
    let shared =
      ClockRoutes(state: state).routes + DeliveryRoutes(state: state, waits: waits).routes
      + DeviceRoutes(state: state).routes + ChannelRoutes(state: state).routes + FixtureRoutes(state: state).routes
      + FaultRoutes(faults: state.faults).routes
      + RuleRoutes(state: state).routes
    // A reset keeps profiles.
    let profiles = ProfileRoutes(faults: state.faults).routes
    let api =
      profiles.map { $0.shared($0.path.hasSuffix("/reload") ? .once : .lasting) } + reading.map(\.onStore)
      + TestRoutes(state: state).routes.map(\.onStore) + shared.map { $0.shared() }
      + KeyRoutes(keys: state.keys).routes.map { $0.shared(.lasting) }
      + ConnectionRoutes(state: state).routes.map { $0.shared(.once) } + SendRoutes(state: state).routes
      + ImportRoutes(state: state).routes
      + ServerRoutes(state: state, version: version).routes.map { $0.method == .post ? $0.shared().onStore : $0 }
    inbox = state.inbox
    deliveries = state.deliveryControl
    commands = state.inbox.writer.flatMap { $0.store.isShared ? SharedRequests($0, of: state) : nil }
    routes =
      api.map(\.underAPI) + health.routes + root.routes + [RootRoutes.authority(of: state)]
      + MetricsRoutes(state: state, version: version).routes + Self.staticRoutes(version)
    access = AccessRules(
      allowedHosts: state.configuration.allowedHosts, token: state.configuration.adminToken)
    viewedFile = nil
  }

  /// Creates the routes of an imported inbox: those that read.
  package init(viewer: InboxViewer, version: String) {
    health = HealthRoutes(phase: { .ready }, storeProblem: { nil })
    let root = RootRoutes { _ in viewer.welcome(version: version) }
    routes =
      (Self.readingRoutes(viewer, WaitLimit()) + [viewer.statusRoute(version: version)]).map(\.underAPI) + health.routes
      + root.routes + Self.staticRoutes(version)
    access = AccessRules(allowedHosts: [], token: viewer.adminToken)
    inbox = viewer.inbox
    deliveries = nil
    viewedFile = viewer.file
    commands = nil
  }

  private static func readingRoutes(_ source: any InboxSource, _ waits: WaitLimit) -> [Route] {
    PushRoutes(source: source).routes + AnalysisRoutes(source: source).routes
      + WaitRoutes(source: source, waits: waits).routes + VerifyRoutes(source: source, waits: waits).routes
      + EventRoutes(source: source, waits: waits).routes + ExportRoutes(source: source).routes
  }

  private static func staticRoutes(_ version: String) -> [Route] {
    DescriptionRoutes(version: version).routes + WebUIRoutes.routes
  }

  /// Executes what other servers that share the store have changed before, and continues to do so. Call it before the server
  /// listens for providers.
  package func startSharing(logger: Logger) async throws {
    try await commands?.start(responder(isInternal: true), logger: logger)
  }

  /// Runs `work` with what the handlers of a request need: its connection, the memory of its body, and a thread.
  private static func withScope<Value: Sendable>(
    of context: AdminContext, _ work: @Sendable () async throws -> Value
  ) async throws -> Value {
    try await DisconnectCancellation.$channel.withValue(context.channel) {
      try await MemoryBudget.$body.withValue(MemoryBudget.Reservation(in: .bodies)) {
        try await withTaskExecutorPreference(QueryExecutor.handlers) {
          // The client may have disconnected while many other requests were handled.
          guard context.channel?.isActive != false else { throw CancellationError() }
          return try await work()
        }
      }
    }
  }

  /// Returns the responder for these routes.
  ///
  /// - Parameter isInternal: Whether it executes what another server, or this one, has already checked and announced.
  func responder(isInternal: Bool = false) -> some HTTPResponder<AdminContext> {
    let router = Router(context: AdminContext.self)
    router.add(
      middleware: AdminMiddleware(access: isInternal ? nil : access, routes: routes, viewedFile: viewedFile))
    for route in routes {
      // HEAD runs the handler of GET; the middleware removes the body.
      for method in route.method == .get ? [.get, .head] : [route.method] {
        router.on(RouterPath(route.path), method: method) { [inbox, deliveries, commands] request, context in
          try await Self.withScope(of: context) {
            // A client that has the response to a broadcast finds that the devices have received it.
            if route.isOfInbox { await deliveries?.awaitBroadcasts() }
            if !isInternal, let commands, route.isOfInbox {
              try await commands.settle(isRequired: route.needsStore || route.command != nil)
              if let kind = route.command {
                return try await commands.execute(request, kind, path: route.path) {
                  try await route.handler($0, context)
                }
              }
            }
            guard route.isQuery else { return try await route.handler(request, context) }
            return try await QueryExecutor.runLimited {
              guard route.method == .get else { return try await route.handler(request, context) }
              return try await StoreUnavailable.repeatingAfterReset {
                try await inbox.readCompletely { try await route.handler(request, context) }
              }
            }
          }
        }
      }
    }
    return RequestPath.Normalizing(next: router.buildResponder())
  }
}
