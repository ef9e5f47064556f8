internal import APNSMockRules
internal import NIOConcurrencyHelpers
internal import APNSMockNotation

extension Inbox {
  /// The most records of the former server that are read when this one starts: they take about a second.
  private static let formerRecordLimit = 16_384

  /// Continues where the former server ended: numbers the attempts of a push after those of the last ten minutes, and analyzes
  /// these for findings. Its connections count as reset by the server. Waits for the store.
  ///
  /// - Parameter identifiesByID: Whether attempts belong to the same push if they have the same `apns-id`, whatever their content.
  /// - Returns: The records of these ten minutes, in ascending order.
  package func continueFormerServer(identifiesByID: Bool) -> [Record] {
    guard let writer, writer.store.initialContents.lastSeq > writer.emptiedThrough else { return [] }
    let now = MachineTime.nanoseconds
    var records: [Record] = []
    let newestFirst = StoreQuery(
      .allKinds, after: writer.emptiedThrough, before: writer.store.initialContents.lastSeq + 1, newestFirst: true)
    // What is older than a damaged record is not used. Queries that need it report it.
    try? writer.store.forEach(newestFirst) { record in
      // In a file, times are those of the machine since it was started: later ones are of an earlier start.
      guard (now - AttemptCounter.retryWindow...now).contains(record.arrivedAt) else { return false }
      records.append(copy record)
      return records.count < Self.formerRecordLimit
    }
    records.reverse()
    guard let first = records.first?.seq else { return [] }
    analyzer.reset(through: first - 1)
    var unresolved: [PushKey: (key: AttemptKey, last: Int32, unprocessed: Int32, at: MonotonicTime)] = [:]
    var connections: Set<UInt64> = []
    for record in records where !record.isImported {
      if connections.insert(record.connection.identity).inserted {
        let closing = ConnectionEnd.Closing(by: .server, at: now, lastReceivedAt: record.arrivedAt, isReset: true)
        analyzer.add(ConnectionEnd(of: record.connection, .closed(closing)))
      }
      let id = record.withID { $0.map(PushKey.init(apnsID:)) }
      let key = AttemptKey(push: identifiesByID ? id ?? record.pushKey : record.pushKey, id: id)
      guard record.outcome != .accepted else {
        unresolved[key.push] = nil
        continue
      }
      let former = record.attempt > 1 ? unresolved[key.push]?.unprocessed ?? 0 : 0
      unresolved[key.push] = (
        key, record.attempt, former + (record.end.decision == .notProcessed ? 1 : 0), record.arrivedAt
      )
    }
    for (key, last, unprocessed, at) in unresolved.values.sorted(by: { $0.at < $1.at }) {
      attempts.restore(key, last: last, unprocessed: unprocessed, at: at)
    }
    return records
  }

  /// Calls `visit` with the newest pushes below `seq` that wait for their device or have waited, and with some records between
  /// them, in ascending order. Waits for the store.
  package func forEachDeliveryOfStorage(before seq: Int, _ visit: (borrowing Record) -> Void) {
    guard let writer, let seqs = try? writer.store.seqsOfStorage(limit: Self.formerRecordLimit),
      var stored = state.withLockedValue({ $0.storedRecords(of: writer) })
    else { return }
    // Damaged ones are left out. Queries that need them report them.
    stored.skipped = StoredRecords.Skipped()
    try? stored.forEach(in: seqs.filter { $0 < seq }, visit)
  }
}
