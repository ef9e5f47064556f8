import Dispatch

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Signals as they come, and whether a terminal sent them: it sends them to all of its foreground group, so that a
/// child has them already. Dispatch and what builds on it do not tell that.
struct SignalWatch: Sendable {
  /// A signal that came.
  struct Arrival: Sendable {
    let number: Int32
    /// Whether the system sent it by itself, to the whole process group.
    let isFromTerminal: Bool
    /// Machine time.
    let time: ContinuousClock.Instant
  }

  /// What asks a program to end.
  static let endings = [SIGTERM, SIGINT, SIGHUP, SIGQUIT]

  /// What came, one after the other.
  let arrivals: AsyncStream<Arrival>
  /// Those which a child may meet as if nobody had touched them: whoever started this program did not have them ignored,
  /// as `nohup` does with SIGHUP.
  let untouched: [Int32]

  /// From now on the endings that are not ignored, and the end of a child, are told and do nothing else. Only one watch
  /// can be in a process.
  ///
  /// - Throws: `CommandFailure` if the system has no pipe to spare.
  init() throws {
    untouched = (Self.endings + [SIGPIPE]).filter { number in
      var found = sigaction()
      return sigaction(number, nil, &found) != 0 || !found.isIgnored
    }
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else {
      throw CommandFailure(.failed, "no pipe for signals: \(String(cString: strerror(errno)))")
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
      // As long as the process lives, so does what reads.
      withExtendedLifetime(source) {}
      var pair: (number: UInt8, isFromTerminal: UInt8) = (0, 0)
      while withUnsafeMutableBytes(of: &pair, { read(readEnd, $0.baseAddress, $0.count) }) == 2 {
        continuation.yield(
          Arrival(number: Int32(pair.number), isFromTerminal: pair.isFromTerminal != 0, time: .now))
      }
    }
    source.activate()
    arrivals = stream
    for number in untouched + [SIGCHLD] where number != SIGPIPE { Self.watch(number) }
  }

  private static func watch(_ number: Int32) {
    var action = sigaction()
    action.tells { number, information, _ in
      // Nothing but a write is allowed here, and two bytes go into a pipe whole.
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

/// Where the handler writes. Set before there is a handler.
nonisolated(unsafe) private var signalPipe: Int32 = -1

#if os(Linux)
  /// `si_code` of what the kernel sent by itself: SI_KERNEL, which the system's headers have among others as a macro.
  private let terminalCode: Int32 = 0x80
#else
  private let terminalCode: Int32 = 0
#endif

extension sigaction {
  fileprivate typealias Handler =
    @convention(c) (Int32, UnsafeMutablePointer<siginfo_t>?, UnsafeMutableRawPointer?) ->
    Void

  #if canImport(Darwin)
    fileprivate mutating func tells(_ handler: @escaping Handler) { __sigaction_u.__sa_sigaction = handler }
  #else
    fileprivate mutating func tells(_ handler: @escaping Handler) { __sigaction_handler.sa_sigaction = handler }
  #endif

  /// Whether the signal does nothing.
  fileprivate var isIgnored: Bool {
    #if canImport(Darwin)
      let handler = __sigaction_u.__sa_handler
    #else
      let handler = __sigaction_handler.sa_handler
    #endif
    return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }
}
