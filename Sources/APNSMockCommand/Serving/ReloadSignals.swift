import UnixSignals

/// SIGHUP: the fault profiles are to be read again.
struct ReloadSignals: Sendable {
  private let signals: UnixSignalsSequence

  /// From now on the signal no longer ends the program.
  init() async { signals = await UnixSignalsSequence(trapping: .sighup) }

  /// Does something for each signal, also for one that came before, until the task is cancelled.
  func forEach(_ body: () -> Void) async {
    for await _ in signals { body() }
  }
}
