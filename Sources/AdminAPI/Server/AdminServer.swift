internal import Hummingbird
internal import HummingbirdCore
internal import Inbox
package import Logging
package import MockAPNS
internal import NIOCore
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

  private let state: ServerState
  private let services: ServiceGroup
  private let running: Task<Void, any Error>

  /// Starts to listen and sets `ServerState.adminAddress`. Requests are served when this function returns.
  ///
  /// - Parameters:
  ///   - version: The program's version, for `/api/v1/status`.
  ///   - clientTimeout: The time limit for the head of a request, for its body, and for an idle connection. The
  ///     first request must arrive within ten seconds at most.
  /// - Throws: `ListenError` if the address cannot be bound.
  package static func start(
    _ state: ServerState, at address: Endpoint, version: String, clientTimeout: Duration = .seconds(60),
    logger: Logger = Logger(label: "apns-mock.admin")
  ) async throws -> AdminServer {
    let (bound, listening) = AsyncStream.makeStream(of: Int?.self)
    let connections = AdminConnections()
    let application = Application(
      responder: AdminRoutes(state: state, version: version).responder(),
      server: .http1(configuration: Limits.http(patience: TimeAmount(clientTimeout), connections: connections)),
      configuration: ApplicationConfiguration(
        address: .hostname(address.host, port: address.port),
        availableConnectionsDelegate: AdminConnectionLimit(connections: connections, logger: logger)),
      onServerRunning: { listening.yield($0.localAddress?.port) },
      logger: quieted(logger))
    let services = ServiceGroup(services: [application], logger: quieted(logger))
    let running = Task {
      defer { listening.finish() }
      try await services.run()
    }
    for await port in bound {
      let real = Endpoint(host: address.host, port: port ?? address.port)
      state.adminAddress = real
      return AdminServer(address: real, state: state, services: services, running: running)
    }
    // The server ended before it listened.
    do {
      try await running.value
    } catch {
      throw ListenError(endpoint: address, purpose: "the admin API", flag: "--admin", cause: error)
    }
    throw CancellationError()
  }

  private init(address: Endpoint, state: ServerState, services: ServiceGroup, running: Task<Void, any Error>) {
    self.address = address
    self.state = state
    self.services = services
    self.running = running
  }

  /// Stops the server: ends waiting requests and event streams, accepts no new connections, lets active requests
  /// finish for up to `patience`, then closes everything.
  package func stop(patience: Duration = .seconds(1)) async {
    // No further pushes arrive.
    state.inbox.endWaiting()
    await services.triggerGracefulShutdown()
    let cut = Task {
      try await Task.sleep(for: patience)
      running.cancel()
    }
    // Errors were logged and do not matter for stopping.
    _ = await running.result
    cut.cancel()
  }

  /// Suppresses the web framework's notices, which do not concern users of the mock.
  private static func quieted(_ logger: Logger) -> Logger {
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

  static func http(patience: TimeAmount, connections: AdminConnections) -> HTTP1Channel.Configuration {
    HTTP1Channel.Configuration(
      additionalChannelHandlers: [
        AbsoluteTargetHandler.Installer(), MalformedRequestHandler(), HeadResponseHandler(),
        RequestTimeoutHandler(patience: patience, connections: connections),
        HalfCloseHandler(),
      ],
      idleTimeout: patience,
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

  /// The context for routes, which need no connection.
  var basic: BasicRequestContext {
    var context = BasicRequestContext(source: ApplicationRequestContextSource(channel: channel, logger: logger))
    context.coreContext = coreContext
    return context
  }
}
