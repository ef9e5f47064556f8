import NIOConcurrencyHelpers
import UnixSignals

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// The signals SIGTERM and SIGINT: the first one requests a graceful shutdown, the second one an immediate exit.
struct StopSignals: Sendable {
  private let signals: UnixSignalsSequence
  private let isOver = NIOLockedValueBox(false)

  /// Traps the signals, which then no longer terminate the program.
  init() async { signals = await UnixSignalsSequence(trapping: .sigterm, .sigint) }

  /// Returns when the first signal arrives.
  ///
  /// - Parameter beforeExit: Cleanup before a second signal exits the program with code 130.
  func first(beforeExit: @escaping @Sendable () -> Void) async -> UnixSignal {
    let (stream, continuation) = AsyncStream.makeStream(of: UnixSignal.self)
    Task {
      var hasCome = false
      for await signal in signals {
        if hasCome {
          isOver.withLockedValue { isOver in
            guard !isOver else { return }
            beforeExit()
            LogPipe.standardError.flush()
            // Not `exit`: its handlers could block on the operation that takes too long.
            _exit(ExitStatus.interrupted.rawValue)
          }
        }
        hasCome = true
        continuation.yield(signal)
      }
    }
    for await signal in stream { return signal }
    return .sigterm
  }

  /// Ignores further signals. For use when the shutdown is complete.
  func ignoreTheRest() { isOver.withLockedValue { $0 = true } }
}
