import AdminAPI
import Logging
import MockAPNS
import TLSEngine

/// One life of the server: start, say where everything is, wait for a signal, end in order.
struct ServerRun: Sendable {
  let settings: ServeSettings
  let logger: Logger

  func run() async throws {
    let signals = await StopSignals()
    let reloads = await ReloadSignals()
    let export = try settings.exportOnExit.map { try ExportOnExit(to: $0) }
    var configuration = settings.configuration
    if settings.drawsAdminToken { configuration.adminToken = Self.drawnToken() }
    let server = try await Self.starting { try await MockServer.start(configuration, logger: logger) }
    let admin: AdminServer?
    do {
      admin = try await Self.starting { try await startAdmin(server.state) }
    } catch {
      await server.stop()
      throw error
    }
    let report = StartReport(state: server.state, settings: settings)
    report.warn(logger: logger)
    server.state.phase = .ready
    let written: WrittenPortFile?
    do {
      written = try settings.portFile.map { try WrittenPortFile(PortFile(of: server.state), at: $0) }
    } catch {
      await server.stop()
      await admin?.stop()
      throw error
    }
    report.announce(logger: logger)

    let faults = server.state.faults
    let reloading = Task {
      await reloads.forEach { faults.reload() }
    }
    let signal = await signals.first { written?.remove() }
    logger.info("\(signal): stopping; a second signal ends at once")
    reloading.cancel()
    // The admin listener outlives the other one: it tells whoever asks that the server is going.
    await server.stop()
    await admin?.stop()
    written?.remove()
    if let export {
      let count = try export.write(server.state)
      logger.info("\(count) pushes written to \(export.path)")
    }
    logger.info("stopped")
  }

  private func startAdmin(_ state: ServerState) async throws -> AdminServer? {
    guard let address = state.configuration.admin else { return nil }
    return try await AdminServer.start(state, at: address, version: Version.text, logger: logger)
  }

  /// Turns what can go wrong at the start into words and exit codes.
  private static func starting<Result>(_ work: () async throws -> Result) async throws -> Result {
    do {
      return try await work()
    } catch let error as ListenError {
      throw CommandFailure(error.isInUse ? .portInUse : .usage, error.description)
    } catch let error as CertificateFolderError {
      throw CommandFailure(.usage, error.description)
    } catch let error as TLSError {
      throw CommandFailure(.usage, "certificates (--certs, --client-ca): \(error)")
    }
  }

  /// 128 random bits.
  private static func drawnToken() -> String {
    (0..<4).map { _ in
      let digits = String(UInt32.random(in: 0...UInt32.max), radix: 16)
      return String(repeating: "0", count: 8 - digits.count) + digits
    }.joined()
  }
}
