internal import APNSMockNotation

/// The result of a wait.
package struct WaitResult: Sendable {
  /// Whether the condition of the wait was met.
  package let isSatisfied: Bool
  /// Whether the wait was cut short, because the inbox closed or the client disconnected.
  package let isAbandoned: Bool
  /// The number of matching records.
  package let matched: Int
  /// The first `PageQuery.maxLimit` matching records that are still in the inbox, in order, without those of `unread`.
  package let items: [Record]
  /// The `seq` of the records after `items`, which would need too much memory together.
  package let unread: [Int]
  /// The cursor for the next wait: all records up to this `seq` were examined.
  package let seq: Int
  /// The wanted and the found count as text.
  package let message: String
  /// The number of records evicted since the inbox was last emptied.
  package let evicted: Int
  /// Whether no record that could count was evicted before it was examined.
  package let isComplete: Bool
}

extension Inbox {
  /// Waits until the wanted number of records matches, or the timeout expires.
  ///
  /// A record counts if it matches in its current state: a pending one may begin or cease to match when it ends.
  /// Records that are removed or evicted later stay counted; emptying the inbox restarts the count, a
  /// reset with a scope does not.
  ///
  /// The timeout uses the machine's clock. A cancelled task returns at once.
  ///
  /// - Parameter maxBytes: The maximum size of the records that the result keeps in memory if the inbox has a store, in
  ///   bytes. It has only the `seq` of the records after these.
  /// - Throws: `StoreUnavailable` if a matching record cannot be read from the store.
  package func wait(for query: WaitQuery, maxBytes: Int = .max) async throws(StoreUnavailable) -> WaitResult {
    let (termination, counts, seen) = await Waiter(query, in: self).run()
    let snapshot = snapshot()
    var items: [Record] = []
    var unread: [Int] = []
    var bytes = 0
    for seq in counts.matched.prefix(PageQuery.maxLimit) {
      guard bytes <= maxBytes else {
        unread.append(seq)
        continue
      }
      do throws(StoreUnavailable) {
        guard var record = try record(seq: seq) else { continue }
        if snapshot.records.stored != nil {
          bytes += RecordStorage.cost(record)
          // Otherwise it would keep all records in memory that were read with it.
          record.move(to: .ofOne())
        }
        items.append(record)
      } catch {
        if !error.isByReset { throw error }
      }
    }
    return WaitResult(
      isSatisfied: termination == .satisfied, isAbandoned: termination == .abandoned, matched: counts.matched.count,
      items: items, unread: unread, seq: seen,
      message: query.message(termination, counts), evicted: snapshot.evicted, isComplete: counts.isComplete)
  }

  /// The number of listeners for changes: waits, and the event log while it has readers.
  package var listenerCount: Int { notifier.listenerCount }

  /// The number of waits for pushes.
  package var waiterCount: Int { notifier.waiterCount }

  /// Ends all current and future waits, because the server stops.
  package func endWaiting() { notifier.close(self) }
}

extension WaitQuery {
  /// Returns the wanted and the found count as text.
  fileprivate func message(_ termination: Waiter.Termination, _ counts: WaitCounts) -> String {
    let found = counts.matched.isEmpty ? "no push matches" : counts.matched.count.counted("push", "matches", "match")
    switch termination {
    case .satisfied:
      return settle > .zero ? "\(found), and nothing changed for \(DurationFormat.text(settle))" : found
    case .abandoned: return "the wait ended early when \(found)"
    case .unsatisfiable, .timedOut:
      let time = termination == .timedOut ? " after \(DurationFormat.text(timeout))" : ""
      var message = "wanted \(count), and \(found)\(time)"
      if termination == .timedOut, counts.isWanted {
        message += "; the number of matches did not stay unchanged for \(DurationFormat.text(settle))"
      }
      if !counts.isComplete {
        message += "; inconclusive: older pushes were evicted before they were checked"
        message += " (specify after, clear the inbox first, raise --max-records, --max-bytes or --retain, "
        message += "or use --record all)"
      }
      return message
    }
  }

}
