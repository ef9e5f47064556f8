import APNSMockClientCommands
import APNSMockPlatformLibc

/// Supervises a child process: forwards termination signals and waits for its end.
struct Supervision: Sendable {
  let signals: SignalWatch
  let child: ChildProcess
  /// When the child was started.
  let start = ContinuousClock.now
  /// Cleanup before an immediate exit.
  let beforeExit: @Sendable () -> Void

  /// How a child ended and which signal, if any, requested it.
  struct Result: Sendable {
    let exit: ChildProcess.Exit
    /// The signal that requested the end; nil if none did.
    let requestedBy: Int32?
  }

  /// The window in which a repeated signal is ignored: `timeout`, for example, signals both a process and its group. A
  /// second key press takes longer.
  private static let repeatWindow = Duration.milliseconds(500)

  /// Returns when the child has ended. Forwards the first signal to it, unless the terminal has sent it to both; at the
  /// second, kills the child and exits with 130.
  func result() async -> Result {
    var requested: SignalWatch.Arrival?
    for await arrival in signals.arrivals {
      if arrival.number == SIGCHLD {
        if let exit = child.exit() { return Result(exit: exit, requestedBy: requested?.number) }
        continue
      }
      if let requested {
        guard arrival.number != requested.number || arrival.time - requested.time > Self.repeatWindow else { continue }
        child.send(SIGKILL)
        exitImmediately(ExitStatus.interrupted.rawValue)
      }
      requested = arrival
      // The child has not received a terminal's signal that arrived before it was started.
      if !arrival.isFromTerminal || arrival.time < start { child.send(arrival.number) }
    }
    return Result(exit: child.exit() ?? .exited(ExitStatus.failed.rawValue), requestedBy: requested?.number)
  }

  /// Exits at the next signal. For use after the child has ended.
  func exitAtNextSignal() {
    Task {
      for await arrival in signals.arrivals where arrival.number != SIGCHLD { exitImmediately(128 + arrival.number) }
    }
  }

  private func exitImmediately(_ code: Int32) -> Never {
    beforeExit()
    StopSignals.exit(code)
  }
}
