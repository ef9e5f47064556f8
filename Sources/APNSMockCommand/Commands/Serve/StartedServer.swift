import AdminAPI
import ClientCommands
import Devices
import Inbox
import Logging
import MockAPNS
import NIOConcurrencyHelpers
import Notation
import TLSEngine

/// A running server with its admin listener and port file.
struct StartedServer: Sendable {
  /// The state shared by the provider listeners and the admin API.
  var state: ServerState { server.state }
  private let server: MockServer
  private let admin: AdminServer?
  private let portFile: WrittenPortFile?

  /// Starts a server. When this function returns, all listeners accept connections and the port file exists.
  ///
  /// - Parameter whenListening: Called before the server reports that it is ready.
  /// - Throws: `CommandFailure`, after stopping everything that was started.
  static func start(
    _ settings: ServeSettings, logger: Logger, whenListening: (ServerState) -> Void = { _ in }
  ) async throws -> StartedServer {
    var configuration = settings.configuration
    let seed = configuration.seed ?? ServerState.randomSeed()
    configuration.recordWriter = try settings.store.open(seed: seed, logger: logger)
    if configuration.recordWriter != nil {
      if !settings.store.hasRecordLimit { configuration.maxRecords = .max }
      if !settings.store.hasSizeLimit { configuration.maxBytes = .max }
    }
    if settings.generatesAdminToken { configuration.adminToken = randomAdminToken() }
    let progress = NIOLockedValueBox(LoadingProgress())
    var routes: AdminRoutes?
    let server = try await starting {
      try await MockServer.start(
        configuration, logger: logger,
        loading: { devices, fraction in progress.withLockedValue { $0.report(devices: devices, fraction: fraction) } },
        beforeListening: { state in
          routes = AdminRoutes(state: state, version: Version.text)
          try await routes?.startSharing(logger: logger)
        })
    }
    let admin: AdminServer?
    do {
      admin = try await starting { try await startAdmin(routes, of: server.state, logger: logger) }
    } catch {
      await server.stop()
      throw error
    }
    whenListening(server.state)
    server.state.phase = .ready
    do {
      let portFile = try settings.portFile.map { try WrittenPortFile(PortFile(of: server.state), at: $0) }
      return StartedServer(server: server, admin: admin, portFile: portFile)
    } catch {
      await server.stop()
      await admin?.stop()
      throw error
    }
  }

  private init(server: MockServer, admin: AdminServer?, portFile: WrittenPortFile?) {
    self.server = server
    self.admin = admin
    self.portFile = portFile
  }

  /// Shuts the server down. The admin listener stops last, so that clients can see that the server is stopping.
  func stop() async {
    await server.stop()
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

  private static func startAdmin(
    _ routes: AdminRoutes?, of state: ServerState, logger: Logger
  ) async throws -> AdminServer? {
    guard let address = state.configuration.admin, let routes else { return nil }
    return try await AdminServer.start(routes, of: state, at: address, logger: logger)
  }

  /// Runs `work`, which starts a server, and converts its errors to `CommandFailure`s.
  static func starting<Result>(_ work: () async throws -> Result) async throws -> Result {
    do {
      return try await work()
    } catch let error as ListenError {
      throw CommandFailure(error.isInUse ? .portInUse : .usage, error.description)
    } catch let failure as FixtureFailure {
      throw CommandFailure(.usage, lines: failure.problems.map { $0.text(from: Setting.fixtures.flag) })
    } catch let error as CertificateFolderError {
      throw CommandFailure(.usage, error.description)
    } catch let error as StoreUnavailable {
      throw CommandFailure(.usage, "\(Setting.store.flag): \(error.problem)")
    } catch let error as TLSError {
      throw CommandFailure(.usage, "certificates (--certs, --client-ca): \(error)")
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
