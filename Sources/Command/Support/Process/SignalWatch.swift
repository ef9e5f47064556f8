import APNSMockClientCommands
import Dispatch
import APNSMockPlatformLibc

/// A stream of arriving signals that also reports whether a terminal sent them. A terminal signals its whole foreground
/// group, so a child already has such a signal. Dispatch sources do not report this.
struct SignalWatch: Sendable {
  /// A received signal.
  struct Arrival: Sendable {
    let number: Int32
    /// Whether the kernel sent the signal to the whole process group.
    let isFromTerminal: Bool
    /// When the signal arrived.
    let time: ContinuousClock.Instant
  }

  /// The signals that request termination.
  static let terminationSignals = [SIGTERM, SIGINT, SIGHUP, SIGQUIT]

  /// The received signals in order.
  let arrivals: AsyncStream<Arrival>
  /// The signals that the parent process did not ignore (as `nohup` ignores SIGHUP). A child gets their default action.
  let inheritable: [Int32]

  /// Starts the watch. From now on the termination signals that are not ignored, and SIGCHLD, are only reported. A
  /// process can have one watch.
  ///
  /// - Throws: `CommandFailure` if no pipe can be created.
  init() throws {
    inheritable = (Self.terminationSignals + [SIGPIPE]).filter { number in
      var found = sigaction()
      return sigaction(number, nil, &found) != 0 || !found.isIgnored
    }
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else {
      throw CommandFailure(.failed, "cannot create a pipe for signals: \(String(cString: strerror(errno)))")
    }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    signalPipe = ends[1]
    let (stream, continuation) = AsyncStream.makeStream(of: Arrival.self)
    let readEnd = ends[0]
    let source = DispatchSource.makeReadSource(fileDescriptor: readEnd)
    source.setEventHandler {
      // Keeps the source alive as long as the process.
      withExtendedLifetime(source) {}
      var pair: (number: UInt8, isFromTerminal: UInt8) = (0, 0)
      while withUnsafeMutableBytes(of: &pair, { read(readEnd, $0.baseAddress, $0.count) }) == 2 {
        continuation.yield(
          Arrival(number: Int32(pair.number), isFromTerminal: pair.isFromTerminal != 0, time: .now))
      }
    }
    source.activate()
    arrivals = stream
    for number in inheritable + [SIGCHLD] where number != SIGPIPE { Self.watch(number) }
  }

  private static func watch(_ number: Int32) {
    var action = sigaction()
    action.setHandler { number, information, _ in
      // Only async-signal-safe calls such as `write` are allowed here, and a write of two bytes to a pipe is atomic.
      let saved = errno
      let isFromTerminal = information.map { $0.pointee.si_code == terminalCode } ?? false
      var pair: (UInt8, UInt8) = (UInt8(truncatingIfNeeded: number), isFromTerminal ? 1 : 0)
      _ = write(signalPipe, &pair, 2)
      errno = saved
    }
    sigemptyset(&action.sa_mask)
    action.sa_flags = SA_SIGINFO | SA_RESTART | (number == SIGCHLD ? SA_NOCLDSTOP : 0)
    sigaction(number, &action, nil)
  }
}

/// The pipe the signal handler writes to. Set before a handler is installed.
nonisolated(unsafe) private var signalPipe: Int32 = -1

#if os(Linux)
  /// The `si_code` of signals that the kernel sent: SI_KERNEL, which Swift cannot import.
  private let terminalCode: Int32 = 0x80
#else
  private let terminalCode: Int32 = 0
#endif

extension sigaction {
  fileprivate typealias Handler =
    @convention(c) (Int32, UnsafeMutablePointer<siginfo_t>?, UnsafeMutableRawPointer?) ->
    Void

  #if canImport(Darwin)
    fileprivate mutating func setHandler(_ handler: @escaping Handler) { __sigaction_u.__sa_sigaction = handler }
  #else
    fileprivate mutating func setHandler(_ handler: @escaping Handler) { __sigaction_handler.sa_sigaction = handler }
  #endif

  /// Whether the signal is ignored.
  fileprivate var isIgnored: Bool {
    #if canImport(Darwin)
      let handler = __sigaction_u.__sa_handler
    #else
      let handler = __sigaction_handler.sa_handler
    #endif
    return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}

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
    LogPipe.standardError.flush()
    // Not `exit`: its handlers could block on the operation that takes too long.
    _exit(code)
  }
}
