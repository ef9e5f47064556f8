import APNSMockClientCommands
import APNSMockInbox
import Dispatch
import Logging
import MockAPNS
import APNSMockPlatformLibc

/// The run of `serve`: starts the server, reports its addresses, waits for a reason to stop and shuts down.
struct ServerRun: Sendable {
  let settings: ServeSettings
  /// Whether the end of standard input stops the server like a signal.
  let stopsAtEndOfInput: Bool
  let logger: Logger

  func run() async throws {
    let signals = try StopSignals(isStarting: true, reloadsProfiles: true)
    let export = try settings.exportOnExit.map { try ExportOnExit(to: $0, for: Setting.exportOnExit.flag) }
    var createdExport: ServerExport?
    let server = try await StartedServer.start(settings, logger: logger) { portFile in
      signals.beginStandby { portFile?.remove() }
      if stopsAtEndOfInput {
        Task {
          await StandardInput.waitForEnd()
          signals.endStandby()
        }
      }
    } whenListening: { state in
      // Before the port file exists: a client that reads it at once starts a run, which must be newer than the export's.
      createdExport = ServerExport(of: state, endsWithProgram: stopsAtEndOfInput)
      StartReport(state: state, settings: settings).warn(logger: logger)
      signals.endStart()
    }
    StartReport(state: server.state, settings: settings).announce(logger: logger)
    StartupPages.release()
    let serverExport = createdExport

    let faults = server.state.faults
    let reloading = Task {
      for await _ in signals.reloads { faults.reload() }
    }
    let reason = await withTaskGroup(of: String.self) { group in
      group.addTask {
        await signals.first {
          server.removePortFile()
          if let export { FileReplacement.abandon(export.path) }
        }
      }
      if stopsAtEndOfInput {
        group.addTask {
          await StandardInput.waitForEnd()
          return "standard input was closed"
        }
      }
      defer { group.cancelAll() }
      return await group.next() ?? ""
    }
    logger.info("\(reason): stopping; a second signal exits immediately")
    reloading.cancel()
    serverExport?.lock()
    await server.stop()
    let exported = await withTaskExecutorPreference(SerialTaskExecutor("apns-mock.export")) {
      let left = Result { try serverExport?.write(server.state) }
      return Result {
        if let export {
          let count = try export.write(server.state)
          logger.info("exported \(count) pushes to \(export.path)")
        }
        try left.get()
      }
    }
    try server.closeStore()
    try exported.get()
    signals.ignoreFurther()
    logger.info("stopped")
  }
}

/// Standard input as a sign that the parent process is alive.
enum StandardInput {
  /// Reads and discards standard input; returns at its end or at an error. A pipe ends when all its writers have closed
  /// it or were killed. Returns early if the task is cancelled.
  static func waitForEnd() async {
    let (end, continuation) = AsyncStream.makeStream(of: Never.self)
    // Occupies a thread until the program ends: a source for reading cannot be cancelled safely while it is active.
    DispatchQueue(label: "apns-mock.stdin").async {
      var bytes = [UInt8](repeating: 0, count: 4096)
      while true {
        let count = read(STDIN_FILENO, &bytes, bytes.count)
        guard count == 0 || count < 0 && errno != EINTR else { continue }
        return continuation.finish()
      }
    }
    for await _ in end {}
  }
}
