public import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import TLSEngine

/// A mock of APNs that listens for providers.
///
/// ```swift
/// var configuration = Configuration()
/// configuration.apns = [Endpoint(host: "127.0.0.1", port: 0)]
/// configuration.certificates = temporaryFolder
/// let server = try await MockServer.start(configuration)
/// // point the provider at server.addresses[0], let it send …
/// let pushes = server.state.inbox
/// await server.stop()
/// ```
public final class MockServer: Sendable {
  /// Inbox, clock, keys, devices.
  public let state: ServerState

  private let group: MultiThreadedEventLoopGroup
  private let listeners: [any Channel]
  private let logger: Logger
  /// The shutdown in progress or done; every caller of `stop` waits for it.
  private let shutdown = NIOLockedValueBox<Task<Void, Never>?>(nil)

  /// Where providers connect, with the real ports.
  public var addresses: [Endpoint] { state.apnsAddresses }

  /// Makes what is missing in the certificate folder, then listens.
  ///
  /// - Throws: `CertificateFolder`'s errors, `TLSError`, or `ListenError` if an address cannot be had.
  public static func start(
    _ configuration: Configuration, logger: Logger = Logger(label: "apns-mock")
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
            try channel.pipeline.syncOperations.addHandler(AcceptTroubles(logger: logger))
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

  /// Makes a connection that was accepted ready. If that fails NIO closes it, and tells nobody why: the log does.
  private static func admit(
    _ channel: any Channel, listener: Int, tls: TLSContext, state: ServerState, logger: Logger
  ) throws {
    let log = ConnectionLog(
      number: state.nextConnectionNumber(), listener: listener,
      client: channel.remoteAddress.flatMap(Endpoint.init(_:)), events: state.events)
    do {
      // Here and not at the bootstrap, which asks for each option by way of a future.
      let options = channel.syncOptions
      try options?.setOption(.tcpOption(.tcp_nodelay), value: 1)
      // One read with little room: whatever does not fit is read by the handler, into a buffer of the event loop.
      try options?.setOption(
        .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: ConnectionHandler.firstReadSize))
      try options?.setOption(.maxMessagesPerRead, value: 1)
      try state.connections.add(channel, log: log)
      try channel.pipeline.syncOperations.addHandler(
        ConnectionHandler(log: log, tls: try TLSConnection(server: tls), state: state, logger: logger))
    } catch {
      if state.connections.isRefusalNews() {
        logger.warning("\(log.client): not taken, \(error) (told at most once a minute)")
      }
      throw error
    }
  }

  /// Ends as a planned shutdown of APNs does: no new connections, GOAWAY on the open ones, open streams finished up to
  /// the configured patience, then everything closed. Further calls wait until the first one's shutdown is complete.
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
    await state.connections.shutDown(patience: state.configuration.shutdownTimeout)
    try? await group.shutdownGracefully()
    logger.debug("all connections closed")
  }
}
