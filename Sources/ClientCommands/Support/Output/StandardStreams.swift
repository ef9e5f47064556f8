import NIOConcurrencyHelpers
import APNSMockPlatformLibc
import Synchronization

/// The program's output streams: data goes to standard output, diagnostics to standard error.
///
/// Diagnostics that cannot be written are dropped. Lost data is reported at the end of the program and by its exit
/// code.
///
/// Each call is one `write`, so that lines of several threads do not mix and no buffer must be flushed at exit.
package enum StandardStream: Int32 {
  case output = 1
  case error = 2

  /// Whether the stream is a terminal.
  package var isTerminal: Bool { isatty(rawValue) != 0 }

  /// Whether colors may be used (https://no-color.org).
  package var supportsColor: Bool {
    func isSet(_ name: String) -> Bool { getenv(name).map { $0.pointee != 0 } ?? false }
    return isTerminal && !isSet("NO_COLOR") && getenv("TERM").map { String(cString: $0) } != "dumb"
  }

  /// Writes bytes. On standard error, first flushes earlier log lines, for at most one second.
  ///
  /// - Returns: Whether all bytes were written.
  @discardableResult
  package func write(_ bytes: some Collection<UInt8>) -> Bool {
    if self == .error { LogPipe.standardError.flush() }
    return writeDirectly(bytes)
  }

  /// Writes bytes without flushing queued log lines.
  ///
  /// - Returns: Whether all bytes were written.
  @discardableResult
  func writeDirectly(_ bytes: some Collection<UInt8>) -> Bool {
    guard writeAll(Self.terminals.contains(self) ? escaped(bytes) : Array(bytes), to: rawValue) else {
      // EPIPE is no error: the reader needed no more (`apns-mock ls | head -1`).
      if self == .output, errno != EPIPE { outputFailure.store(errno, ordering: .relaxed) }
      return false
    }
    return true
  }

  /// The streams that are terminals.
  private static let terminals = Set([output, error].filter(\.isTerminal))

  private func escaped(_ bytes: some Collection<UInt8>) -> [UInt8] {
    terminalTexts.withLockedValue { $0[self, default: TerminalText()].escaped(bytes) }
  }

  /// The system's reason if data for standard output was lost, such as `No space left on device`.
  package static var loss: String? {
    let number = outputFailure.load(ordering: .relaxed)
    return number == 0 ? nil : String(cString: strerror(number))
  }

  /// Opens `/dev/null` for standard streams that the parent process closed (`>&-`), so that no connection gets such a
  /// file descriptor and, with it, the program's output. Reading and writing fail as before.
  package static func fillGaps() {
    for (number, mode) in [(0, O_WRONLY), (output.rawValue, O_RDONLY), (error.rawValue, O_RDONLY)] {
      // `open` returns the lowest free descriptor, which is this one.
      if fcntl(number, F_GETFD) < 0 { _ = open("/dev/null", mode | O_CLOEXEC) }
    }
  }

  /// Writes a line.
  package func line(_ text: String) { write(Array(text.utf8) + [UInt8(ascii: "\n")]) }
}

/// The `errno` of the last lost write to standard output; 0 if nothing was lost.
private let outputFailure = Atomic<Int32>(0)

/// The escaping state of each stream that is a terminal.
private let terminalTexts = NIOLockedValueBox<[StandardStream: TerminalText]>([:])
