internal import CMemory
internal import Hummingbird
internal import HummingbirdCore
internal import Inbox
package import Logging
package import MockAPNS
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle

/// The admin listener of a server: plain HTTP/1.1 for reading the inbox and controlling the server.
///
/// ```swift
/// let server = try await MockServer.start(configuration)
/// let admin = try await AdminServer.start(server.state, at: Endpoint(host: "127.0.0.1", port: 0), version: "1.0.0")
/// // GET http://\(admin.address)/api/v1/pushes …
/// await admin.stop()
/// ```
package final class AdminServer: Sendable {
  /// The address of the listener, with the port actually bound.
  package let address: Endpoint

  /// An event loop apart from those of the listeners for pushes, so that health checks do not wait for TLS handshakes.
  /// It is never shut down, because Hummingbird still schedules work on it when its service has ended.
  private static let eventLoops = MultiThreadedEventLoopGroup(numberOfThreads: 1)

  private let inbox: Inbox
  private let services: ServiceGroup
  private let running: Task<Void, any Error>

  /// Starts to listen for requests about a running server.
  ///
  /// - Parameter version: The program's version, for `/api/v1/status`.
  package static func start(
    _ state: ServerState, at address: Endpoint, version: String, clientTimeout: Duration = .seconds(60),
    logger: Logger = Logger(label: "apns-mock.admin")
  ) async throws -> AdminServer {
    try await start(
      AdminRoutes(state: state, version: version), of: state, at: address, clientTimeout: clientTimeout,
      logger: logger)
  }

  /// Starts to listen. Sets the source's `adminAddress`, if there is a source. Requests are served when this function returns.
  ///
  /// - Parameters:
  ///   - source: The pushes that the routes serve; nil for a standby server.
  ///   - clientTimeout: The time limit for the head of a request, for its body, and for an idle connection. The
  ///     first request must arrive within ten seconds at most.
  /// - Throws: `ListenError` if the address cannot be bound.
  package static func start(
    _ routes: AdminRoutes, of source: (any InboxSource)?, at address: Endpoint, clientTimeout: Duration = .seconds(60),
    logger: Logger = Logger(label: "apns-mock.admin")
  ) async throws -> AdminServer {
    let (bound, listening) = AsyncStream.makeStream(of: Int?.self)
    let connections = AdminConnections(logger: logger)
    apns_return_large_buffers_at_once()
    let application = Application(
      responder: routes.responder(),
      server: .http1(configuration: Limits.http(timeout: TimeAmount(clientTimeout), connections, routes.health)),
      configuration: ApplicationConfiguration(
        address: .hostname(address.host, port: address.port),
        availableConnectionsDelegate: AdminConnectionLimit(connections: connections)),
      onServerRunning: { listening.yield($0.localAddress?.port) }, eventLoopGroupProvider: .shared(Self.eventLoops),
      logger: withoutFrameworkNotices(logger))
    let services = ServiceGroup(services: [application], logger: withoutFrameworkNotices(logger))
    let running = Task {
      defer { listening.finish() }
      try await services.run()
    }
    for await port in bound {
      let real = Endpoint(host: address.host, port: port ?? address.port)
      source?.adminAddress = real
      return AdminServer(address: real, inbox: routes.inbox, services: services, running: running)
    }
    // The server ended before it listened.
    let result = await running.result
    if case .failure(let error) = result {
      throw ListenError(endpoint: address, purpose: "the admin API", flag: "--admin", cause: error)
    }
    throw CancellationError()
  }

  private init(
    address: Endpoint, inbox: Inbox, services: ServiceGroup, running: Task<Void, any Error>
  ) {
    self.address = address
    self.inbox = inbox
    self.services = services
    self.running = running
  }

  /// Stops the server: ends waiting requests and event streams, accepts no new connections, lets active requests
  /// finish for up to `gracePeriod`, then closes everything.
  package func stop(gracePeriod: Duration = .seconds(1)) async {
    // No further pushes arrive.
    inbox.endWaiting()
    await services.triggerGracefulShutdown()
    let forcedStop = Task {
      try await Task.sleep(for: gracePeriod)
      running.cancel()
    }
    // Errors were logged and do not matter for stopping.
    _ = await running.result
    forcedStop.cancel()
  }

  /// Returns a warning about an admin listener that any machine can use; nil if it is protected.
  ///
  /// - Parameter token: The bearer token that the listener requires.
  package static func openListenerWarning(at address: Endpoint, token: String?) -> String? {
    guard !address.isLoopback, token == nil else { return nil }
    return """
      the admin listener \(address) requires no token and is reachable from other machines, so that they can read and \
      remove pushes: set --admin-token (auto for a random one), or listen on 127.0.0.1
      """
  }

  /// Suppresses the web framework's notices, which do not concern users of the mock.
  private static func withoutFrameworkNotices(_ logger: Logger) -> Logger {
    var logger = logger
    if logger.logLevel > .debug { logger.logLevel = .warning }
    return logger
  }
}

/// Limits per client of the admin listener, so that no client can exhaust it.
enum Limits {
  /// The maximum size of a request body, in bytes.
  static let body = 1 << 20

  /// The maximum size of a request head, in bytes.
  static let head = 32 << 10
  /// The maximum size of a header field, in bytes.
  static let field = 16 << 10

  static func http(
    timeout: TimeAmount, _ connections: AdminConnections, _ health: HealthRoutes
  ) -> HTTP1Channel.Configuration {
    HTTP1Channel.Configuration(
      additionalChannelHandlers: [
        AbsoluteTargetHandler.Installer(), MalformedRequestHandler(), HeadResponseHandler(),
        ResponseProgressHandler(), RequestTimeoutHandler(timeout: timeout, connections: connections),
        AdmissionHandler(connections: connections, health: health), HalfCloseHandler(),
      ],
      httpDecoderConfiguration: .init(
        maxHeaderFieldSize: field, maxHeaderListSize: head, maxHeaderFieldCount: 100))
  }
}

/// The context of one request: the framework's own, and the connection.
struct AdminContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  /// The connection of the request.
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    channel = source.channel
  }
}
