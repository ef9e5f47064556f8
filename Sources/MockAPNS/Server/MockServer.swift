public import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import PlatformLibc
import TLSEngine

/// A mock of APNs that listens for provider connections.
///
/// ```swift
/// let server = try await MockServer.start()
/// // Let the provider connect to server.settings.url and send a push.
/// let pushes = try await server.wait(for: 1, matching: "topic:com.example.app")
/// await server.stop()
/// ```
public final class MockServer: Sendable {
  /// The state that all connections share: inbox, clock, provider keys, devices.
  package let state: ServerState

  private let group: MultiThreadedEventLoopGroup
  private let listeners: [any Channel]
  private let logger: Logger
  /// The shutdown in progress or completed; every caller of `stop` waits for it.
  private let shutdown = NIOLockedValueBox<Task<Void, Never>?>(nil)

  /// The addresses of the APNs listeners, with the ports actually bound.
  public var addresses: [Endpoint] { state.apnsAddresses }

  /// Starts a server: creates missing files in the certificate folder, then listens.
  ///
  /// - Parameter configuration: By default one that does not interfere with other servers of the same machine.
  /// - Throws: An error whose description names the problem and its solution: the certificate folder cannot be
  ///   created or read, or an address cannot be bound.
  public static func start(
    _ configuration: Configuration = .ephemeral(), logger: Logger = Logger(label: "apns-mock")
  ) async throws -> MockServer {
    let folder = try CertificateFolder.open(
      path: configuration.certificates, extraNames: configuration.certificateNames)
    for notice in folder.notices { logger.notice("\(notice)") }
    let state = ServerState(configuration: configuration, certificates: folder, logger: logger)
    let tls = try TLSContext(
      serverCertificateChain: folder.serverPath, privateKey: folder.serverKeyPath,
      clientAuthorities: [folder.caPath] + configuration.clientAuthorities)
    let group = MultiThreadedEventLoopGroup(numberOfThreads: configuration.threads ?? System.coreCount)
    var listeners: [any Channel] = []
    do {
      for (index, endpoint) in configuration.apns.enumerated() {
        listeners.append(
          try await listen(
            on: endpoint, listener: index, group: group, tls: tls, state: state, logger: logger))
      }
    } catch {
      for listener in listeners { try? await listener.close() }
      try? await group.shutdownGracefully()
      configuration.removeTemporaryFolder()
      throw error
    }
    state.apnsAddresses = zip(configuration.apns, listeners).map { endpoint, channel in
      Endpoint(host: endpoint.host, port: channel.localAddress?.port ?? endpoint.port)
    }
    return MockServer(state: state, group: group, listeners: listeners, logger: logger)
  }

  private init(
    state: ServerState, group: MultiThreadedEventLoopGroup, listeners: [any Channel], logger: Logger
  ) {
    self.state = state
    self.group = group
    self.listeners = listeners
    self.logger = logger
  }

  private static func listen(
    on endpoint: Endpoint, listener: Int, group: MultiThreadedEventLoopGroup, tls: TLSContext, state: ServerState,
    logger: Logger
  ) async throws -> any Channel {
    do {
      return try await ServerBootstrap(group: group)
        .serverChannelOption(ChannelOptions.backlog, value: 1024)
        .serverChannelOption(ChannelOptions.socketOption(.so_reuseaddr), value: 1)
        .serverChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(AcceptErrorHandler(logger: logger))
          }
        }
        .childChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try admit(channel, listener: listener, tls: tls, state: state, logger: logger)
          }
        }
        .bind(host: endpoint.host, port: endpoint.port).get()
    } catch {
      throw ListenError(endpoint: endpoint, purpose: "providers", flag: "--apns", cause: error)
    }
  }

  /// Configures an accepted connection. When this fails, NIO closes the connection without reporting the error, so
  /// it is logged here.
  private static func admit(
    _ channel: any Channel, listener: Int, tls: TLSContext, state: ServerState, logger: Logger
  ) throws {
    let log = ConnectionLog(
      number: state.nextConnectionNumber(), listener: listener,
      client: channel.remoteAddress.flatMap(Endpoint.init(_:)), events: state.events)
    do {
      // Set here because the bootstrap sets each option through a future.
      let options = channel.syncOptions
      try options?.setOption(.tcpOption(.tcp_nodelay), value: 1)
      // A single read into a small buffer: the handler reads the rest into a buffer that the event loop's
      // connections share.
      try options?.setOption(
        .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: ConnectionHandler.firstReadSize))
      try options?.setOption(.maxMessagesPerRead, value: 1)
      try state.connections.add(channel, log: log)
      try channel.pipeline.syncOperations.addHandler(
        ConnectionHandler(log: log, tls: try TLSConnection(server: tls), state: state, logger: logger))
    } catch {
      if state.connections.shouldLogRefusal() {
        logger.warning("\(log.client): not accepted, \(error) (logged at most once a minute)")
      }
      throw error
    }
  }

  /// Shuts down as APNs does when planned: accepts no new connections, sends GOAWAY on open ones, lets open streams
  /// finish within the configured timeout, then closes everything. Further calls wait until the first call's
  /// shutdown is complete.
  public func stop() async {
    let task = shutdown.withLockedValue { shutdown in
      if let shutdown { return shutdown }
      let task = Task { await shutDown() }
      shutdown = task
      return task
    }
    await task.value
  }

  private func shutDown() async {
    state.phase = .stopping
    for listener in listeners { try? await listener.close() }
    await state.connections.shutDown(timeout: state.configuration.shutdownTimeout)
    try? await group.shutdownGracefully()
    state.configuration.removeTemporaryFolder()
    logger.debug("all connections closed")
  }
}

/// An address that could not be listened on.
package struct ListenError: Error, CustomStringConvertible {
  /// The requested address.
  package let endpoint: Endpoint
  /// Whether the address is already in use.
  package let isInUse: Bool
  /// The problem, and how to solve it.
  package let description: String

  /// - Parameters:
  ///   - purpose: The users of the address, for the message.
  ///   - flag: The command-line flag that selects another address.
  package init(endpoint: Endpoint, purpose: String, flag: String, cause: any Error) {
    self.endpoint = endpoint
    isInUse = (cause as? IOError)?.errnoCode == EADDRINUSE
    let choice = "choose another address with \(flag) HOST:PORT"
    description =
      isInUse
      ? "\(endpoint) (for \(purpose)) is already in use by another program or another listener of this one: stop it, or \(choice) (port 0 selects a free one)"
      : "cannot listen on \(endpoint) (for \(purpose)): \(Self.reason(cause, endpoint)); \(choice)"
  }

  private static func reason(_ cause: any Error, _ endpoint: Endpoint) -> String {
    switch cause {
    case let error as IOError where error.errnoCode == EACCES && endpoint.port < 1024:
      "permission denied: ports below 1024 require root on most systems"
    case let error as IOError where error.errnoCode == EADDRNOTAVAIL: "this machine has no such address"
    case let error as IOError: String(cString: strerror(error.errnoCode)).lowercased()
    case let error as SocketAddressError.UnknownHost: "the host \(error.host) is unknown"
    default: "\(cause)"
    }
  }
}
