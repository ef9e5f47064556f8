import APNSMockClientCommands
import Dispatch
import APNSMockInbox
import Logging
import MockAPNS
import NIOConcurrencyHelpers
import APNSMockPlatformLibc
import UnixSignals

/// The run of `serve`: starts the server, reports its addresses, waits for a reason to stop and shuts down.
struct ServerRun: Sendable {
  let settings: ServeSettings
  /// Whether the end of standard input stops the server like a signal.
  let stopsAtEndOfInput: Bool
  let logger: Logger

  func run() async throws {
    let signals = await StopSignals(isStarting: true)
    let reloads = await ReloadSignals()
    let export = try settings.exportOnExit.map { try ExportOnExit(to: $0, for: Setting.exportOnExit.flag) }
    let server = try await StartedServer.start(settings, logger: logger) { portFile in
      signals.beginStandby { portFile?.remove() }
      if stopsAtEndOfInput {
        Task {
          await StandardInput.waitForEnd()
          signals.endStandby()
        }
      }
    } whenListening: { state in
      StartReport(state: state, settings: settings).warn(logger: logger)
      signals.endStart()
    }
    StartReport(state: server.state, settings: settings).announce(logger: logger)
    StartupPages.release()

    let faults = server.state.faults
    let reloading = Task {
      await reloads.forEach { faults.reload() }
    }
    let reason = await withTaskGroup(of: String.self) { group in
      group.addTask {
        let signal = await signals.first {
          server.removePortFile()
          if let export { FileReplacement.abandon(export.path) }
        }
        return "\(signal)"
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
    await server.stop()
    let exported = await withTaskExecutorPreference(SerialTaskExecutor("apns-mock.export")) {
      Result {
        guard let export else { return }
        let count = try export.write(server.state)
        logger.info("exported \(count) pushes to \(export.path)")
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

/// A sequence of SIGHUP signals, which request a reload of the fault profiles.
struct ReloadSignals: Sendable {
  private let signals: UnixSignalsSequence

  /// Traps the signal, which then no longer terminates the program.
  init() async { signals = await UnixSignalsSequence(trapping: .sighup) }

  /// Calls `body` for each signal since the creation, until the task is cancelled.
  func forEach(_ body: () -> Void) async {
    for await _ in signals { body() }
  }
}

/// The signals SIGTERM and SIGINT: one that arrives during the start, or at a standby, exits immediately; afterwards the first
/// one requests a graceful shutdown, one that arrives 200 milliseconds later exits immediately.
struct StopSignals: Sendable {
  private enum Phase {
    case starting, standby, running, stopping, stopped
  }

  private struct State {
    var phase: Phase
    /// When the first signal arrived.
    var stoppingSince = ContinuousClock.now
    var beforeExit: @Sendable () -> Void = {}
  }

  /// The time in which a further signal counts as the same one: `timeout` signals a program and then its process group, and
  /// so do wrappers that pass on what a terminal has sent to the group.
  private static let repetitionTime = Duration.milliseconds(200)

  private let state: NIOLockedValueBox<State>
  private let requests: AsyncStream<UnixSignal>

  /// Traps the signals, which then no longer terminate the program.
  ///
  /// - Parameter isStarting: Whether the start is not complete, until `endStart` is called.
  init(isStarting: Bool = false) async {
    let state = NIOLockedValueBox(State(phase: isStarting ? .starting : .running))
    let (requests, continuation) = AsyncStream.makeStream(of: UnixSignal.self)
    let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
    Task {
      for await signal in signals {
        state.withLockedValue { state in
          switch state.phase {
          case .starting: Self.exit(128 + signal.rawValue)
          case .standby:
            state.beforeExit()
            Self.exit(ExitStatus.done.rawValue)
          case .running:
            (state.phase, state.stoppingSince) = (.stopping, .now)
            continuation.yield(signal)
          case .stopping:
            guard .now - state.stoppingSince > Self.repetitionTime else { break }
            state.beforeExit()
            Self.exit(ExitStatus.interrupted.rawValue)
          case .stopped: break
          }
        }
      }
    }
    self.state = state
    self.requests = requests
  }

  /// Notes that the server is a standby, which has nothing to finish: a signal exits with code 0.
  ///
  /// - Parameter beforeExit: Cleanup before that.
  func beginStandby(beforeExit: @escaping @Sendable () -> Void) {
    state.withLockedValue { state in
      state.phase = .standby
      state.beforeExit = beforeExit
    }
  }

  /// Exits like a signal, if the server is a standby.
  func endStandby() {
    state.withLockedValue { state in
      guard state.phase == .standby else { return }
      state.beforeExit()
      Self.exit(ExitStatus.done.rawValue)
    }
  }

  /// Ends the start: from now on the first signal requests a graceful shutdown.
  func endStart() { state.withLockedValue { $0.phase = .running } }

  /// Returns when the first signal arrives, or at once if it has.
  ///
  /// - Parameter beforeExit: Cleanup before a second signal exits the program with code 130.
  func first(beforeExit: @escaping @Sendable () -> Void) async -> UnixSignal {
    state.withLockedValue { $0.beforeExit = beforeExit }
    for await signal in requests { return signal }
    return .sigterm
  }

  /// Ignores further signals. For use when the shutdown is complete.
  func ignoreFurther() { state.withLockedValue { $0.phase = .stopped } }

  /// Exits at once, after the log was written.
  static func exit(_ code: Int32) -> Never {
    LogPipe.standardError.flush()
    // Not `exit`: its handlers could block on the operation that takes too long.
    _exit(code)
  }
}
