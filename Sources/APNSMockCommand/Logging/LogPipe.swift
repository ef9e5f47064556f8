import NIOConcurrencyHelpers

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Where log lines go. A server must not stand still because whoever started it does not read its standard error, as many a
/// test does: once the pipe is full, and stays so for a moment, lines are dropped and counted until there is room again.
final class LogPipe: Sendable {
  /// The one of this process.
  static let standardError = LogPipe(.error)

  /// How long the first line waits that finds the pipe full, in milliseconds: a reader that is merely slow misses nothing.
  private static let patience: Int32 = 200
  /// A pipe that takes anything takes as many bytes (PIPE_BUF), so that writing does not wait.
  private static let piece = 4096

  private struct State {
    var isStuck = false
    var dropped = 0
  }

  private let stream: StandardStream
  private let state = NIOLockedValueBox(State())

  /// Lines for one of the two streams, of which there may be one each.
  init(_ stream: StandardStream) { self.stream = stream }

  /// Writes a line with its line break.
  ///
  /// - Parameter gap: what stands in the place of so many dropped lines.
  func write(_ line: [UInt8], gap: (Int) -> [UInt8]) {
    state.withLockedValue { state in
      var rest = (state.dropped > 0 ? gap(state.dropped) + line : line)[...]
      while !rest.isEmpty {
        guard takes(within: state.isStuck ? 0 : Self.patience) else {
          state.isStuck = true
          state.dropped += 1
          return
        }
        stream.write(rest.prefix(Self.piece))
        rest = rest.dropFirst(Self.piece)
      }
      state = State()
    }
  }

  /// Whether the stream takes something, or will never again, which is for `write` to find out.
  private func takes(within milliseconds: Int32) -> Bool {
    var asked = pollfd(fd: stream.rawValue, events: Int16(POLLOUT), revents: 0)
    let ready = poll(&asked, 1, milliseconds)
    return ready != 0
  }
}
