#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

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
    let ending: ChildProcess.Ending
    /// The signal that requested the end; nil if none did.
    let askedBy: Int32?
  }

  /// The window in which a repeated signal is ignored: `timeout`, for example, signals both a process and its group. A
  /// second key press takes longer.
  private static let echo = Duration.milliseconds(500)

  /// Returns when the child has ended. Forwards the first signal to it, unless the terminal has sent it to both; at the
  /// second, kills the child and exits with 130.
  func result() async -> Result {
    var asked: SignalWatch.Arrival?
    for await arrival in signals.arrivals {
      if arrival.number == SIGCHLD {
        if let ending = child.ending() { return Result(ending: ending, askedBy: asked?.number) }
        continue
      }
      if let asked {
        guard arrival.number != asked.number || arrival.time - asked.time > Self.echo else { continue }
        child.send(SIGKILL)
        endAtOnce(ExitStatus.interrupted.rawValue)
      }
      asked = arrival
      // The child has not received a terminal's signal that arrived before it was started.
      if !arrival.isFromTerminal || arrival.time < start { child.send(arrival.number) }
    }
    return Result(ending: child.ending() ?? .exited(ExitStatus.failed.rawValue), askedBy: asked?.number)
  }

  /// Exits at the next signal. For use after the child has ended.
  func endAtNextSignal() {
    Task {
      for await arrival in signals.arrivals where arrival.number != SIGCHLD { endAtOnce(128 + arrival.number) }
    }
  }

  private func endAtOnce(_ code: Int32) -> Never {
    beforeExit()
    LogPipe.standardError.flush()
    // Not `exit`: its handlers could block on the operation that takes too long.
    _exit(code)
  }
}
