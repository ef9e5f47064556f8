import Logging
import MockAPNS

/// One life of the server: start, say where everything is, wait for a signal, end in order.
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
    logger.info("\(signal): stopping; a second signal ends at once")
    reloading.cancel()
    await server.stop()
    if let export {
      let count = try export.write(server.state)
      logger.info("\(count) pushes written to \(export.path)")
    }
    signals.ignoreTheRest()
    logger.info("stopped")
  }
}
