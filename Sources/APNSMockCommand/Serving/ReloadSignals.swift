import UnixSignals

/// A sequence of SIGHUP signals, which request a reload of the fault profiles.
struct ReloadSignals: Sendable {
  private let signals: UnixSignalsSequence

  /// Traps the signal, which then no longer terminates the program.
  init() async { signals = await UnixSignalsSequence(trapping: .sighup) }

  /// Calls `body` for each signal since the creation, until the task is cancelled.
  func forEach(_ body: () -> Void) async {
    for await _ in signals { body() }
  }
}
