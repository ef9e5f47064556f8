internal import NIOConcurrencyHelpers

/// An inbox whose store others write.
extension Inbox {
  /// The number of the newest records that are analyzed for findings when a view is opened: it takes some hundred milliseconds.
  package static let analyzedAtStart = 16_384

  /// Begins the analysis for findings with the newest records of a store that others write.
  package func analyzeNewestRecords() {
    analyzer.reset(through: max(0, snapshot().lastSeq - Self.analyzedAtStart))
  }

  /// Notes what a store that others write contains now, and notifies the listeners of new records.
  ///
  /// - Throws: `StoreUnavailable` if it cannot be read. Nothing changes then.
  package func followStore() async throws(StoreUnavailable) {
    guard let writer, writer.store.isReadOnly else { return }
    let contents = try await writer.blocking {
      do {
        return try writer.store.currentContents()
      } catch {
        writer.health.didFail(toRead: error)
        throw error
      }
    }
    runs.follow(writer.store.runs)
    if let contents { follow(contents) }
  }

  private func follow(_ contents: StoredContents) {
    let first = state.withLockedValue { state in
      let first = state.nextSeq
      // Another request may have noted newer contents.
      guard contents.lastSeq >= first - 1 else { return Int.max }
      state = State(contents, counts: state.counts)
      return first
    }
    if first <= contents.lastSeq { notifier.signalAppended(to: self, from: first, nil) }
  }
}
