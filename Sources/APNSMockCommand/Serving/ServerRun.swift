import Logging
import MockAPNS

/// The run of `serve`: starts the server, reports its addresses, waits for a signal and shuts down.
struct ServerRun: Sendable {
  let settings: ServeSettings
  let logger: Logger

  func run() async throws {
    let signals = await StopSignals()
    let reloads = await ReloadSignals()
    let export = try settings.exportOnExit.map { try ExportOnExit(to: $0, for: Setting.exportOnExit.flag) }
    let server = try await LiveServer.start(settings, logger: logger) { state in
      StartReport(state: state, settings: settings).warn(logger: logger)
    }
    StartReport(state: server.state, settings: settings).announce(logger: logger)
    StartupPages.release()

    let faults = server.state.faults
    let reloading = Task {
      await reloads.forEach { faults.reload() }
    }
    let signal = await signals.first {
      server.removePortFile()
      if let export { FileReplacement.abandon(export.path) }
    }
    logger.info("\(signal): stopping; a second signal exits immediately")
    reloading.cancel()
    await server.stop()
    if let export {
      let count = try export.write(server.state)
      logger.info("exported \(count) pushes to \(export.path)")
    }
    signals.ignoreTheRest()
    logger.info("stopped")
  }
}
