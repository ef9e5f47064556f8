internal import APNSMockInbox
internal import MockAPNS
internal import NIOConcurrencyHelpers

/// The number of findings of each kind, for the metrics.
///
/// Counting them takes time in a large inbox, so a request for metrics receives the counts that the request before has started.
final class FindingCounts: Sendable {
  /// The number of the newest pushes whose findings are counted.
  static let records = 100_000
  /// The number of pushes up to which a request waits for the counts.
  private static let waitLimit = 5_000

  private struct State {
    var counts: [Finding.Kind: Int] = [:]
    var isCounting = false
  }

  private let state = NIOLockedValueBox(State())

  /// Starts to count, and returns the counts that are known.
  func counts(of source: ServerState) async -> [Finding.Kind: Int] {
    let isFirst = state.withLockedValue { state in
      defer { state.isCounting = true }
      return !state.isCounting
    }
    if isFirst {
      let count = source.inbox.snapshot().lastSeq
      // Detached, because the end of the request would cancel it.
      let counting = Task.detached { await self.count(source, after: count - Self.records) }
      if count <= Self.waitLimit { await counting.value }
    }
    return state.withLockedValue { $0.counts }
  }

  private func count(_ source: ServerState, after seq: Int) async {
    let summary = try? await QueryExecutor.runLimited {
      var selection = Selection.allKinds
      selection.after = max(0, seq)
      return try await source.inbox.summaryInSlices(of: selection, by: source.rulebook, limit: 0)
    }
    state.withLockedValue { state in
      state.isCounting = false
      // What a failing store cannot show is known from before.
      if let summary { state.counts = summary.items.reduce(into: [:]) { $0[$1.kind] = $1.count } }
    }
  }
}
