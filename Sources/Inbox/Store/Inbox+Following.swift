internal import NIOConcurrencyHelpers

/// An inbox whose store others write.
extension Inbox {
  /// The number of the newest records that are analyzed for findings when a view is opened: it takes some hundred milliseconds.
  private static let analyzedAtStart = 16_384

  /// Begins the analysis for findings with the newest records of a store that others write.
  package func analyzeNewestRecords() {
    analyzer.reset(through: max(0, snapshot().lastSeq - Self.analyzedAtStart))
  }

  /// Notes what a store that others write contains now, and notifies the listeners of new records.
  ///
  /// - Throws: `StoreUnavailable` if it cannot be read. Nothing changes then.
  package func followStore() async throws(StoreUnavailable) {
    guard let writer else { return }
    let contents = try await writer.blocking {
      do {
        return try writer.store.currentContents()
      } catch {
        writer.health.didFail(toRead: error)
        throw error
      }
    }
    if let contents { follow(contents) }
  }

  /// Returns the record that a view of several servers names by server and number, such as `load_1:4711`; nil if there is none.
  ///
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package func record(named name: String) throws(StoreUnavailable) -> Record? {
    let stored = state.withLockedValue { state in writer.flatMap { state.storedRecords(of: $0) } }
    guard let seq = try stored?.seq(named: name), let record = try record(seq: seq) else { return nil }
    // Records may have been removed and others have their numbers in the meantime.
    if let origin = record.origin, "\(origin.server):\(origin.seq)" != name { return nil }
    return record
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
