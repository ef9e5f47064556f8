import NIOConcurrencyHelpers
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The two streams of the program: data goes to standard output, words go to standard error.
///
/// Words that nobody can take are dropped. Data is not: what is lost of it is told at the end, and by the exit code.
///
/// Each call is one `write`, so that lines of several threads do not mix and nothing is left in a buffer at the end.
enum StandardStream: Int32 {
  case output = 1
  case error = 2

  /// Whether a person looks at it.
  var isTerminal: Bool { isatty(rawValue) != 0 }

  /// Whether colours are welcome (https://no-color.org).
  var takesColours: Bool {
    func isSet(_ name: String) -> Bool { getenv(name).map { $0.pointee != 0 } ?? false }
    return isTerminal && !isSet("NO_COLOR") && getenv("TERM").map { String(cString: $0) } != "dumb"
  }

  /// Writes bytes; on standard error, after the log lines logged before, unless those find no reader within a second.
  ///
  /// - Returns: whether all of them were written.
  @discardableResult
  func write(_ bytes: some Collection<UInt8>) -> Bool {
    if self == .error { LogPipe.standardError.flush() }
    return writeDirectly(bytes)
  }

  /// Writes bytes without regard to log lines that still wait.
  ///
  /// - Returns: whether all of them were written.
  @discardableResult
  func writeDirectly(_ bytes: some Collection<UInt8>) -> Bool {
    var rest = (Self.terminals.contains(self) ? escaped(bytes) : Array(bytes))[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { systemWrite(rawValue, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN {
        // Whoever shares the pipe with us has made it one that does not wait.
        var asked = pollfd(fd: rawValue, events: Int16(POLLOUT), revents: 0)
        poll(&asked, 1, -1)
        continue
      }
      guard count > 0 else {
        // Nobody reads it any more (`apns-mock ls | head -1`): there is nobody to tell either.
        if self == .output, errno != EPIPE { outputFailure.store(errno, ordering: .relaxed) }
        return false
      }
      rest = rest.dropFirst(count)
    }
    return true
  }

  /// The streams that are terminals.
  private static let terminals = Set([output, error].filter(\.isTerminal))

  private func escaped(_ bytes: some Collection<UInt8>) -> [UInt8] {
    terminalTexts.withLockedValue { $0[self, default: TerminalText()].escaped(bytes) }
  }

  /// What became of standard output, if not all data got there: `No space left on device`.
  static var loss: String? {
    let number = outputFailure.load(ordering: .relaxed)
    return number == 0 ? nil : String(cString: strerror(number))
  }

  /// Takes the numbers of streams which whoever started this program has closed (`>&-`), so that no connection of ours gets
  /// one of them and, with it, what is written there. Reading and writing fail as before.
  static func fillGaps() {
    for (number, mode) in [(0, O_WRONLY), (output.rawValue, O_RDONLY), (error.rawValue, O_RDONLY)] {
      // The lowest number that is free, which is this one.
      if fcntl(number, F_GETFD) < 0 { _ = open("/dev/null", mode | O_CLOEXEC) }
    }
  }

  /// Writes a line.
  func line(_ text: String) { write(Array(text.utf8) + [UInt8(ascii: "\n")]) }
}

/// The system's reason why data could not be written; 0 if all could.
private let outputFailure = Atomic<Int32>(0)

/// What was written to terminals, as far as the next bytes depend on it.
private let terminalTexts = NIOLockedValueBox<[StandardStream: TerminalText]>([:])

private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawPointer?, _ count: Int) -> Int {
  write(descriptor, bytes, count)
}
