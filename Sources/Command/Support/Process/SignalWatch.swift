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

  /// The received signals in order.
  let arrivals: AsyncStream<Arrival>

  /// Returns whether the parent process has the program ignore a signal, as `nohup` does with SIGHUP.
  static func isIgnored(_ number: Int32) -> Bool {
    var found = sigaction()
    return sigaction(number, nil, &found) == 0 && found.isIgnored
  }

  /// Starts the watch. From now on these signals are only reported. A process can have one watch.
  ///
  /// - Throws: `CommandFailure` if no pipe can be created.
  init(_ numbers: [Int32]) throws {
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
    for number in numbers { Self.watch(number) }
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
