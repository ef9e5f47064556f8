internal import CAPNSMockMemory
internal import Hummingbird
internal import HummingbirdCore
internal import APNSMockInbox
package import Logging
package import MockAPNS
internal import NIOCore
internal import NIOHTTP1
internal import APNSMockPlatformLibc

/// The admin listener of a server: plain HTTP/1.1 for reading the inbox and controlling the server.
///
/// ```swift
/// let server = try await MockServer.start(configuration)
/// let admin = try await AdminServer.start(server.state, at: MockServer.Endpoint(host: "127.0.0.1", port: 0), version: "1.0.0")
/// // GET http://\(admin.address)/api/v1/pushes …
/// await admin.stop()
/// ```
package final class AdminServer: Sendable {
  /// The address of the listener, with the port actually bound.
  package let address: MockServer.Endpoint

  private let inbox: Inbox
  private let listener: AdminListener
  private let connections: AdminConnections
  private let running: Task<Void, Never>

  /// Starts to listen for requests about a running server.
  ///
  /// - Parameters:
  ///   - version: The program's version, for `/api/v1/status`.
  ///   - webhook: The webhook whose counts are metrics.
  package static func start(
    _ state: ServerState, at address: MockServer.Endpoint, version: String, webhook: Webhook? = nil,
    clientTimeout: Duration = .seconds(60),
    logger: Logger = Logger(label: "apns-mock.admin")
  ) async throws -> AdminServer {
    try await start(
      AdminRoutes(state: state, version: version, webhook: webhook), of: state, at: address,
      clientTimeout: clientTimeout,
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
    _ routes: AdminRoutes, of source: (any InboxSource)?, at address: MockServer.Endpoint,
    clientTimeout: Duration = .seconds(60),
    logger: Logger = Logger(label: "apns-mock.admin")
  ) async throws -> AdminServer {
    let connections = AdminConnections(logger: logger)
    apns_return_large_buffers_at_once()
    let responder = routes.responder()
    let respond: HTTPChannelHandler.Responder = { request, writer, channel in
      var response = try await responder.respond(
        to: request, context: AdminContext(source: ApplicationRequestContextSource(channel: channel, logger: logger)))
      response.headers[.date] = currentDate()
      do {
        try await writer.write(response: response.head, body: response.body)
      } catch is HTTPParserError {
        // The framework would answer a parser error with a second response.
        throw CancellationError()
      }
    }
    let listener = try AdminListener(at: address, connections: connections, logger: logger) { isRegular in
      HTTP1Channel(
        responder: respond,
        configuration: Limits.http(timeout: TimeAmount(clientTimeout), connections, routes.health, isRegular: isRegular)
      )
    }
    let bound = MockServer.Endpoint(host: address.host, port: listener.port)
    source?.adminAddress = bound
    return AdminServer(address: bound, inbox: routes.inbox, listener: listener, connections: connections)
  }

  private init(address: MockServer.Endpoint, inbox: Inbox, listener: AdminListener, connections: AdminConnections) {
    self.address = address
    self.inbox = inbox
    self.listener = listener
    self.connections = connections
    running = Task { await listener.run() }
  }

  /// Stops the server: ends waiting requests and event streams, accepts no new connections, lets active requests
  /// finish for up to `gracePeriod`, then closes everything.
  package func stop(gracePeriod: Duration = .seconds(1)) async {
    // No further pushes arrive.
    inbox.endWaiting()
    listener.stop()
    let forcedStop = Task {
      try await Task.sleep(for: gracePeriod)
      connections.closeAll()
    }
    await running.value
    forcedStop.cancel()
  }

  /// Returns a warning about an admin listener that any machine can use; nil if it is protected.
  ///
  /// - Parameter token: The bearer token that the listener requires.
  package static func openListenerWarning(at address: MockServer.Endpoint, token: String?) -> String? {
    guard !address.isLoopback, token == nil else { return nil }
    return """
      the admin listener \(address) requires no token and is reachable from other machines, so that they can read and \
      remove pushes: set --admin-token (auto for a random one), or listen on 127.0.0.1
      """
  }

  /// Returns the time for the field Date of a response (RFC 9110, section 5.6.7).
  private static func currentDate() -> String {
    var seconds = time(nil)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    var text = [CChar](repeating: 0, count: 32)
    strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
    return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
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
    timeout: TimeAmount, _ connections: AdminConnections, _ health: HealthRoutes, isRegular: Bool
  ) -> HTTP1Channel.Configuration {
    HTTP1Channel.Configuration(
      additionalChannelHandlers: [
        AbsoluteTargetHandler.Installer(), MalformedRequestHandler(), HeadResponseHandler(),
        ResponseProgressHandler(),
        RequestTimeoutHandler(timeout: timeout, connections: connections, isRegular: isRegular),
        AdmissionHandler(isRegular: isRegular, health: health), HalfCloseHandler(),
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
