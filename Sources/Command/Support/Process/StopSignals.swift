import APNSMockClientCommands
import APNSMockPlatformLibc
import NIOConcurrencyHelpers

/// The signals SIGTERM and SIGINT: one that arrives during the start, or at a standby, exits immediately; afterwards the first
/// one requests a graceful shutdown, one that arrives 200 milliseconds later exits immediately.
struct StopSignals: Sendable {
  private enum Phase {
    case starting, standby, running, stopping, stopped
  }

  private struct State {
    var phase: Phase
    /// When the first signal arrived.
    var stoppingSince = ContinuousClock.now
    var beforeExit: @Sendable () -> Void = {}
  }

  /// The time in which a further signal counts as the same one: `timeout` signals a program and then its process group, and
  /// so do wrappers that pass on what a terminal has sent to the group.
  private static let repetitionTime = Duration.milliseconds(200)

  private let state: NIOLockedValueBox<State>
  /// The first signal.
  private let requests: AsyncStream<Int32>
  /// The SIGHUP signals, which request a reload of the fault profiles.
  let reloads: AsyncStream<Void>

  /// Watches the signals, which then no longer terminate the program.
  ///
  /// - Parameters:
  ///   - isStarting: Whether the start is not complete, until `endStart` is called.
  ///   - reloadsProfiles: Whether SIGHUP is one of the signals.
  /// - Throws: `CommandFailure` if no pipe can be created.
  init(isStarting: Bool = false, reloadsProfiles: Bool = false) throws {
    let state = NIOLockedValueBox(State(phase: isStarting ? .starting : .running))
    let (requests, request) = AsyncStream.makeStream(of: Int32.self)
    let (reloads, reload) = AsyncStream.makeStream(of: Void.self)
    let signals = try SignalWatch([SIGTERM, SIGINT] + (reloadsProfiles ? [SIGHUP] : []))
    Task {
      for await signal in signals.arrivals {
        guard signal.number != SIGHUP else {
          reload.yield()
          continue
        }
        state.withLockedValue { state in
          switch state.phase {
          case .starting: Self.exit(128 + signal.number)
          case .standby:
            state.beforeExit()
            Self.exit(ExitStatus.done.rawValue)
          case .running:
            (state.phase, state.stoppingSince) = (.stopping, .now)
            request.yield(signal.number)
          case .stopping:
            guard .now - state.stoppingSince > Self.repetitionTime else { break }
            state.beforeExit()
            Self.exit(ExitStatus.interrupted.rawValue)
          case .stopped: break
          }
        }
      }
    }
    self.state = state
    self.requests = requests
    self.reloads = reloads
  }

  /// Notes that the server is a standby, which has nothing to finish: a signal exits with code 0.
  ///
  /// - Parameter beforeExit: Cleanup before that.
  func beginStandby(beforeExit: @escaping @Sendable () -> Void) {
    state.withLockedValue { state in
      state.phase = .standby
      state.beforeExit = beforeExit
    }
  }

  /// Exits like a signal, if the server is a standby.
  func endStandby() {
    state.withLockedValue { state in
      guard state.phase == .standby else { return }
      state.beforeExit()
      Self.exit(ExitStatus.done.rawValue)
    }
  }

  /// Ends the start: from now on the first signal requests a graceful shutdown.
  func endStart() { state.withLockedValue { $0.phase = .running } }

  /// Returns the name of the first signal when it arrives, or at once if it has.
  ///
  /// - Parameter beforeExit: Cleanup before a second signal exits the program with code 130.
  func first(beforeExit: @escaping @Sendable () -> Void) async -> String {
    state.withLockedValue { $0.beforeExit = beforeExit }
    for await signal in requests { return signal == SIGINT ? "SIGINT" : "SIGTERM" }
    return "SIGTERM"
  }

  /// Ignores further signals. For use when the shutdown is complete.
  func ignoreFurther() { state.withLockedValue { $0.phase = .stopped } }

  /// Exits at once, after the log was written.
  static func exit(_ code: Int32) -> Never {
    LogPipe.standardError.flush()
    // Not `exit`: its handlers could block on the operation that takes too long.
    _exit(code)
  }
}
