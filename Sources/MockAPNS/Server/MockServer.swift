import APNSMockInbox
public import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// A mock of APNs that listens for provider connections.
///
/// ```swift
/// try await MockServer.withServer { server in
///   // Let the provider connect to server.settings.url and send a push.
///   let pushes = try await server.wait(for: 1, matching: .topic("com.example.app"))
/// }
/// ```
///
/// A server without references stops as well: keep one for as long as providers send pushes.
public final class MockServer: Sendable {
  /// The state that all connections share: inbox, clock, provider keys, devices.
  package let state: ServerState

  private let group: MultiThreadedEventLoopGroup
  private let listeners: [any Channel]
  private let logger: Logger
  /// The shutdown in progress or completed; every caller of `stop` waits for it.
  private let shutdown = NIOLockedValueBox<Task<Void, Never>?>(nil)

  /// The interval at which stored pushes are checked for expiry. A change of the clock triggers a check at once.
  private static let expiryCheckInterval = TimeAmount.milliseconds(250)

  /// The addresses of the APNs listeners, with the ports actually bound.
  public var addresses: [MockServer.Endpoint] { state.apnsAddresses }

  /// Starts a server, calls `body` with it, and stops it, also if `body` throws an error.
  ///
  /// - Parameters:
  ///   - configuration: By default one that does not interfere with other servers of the same machine.
  ///   - logger: By default one that logs nothing.
  /// - Throws: The error of `body`; `MockServerError` if the server cannot start.
  public static func withServer<Result>(
    _ configuration: MockServer.Configuration = .ephemeral(),
    logger: Logger = Logger(label: "apns-mock") { _ in SwiftLogNoOpLogHandler() },
    isolation: isolated (any Actor)? = #isolation, _ body: (MockServer) async throws -> Result
  ) async throws -> Result {
    let server = try await start(configuration, logger: logger)
    let result: Result
    do {
      result = try await body(server)
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
    return result
  }

  /// Starts a server: creates missing files in the certificate folder, then listens.
  ///
  /// - Parameters:
  ///   - configuration: By default one that does not interfere with other servers of the same machine.
  ///   - logger: By default one that logs nothing.
  /// - Throws: `MockServerError` if an address, a certificate or a fixture cannot be used.
  public static func start(
    _ configuration: MockServer.Configuration = .ephemeral(),
    logger: Logger = Logger(label: "apns-mock") { _ in SwiftLogNoOpLogHandler() }
  ) async throws(MockServerError) -> MockServer {
    do {
      return try await start(configuration, logger: logger) { _, _ in }
    } catch {
      throw MockServerError(ofStart: error)
    }
  }

  /// Starts a server.
  ///
  /// - Parameter loading: Called now and then while fixtures are loaded, with the number of devices and the fraction of the
  ///   files that was read.
  /// - Throws: `ListenError`, `FileFailure`, `CertificateFolderError`, `StoreUnavailable` or `TLSError`, in the terms of the program.
  package static func start(
    _ configuration: MockServer.Configuration, logger: Logger = Logger(label: "apns-mock"),
    loading: @escaping @Sendable (_ devices: Int, _ fraction: Double) -> Void
  ) async throws -> MockServer {
    do {
      return try await listening(configuration, logger: logger, loading: loading)
    } catch {
      configuration.removeTemporaryFolder()
      throw error
    }
  }

  /// In a build with the flag `CHECKS_BLOCKING`, ends the process from now on if one of its event loops or cooperative threads waits
  /// for a store.
  package static func checkThatNoEventLoopWaits() {
    BlockingCheck.begin { MultiThreadedEventLoopGroup.currentEventLoop != nil }
  }

  private static func listening(
    _ configuration: MockServer.Configuration, logger: Logger,
    loading: @escaping @Sendable (_ devices: Int, _ fraction: Double) -> Void
  ) async throws -> MockServer {
    let folder = try CertificateFolder.open(
      path: configuration.certificates, extraNames: configuration.certificateNames)
    for notice in folder.notices { logger.notice("\(notice)") }
    let chain = try ServerChain(folder: folder, clientAuthorities: configuration.clientAuthorities)
    let state = ServerState(configuration: configuration, certificates: folder, chain: chain, logger: logger)
    // On a thread of its own: large files take seconds, and signals are handled by the threads of Swift's concurrency.
    try await NIOThreadPool.singleton.runIfActive { try state.loadInitialFixtures(progress: loading) }
    try await NIOThreadPool.singleton.runIfActive { try state.continueFromStore(logger) }
    state.inbox.writer?.analyzeInBackground { [weak state] in
      // What cannot be read is analyzed later; a request that needs it fails.
      if let state { try? state.inbox.updateFindings(by: state.rulebook) }
    }
    let group = MultiThreadedEventLoopGroup(numberOfThreads: configuration.threads ?? System.coreCount)
    var listeners: [any Channel] = []
    func listen(on address: ListenerAddress, as kind: ListenerKind) async throws {
      let environment = address.environment ?? configuration.environment
      let listener = Listener(
        index: listeners.count, kind: kind, environment: environment, state: state, logger: logger)
      let endpoint = address.endpoint
      configuration.reservedAddresses?.release(listeners.count)
      let channel = try await listener.listen(on: endpoint, group: group)
      listeners.append(channel)
      state.listeners.append(
        BoundListener(
          kind: kind,
          endpoint: MockServer.Endpoint(host: endpoint.host, port: channel.localAddress?.port ?? endpoint.port),
          environment: environment))
    }
    do {
      for (address, kind) in configuration.providerListeners { try await listen(on: address, as: kind) }
      try configuration.upstream?.check(isNoneOf: state.listeners.map(\.endpoint))
    } catch {
      for listener in listeners { try? await listener.close() }
      try? await group.shutdownGracefully()
      throw error
    }
    group.next().scheduleRepeatedTask(initialDelay: expiryCheckInterval, delay: expiryCheckInterval) { _ in
      state.deliveryControl.startAdvancing()
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

  /// Ends a server that was not stopped: closes its connections and removes a temporary certificate folder, which
  /// contains private keys.
  deinit {
    guard shutdown.withLockedValue({ $0 }) == nil else { return }
    for listener in listeners { listener.close(promise: nil) }
    group.shutdownGracefully { _ in }
    state.configuration.removeTemporaryFolder()
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
    await state.deliveryControl.end()
    for listener in listeners { try? await listener.close() }
    await state.connections.shutDown(timeout: state.configuration.shutdownTimeout) {
      // What upstream has not answered is answered or reset, while the providers' connections are open.
      await state.upstream?.close()
    }
    await state.upstream?.close()
    try? await group.shutdownGracefully()
    state.configuration.removeTemporaryFolder()
    logger.debug("all connections closed")
  }
}

/// An address that could not be listened on.
package struct ListenError: Error, CustomStringConvertible {
  /// The requested address.
  package let endpoint: MockServer.Endpoint
  /// Whether the address is already in use.
  package let isInUse: Bool
  /// The problem, and how to solve it.
  package let description: String

  /// - Parameters:
  ///   - purpose: The users of the address, for the message.
  ///   - flag: The command-line flag that selects another address.
  package init(endpoint: MockServer.Endpoint, purpose: String, flag: String, cause: any Error) {
    self.endpoint = endpoint
    isInUse = (cause as? IOError)?.errnoCode == EADDRINUSE
    let choice = "choose another address with \(flag) HOST:PORT"
    description =
      isInUse
      ? "\(endpoint) (for \(purpose)) is already in use by another program or another listener of this one: stop it, or \(choice) (port 0 selects a free one)"
      : "cannot listen on \(endpoint) (for \(purpose)): \(Self.reason(cause, endpoint)); \(choice)"
  }

  private static func reason(_ cause: any Error, _ endpoint: MockServer.Endpoint) -> String {
    switch cause {
    case let error as IOError where error.errnoCode == EACCES && endpoint.port < 1024:
      "permission denied: ports below 1024 require root on most systems"
    case let error as IOError where error.errnoCode == EADDRNOTAVAIL: "this machine has no such address"
    case let error as IOError: error.reason
    case let error as SocketAddressError.UnknownHost: "the host \(error.host) is unknown"
    default: "\(cause)"
    }
  }
}
