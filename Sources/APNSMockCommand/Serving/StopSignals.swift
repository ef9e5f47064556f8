import NIOConcurrencyHelpers
import UnixSignals

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// SIGTERM and SIGINT: the first asks for an end in order, the second for an end at once, unless that is reached already.
struct StopSignals: Sendable {
  private let signals: UnixSignalsSequence
  private let isOver = NIOLockedValueBox(false)

  /// From now on signals no longer end the program by themselves.
  init() async { signals = await UnixSignalsSequence(trapping: .sigterm, .sigint) }

  /// Returns when the first signal came.
  ///
  /// - Parameter beforeExit: what a second signal still does before it ends the program with exit code 130.
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
            // Not `exit`: what runs then could wait for the very thing that takes too long.
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

  /// Everything is done: from now on no signal changes how the program ends.
  func ignoreTheRest() { isOver.withLockedValue { $0 = true } }
}
