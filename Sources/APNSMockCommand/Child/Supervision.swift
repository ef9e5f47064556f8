#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Watches over a child: passes on the signals that ask for an end, and waits for it.
struct Supervision: Sendable {
  let signals: SignalWatch
  let child: ChildProcess
  /// When it was started.
  let start = ContinuousClock.now
  /// What is done before everything ends at once.
  let beforeExit: @Sendable () -> Void

  /// How a child ended, and why.
  struct Result: Sendable {
    let ending: ChildProcess.Ending
    /// The signal that asked for the end; nil if none did.
    let askedBy: Int32?
  }

  /// One signal comes twice where it is sent to a process and to its group, as `timeout` does. Who presses a key again
  /// takes longer.
  private static let echo = Duration.milliseconds(500)

  /// Returns when the child has ended. The first signal is passed on to it, unless it has it from the terminal; at the
  /// second, it is killed and everything ends with 130.
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
      // What the terminal sent before there was a child, the child has not seen.
      if !arrival.isFromTerminal || arrival.time < start { child.send(arrival.number) }
    }
    return Result(ending: child.ending() ?? .exited(ExitStatus.failed.rawValue), askedBy: asked?.number)
  }

  /// After the child has ended nothing is left that a signal could be passed on to: the next one ends everything.
  func endAtNextSignal() {
    Task {
      for await arrival in signals.arrivals where arrival.number != SIGCHLD { endAtOnce(128 + arrival.number) }
    }
  }

  private func endAtOnce(_ code: Int32) -> Never {
    beforeExit()
    LogPipe.standardError.flush()
    // Not `exit`: what runs then could wait for the very thing that takes too long.
    _exit(code)
  }
}
