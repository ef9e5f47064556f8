import APNSMockAdminAPI
import APNSMockClientCommands
import APNSMockInbox
import Logging
import MockAPNS
import NIOConcurrencyHelpers
import APNSMockNotation
import APNSMockPostgreSQLStore
import APNSMockTLSEngine

/// A running server with its admin listener and port file.
struct StartedServer: Sendable {
  /// The state shared by the provider listeners and the admin API.
  var state: ServerState { server.state }
  private let server: MockServer
  private let admin: AdminServer?
  private let portFile: WrittenPortFile?
  private let webhook: Webhook?
  private let pushLog: PushLog?

  /// Starts a server, which may first be a standby for any time. When this function returns, all listeners accept connections
  /// and the port file exists.
  ///
  /// - Parameters:
  ///   - mayStandBy: Whether to wait while another server is active. If not, this is an error.
  ///   - whenStandby: Called before the server waits as a standby, with its port file.
  ///   - whenListening: Called before the server reports that it is ready.
  /// - Throws: `CommandFailure`, after stopping everything that was started.
  static func start(
    _ settings: ServeSettings, logger: Logger, mayStandBy: Bool = true,
    whenStandby: (WrittenPortFile?) -> Void = { _ in },
    whenListening: (ServerState) -> Void = { _ in }
  ) async throws -> StartedServer {
    var configuration = settings.configuration
    if settings.generatesAdminToken { configuration.adminToken = randomAdminToken() }
    let writtenFile = NIOLockedValueBox<WrittenPortFile?>(nil)
    let lock = try settings.store.lock()
    lock?.whenSuperseded {
      // At once, so that no client gets an answer of a server that is not the active one.
      logger.critical("\(PostgreSQLError.superseded): this server ends; start it again to have a standby")
      writtenFile.withLockedValue { $0?.remove() }
      StopSignals.exit(ExitStatus.failed.rawValue)
    }
    var standby: StandbyServer?
    if let lock, !lock.isHeld {
      guard mayStandBy else {
        throw CommandFailure(
          .usage, "\(Setting.store.flag): another server is active; use another schema: add schema=NAME to the URL")
      }
      let started = try await starting { [configuration] in
        try await StandbyServer.start(lock, configuration, portFile: settings.portFile, logger: logger)
      }
      writtenFile.withLockedValue { $0 = started.portFile }
      whenStandby(started.portFile)
      logger.notice("another server is active: this one is a standby")
      await lock.wait()
      logger.notice("this server takes over")
      configuration = started.pass(to: configuration)
      standby = started
    }
    do {
      configuration.recordWriter = try settings.store.open(
        lock, seed: configuration.seed ?? ServerState.randomSeed(), logger: logger)
      let server = try await activate(
        settings, configuration, endStandby: { await standby?.stop() }, whenListening, logger: logger)
      writtenFile.withLockedValue { $0 = server.portFile }
      return server
    } catch {
      standby?.portFile?.remove()
      throw error
    }
  }

  /// Starts all listeners of a server whose store is open.
  ///
  /// - Parameter endStandby: Called before the admin listener opens.
  private static func activate(
    _ settings: ServeSettings, _ configuration: MockServer.Configuration, endStandby: () async -> Void,
    _ whenListening: (ServerState) -> Void, logger: Logger
  ) async throws -> StartedServer {
    var configuration = configuration
    if configuration.recordWriter != nil {
      if !settings.store.hasRecordLimit { configuration.maxRecords = .max }
      if !settings.store.hasSizeLimit { configuration.maxBytes = .max }
    }
    MockServer.checkThatNoEventLoopWaits()
    let progress = NIOLockedValueBox(LoadingProgress())
    let server = try await starting { [configuration] in
      try await MockServer.start(configuration, logger: logger) { devices, fraction in
        progress.withLockedValue { $0.report(devices: devices, fraction: fraction) }
      }
    }
    await endStandby()
    let pushLog = PushLog(of: server.state, logger: logger)
    let admin: AdminServer?
    let webhook: Webhook?
    do {
      let hook = try await starting {
        try Webhook(settings.webhook, of: server.state, version: Version.text, logger: logger)
      }
      webhook = hook
      admin = try await starting { try await startAdmin(of: server.state, webhook: hook, logger: logger) }
    } catch {
      await server.stop()
      throw error
    }
    await settings.store.advertise(server.state, logger: logger)
    whenListening(server.state)
    server.state.phase = .ready
    do {
      let portFile = try settings.portFile.map { try WrittenPortFile(PortFile(of: server.state), at: $0) }
      return StartedServer(server: server, admin: admin, portFile: portFile, webhook: webhook, pushLog: pushLog)
    } catch {
      await server.stop()
      await admin?.stop()
      throw error
    }
  }

  private init(
    server: MockServer, admin: AdminServer?, portFile: WrittenPortFile?, webhook: Webhook?, pushLog: PushLog?
  ) {
    self.server = server
    self.admin = admin
    self.portFile = portFile
    self.webhook = webhook
    self.pushLog = pushLog
  }

  /// Shuts the server down. The admin listener stops last, so that clients can see that the server is stopping.
  func stop() async {
    await server.stop()
    await webhook?.finish()
    await pushLog?.finish()
    await admin?.stop()
    removePortFile()
  }

  /// Writes what is left to the store and closes it. For use after `stop`, when nothing reads the inbox any more.
  ///
  /// - Throws: `CommandFailure` if that fails.
  func closeStore() throws {
    guard let writer = state.inbox.writer else { return }
    do {
      try writer.stop()
    } catch let error as StoreUnavailable {
      throw CommandFailure(.failed, "the store \(writer.store.place): \(error.problem)")
    } catch {
      throw CommandFailure(.failed, "closing the store \(writer.store.place): \(error)")
    }
  }

  /// Removes the port file; also required before an immediate exit.
  func removePortFile() { portFile?.remove() }

  private static func startAdmin(of state: ServerState, webhook: Webhook?, logger: Logger) async throws -> AdminServer?
  {
    guard let address = state.configuration.admin else { return nil }
    return try await AdminServer.start(state, at: address, version: Version.text, webhook: webhook, logger: logger)
  }

  /// Runs `work`, which starts a server, and converts its errors to `CommandFailure`s.
  static func starting<Result>(_ work: () async throws -> Result) async throws -> Result {
    do {
      return try await work()
    } catch let error as ListenError {
      throw CommandFailure(error.isInUse ? .portInUse : .usage, error.description)
    } catch let failure as FileFailure {
      throw CommandFailure(.usage, lines: failure.problems.map { $0.text(from: Setting.fixtures.flag) })
    } catch let error as CertificateFolderError {
      throw CommandFailure(.usage, error.description)
    } catch let error as StoreUnavailable {
      throw CommandFailure(.usage, "\(Setting.store.flag): \(error.problem)")
    } catch let error as FilterError {
      throw CommandFailure(.usage, "\(Setting.webhookFilter.flag): \(error.message). \(error.hint)")
    } catch let error as UpstreamError {
      throw CommandFailure(.usage, error.description)
    } catch let error as TLSError {
      throw CommandFailure(.usage, "certificates (--certs, --client-ca, --webhook-ca): \(error)")
    }
  }

  /// Returns an admin token of 128 random bits.
  private static func randomAdminToken() -> String {
    Hexadecimal.text((0..<16).map { _ in UInt8.random(in: 0...UInt8.max) })
  }
}

/// Reports on a terminal how many devices of large fixture files were loaded.
private struct LoadingProgress: Sendable {
  private static let interval = Duration.seconds(1)
  private let isShown = StandardStream.error.isTerminal
  private var lastReport = ContinuousClock.now

  /// Prints a line if a second has passed since the last one.
  mutating func report(devices: Int, fraction: Double) {
    let now = ContinuousClock.now
    guard isShown, now - lastReport >= Self.interval else { return }
    lastReport = now
    StandardStream.error.line("loading fixtures: \(devices) devices, \(Int(fraction * 100)) %")
  }
}
