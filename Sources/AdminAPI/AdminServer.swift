internal import Hummingbird
internal import HummingbirdCore
internal import Inbox
public import Logging
public import MockAPNS
internal import NIOCore
internal import ServiceLifecycle

/// The admin listener of a server: plain HTTP/1.1, where the inbox is read and the server is steered.
///
/// ```swift
/// let server = try await MockServer.start(configuration)
/// let admin = try await AdminServer.start(server.state, at: Endpoint(host: "127.0.0.1", port: 0), version: "1.0.0")
/// // GET http://\(admin.address)/api/v1/pushes …
/// await admin.stop()
/// ```
public final class AdminServer: Sendable {
  /// Where it listens, with the real port.
  public let address: Endpoint

  private let state: ServerState
  private let services: ServiceGroup
  private let running: Task<Void, any Error>

  /// Begins to listen. When it returns, requests are answered; `ServerState.adminAddress` is set.
  ///
  /// - Parameters:
  ///   - version: the program's version, for `/api/v1/status`.
  ///   - clientPatience: how long a client may take to send the head of a request, and then its body, and how long it
  ///     may leave a connection unused. Until its first request it has ten seconds at most.
  /// - Throws: `ListenError` if the address cannot be had.
  public static func start(
    _ state: ServerState, at address: Endpoint, version: String, clientPatience: Duration = .seconds(60),
    logger: Logger = Logger(label: "apns-mock.admin")
  ) async throws -> AdminServer {
    let (bound, listening) = AsyncStream.makeStream(of: Int?.self)
    let connections = AdminConnections()
    let application = Application(
      responder: AdminRoutes(state: state, version: version).responder(),
      server: .http1(configuration: Limits.http(patience: TimeAmount(clientPatience), connections: connections)),
      configuration: ApplicationConfiguration(
        address: .hostname(address.host, port: address.port),
        availableConnectionsDelegate: AdminDoor(connections: connections, logger: logger)),
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
    // It ended before it listened.
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

  /// Ends those who wait for pushes or follow events, takes no new connections, lets requests that are being answered come to their end for as long as `patience` says,
  /// and closes everything.
  public func stop(patience: Duration = .seconds(1)) async {
    // Nothing that they wait for will come.
    state.inbox.endWaiting()
    await services.triggerGracefulShutdown()
    let cut = Task {
      try await Task.sleep(for: patience)
      running.cancel()
    }
    // What it throws was logged; whoever stops it wants it gone.
    _ = await running.result
    cut.cancel()
  }

  /// The web framework's own notices are of no interest to users of the mock.
  private static func quieted(_ logger: Logger) -> Logger {
    var logger = logger
    if logger.logLevel > .debug { logger.logLevel = .warning }
    return logger
  }
}

/// What the admin listener takes from one client, so that no client can take it from the others.
enum Limits {
  /// The body of a request in bytes.
  static let body = 1 << 20

  /// The head of a request in bytes.
  static let head = 32 << 10
  /// One field of it.
  static let field = 16 << 10

  static func http(patience: TimeAmount, connections: AdminConnections) -> HTTP1Channel.Configuration {
    HTTP1Channel.Configuration(
      additionalChannelHandlers: [
        AbsoluteTargets.Installer(), UnreadableRequests(), HeadAnswers(),
        SlowRequests(patience: patience, connections: connections),
        GoneClients(),
      ],
      idleTimeout: patience,
      httpDecoderConfiguration: .init(
        maxHeaderFieldSize: field, maxHeaderListSize: head, maxHeaderFieldCount: 100))
  }
}
