package import APNSMockRules
internal import Dispatch
internal import NIOConcurrencyHelpers

/// The records of all received pushes, in order of arrival, within the configured limits.
///
/// Safe to call from any thread. Writers hold the lock during an append. Readers hold it to take a snapshot, which
/// takes the same time for any number of records, and search outside of it.
package final class Inbox: Sendable {
  struct State {
    /// The records in memory: all of them, or with a store the newest.
    var records = RecordStorage()
    var nextSeq = 1
    var evicted = 0
    var lastEvicted = 0
    var counts = PushCounts()
    /// What the store has and what it lacks; nil without one.
    var stored: StoredState?
  }

  /// The maximum number of records.
  package let maxRecords: Int
  /// Distinguishes this inbox from others, whose pushes have the same numbers; nil for imported records.
  package var id: String? { currentID.withLockedValue(\.self) }
  private let currentID: NIOLockedValueBox<String?>
  /// The maximum memory of the records, in bytes.
  package let maxBytes: Int
  /// The received pushes that are kept. Imported ones always are.
  package let recording: Recording

  // Not Synchronization's Mutex: ThreadSanitizer does not see its futex on Linux and reports every wait as a race.
  let state: NIOLockedValueBox<State>
  /// Writes the records to a store; nil without one.
  package let writer: RecordWriter?
  /// The attempt counts, which distinguish retries from new pushes.
  package let attempts: Attempts
  /// Notifies the listeners of this inbox.
  let notifier = InboxNotifier()
  /// The runs of test suites, whose pushes these are.
  package let runs: RunList
  /// Analyzes the provider's behavior for findings, on demand.
  let analyzer = FindingsAnalyzer()
  /// The server's clock, in milliseconds since 1970; nil for an imported inbox.
  let now: (@Sendable () -> Int64)?
  /// What the server knows of devices and topics; nil for an imported inbox.
  let knownTargets: KnownTargets?

  /// Creates an empty inbox. The limits are at least one record; the newest record is kept whatever its size.
  ///
  /// - Parameters:
  ///   - now: The server's clock, in milliseconds since 1970, for findings about missing retries.
  ///   - writer: The writer of the store that keeps the records; nil for an inbox in memory.
  ///   - knownTargets: The devices and topics that the server knows, for findings about mistaken ones.
  package init(
    maxRecords: Int = 100_000, maxBytes: Int = 256 << 20, recording: Recording = .all,
    attempts: Attempts = Attempts(), writer: RecordWriter? = nil, knownTargets: KnownTargets? = nil,
    now: (@Sendable () -> Int64)? = nil
  ) {
    self.now = now
    self.knownTargets = knownTargets
    self.recording = recording
    self.maxRecords = max(1, maxRecords)
    self.maxBytes = maxBytes
    self.attempts = attempts
    self.writer = writer
    runs = RunList()
    currentID = NIOLockedValueBox(String(UInt64.random(in: (1 << 28)..<(1 << 32)), radix: 16))
    state = NIOLockedValueBox(State(writer?.store))
    guard let writer else { return }
    // Findings that compare several pushes cover those since the start.
    analyzer.reset(through: writer.store.initialContents.lastSeq)
    if !writer.store.isReadOnly { writer.start(self) }
  }

  /// Creates an inbox without limits from imported records, which keep their `seq`, and their runs.
  init(imported records: RecordStorage, lastSeq: Int, runs: [TestRun] = []) {
    self.runs = RunList(runs)
    currentID = NIOLockedValueBox(nil)
    now = nil
    knownTargets = nil
    recording = .all
    maxRecords = .max
    maxBytes = .max
    attempts = Attempts()
    writer = nil
    state = NIOLockedValueBox(State(records: records, nextSeq: lastSeq + 1))
  }

  /// Continues with the id that a store has.
  package func continueID(_ id: String) { currentID.withLockedValue { $0 = id } }

  // MARK: - Writing

  /// Appends the records of one read from a connection and numbers them. Leaves `records` empty and keeps its
  /// capacity.
  ///
  /// The records are visible to all readers when this returns, so the responses may be sent. Older records are
  /// evicted if the limits require it.
  ///
  /// - Parameter isCounted: Whether the records are pushes that this server received.
  /// - Returns: The `seq` of the first record; the others follow without a gap. 0 if there were none.
  @discardableResult
  package func append(_ records: inout [Record], isCounted: Bool = true) -> Int {
    guard !records.isEmpty else { return 0 }
    let deviceTokens = notifier.deviceTokens(of: records)
    let first = state.withLockedValue { state in
      let first = state.nextSeq
      for index in records.indices { records[index].seq = first + index }
      state.nextSeq += records.count
      if isCounted {
        state.counts.add(records)
        let kept = records.count { recording.keeps($0.pushKey) }
        if writer?.countAsLostIfFull(kept, waiting: state.waitingRecords - records.count) ?? false {
          discard(from: &records, &state) { _ in true }
        } else if recording != .all {
          discard(from: &records, &state) { !recording.keeps($0.pushKey) }
        }
      }
      state.stored?.add(records)
      state.records.append(moving: &records)
      if let writer { writer.didAppend(to: &state) } else { evict(from: &state) }
      return first
    }
    notifier.signalAppended(to: self, from: first, deviceTokens)
    return first
  }

  /// Appends one record and returns its `seq`.
  @discardableResult
  package func append(_ record: Record) -> Int {
    var batch = [record]
    return append(&batch)
  }

  /// Sets the result of a pending record, or a part of it: the decision before the ending.
  ///
  /// - Returns: The updated record; nil if it is not in the inbox any more.
  @discardableResult
  package func finish(_ seq: Int, with result: Record.Result) -> Record? {
    if result.outcome != .pending { state.withLockedValue { $0.counts.add(result) } }
    return update(seq) { $0.finish(with: result) }
  }

  /// Changes a record, in memory or in the store, and reports it as updated.
  ///
  /// - Returns: The updated record; nil if there is none, or if it is changed later because no event loop may wait for the store.
  private func update(_ seq: Int, _ change: @escaping @Sendable (inout Record) -> Void) -> Record? {
    let record = state.withLockedValue { state in
      let record = state.records.update(seq, change)
      if let record { state.stored?.change(record) }
      return record
    }
    if record != nil {
      notifier.signalUpdated(seq, in: self)
    } else if let writer {
      writer.laterChanges.add { [self] in
        if writer.update(seq, in: self, change) { notifier.signalUpdated(seq, in: self) }
      }
    }
    return record
  }

  /// Sets the states of the deliveries of pushes, and reports these as updated. Pushes that are not in the inbox are skipped.
  package func setDeliveries(_ changes: [(seq: Int, delivery: DeliveryState)]) {
    guard !changes.isEmpty else { return }
    var updated: [Int] = []
    var older: [(seq: Int, delivery: DeliveryState)] = []
    state.withLockedValue { state in
      for (seq, delivery) in changes {
        if let record = state.records.update(seq, { $0.delivery = delivery }) {
          state.stored?.change(record)
          updated.append(seq)
        } else {
          older.append((seq, delivery))
        }
      }
    }
    notifier.signalUpdated(updated, in: self)
    guard let writer, !older.isEmpty else { return }
    // After the results of these pushes, which may be set later too.
    writer.laterChanges.add { [self, older] in
      state.withLockedValue { state in
        for (seq, delivery) in older { state.stored?.setDelivery(seq, delivery) }
      }
      writer.didChange()
      notifier.signalUpdated(older.map(\.seq), in: self)
    }
  }

  /// Appends the records of an imported inbox with new `seq` values. A pending push counts as disconnected. They
  /// are not counted in `counts`, because this server did not receive them.
  ///
  /// - Parameter isOwn: Whether the export is of this server: its records then belong to the runs and tests of this inbox, and
  ///   the exported ones are not added.
  /// - Returns: The `seq` of the first and the last record; nil if there were none.
  /// - Throws: `StoreUnavailable` if the store fails; then some records may be added, or be added when it works again.
  package func append(imported other: Inbox, isOwn: Bool = false) async throws -> ClosedRange<Int>? {
    func checkStore() throws {
      if let problem = writer?.health.writingProblem { throw StoreUnavailable(problem: problem) }
    }
    try checkStore()
    var range: ClosedRange<Int>?
    var collector = RunCollector()
    let attribution = other.runs.attribution
    var restored: [(seq: Int, owner: RunAttribution.Owner)] = []
    if !isOwn { for run in other.runs.all { collector.add(run.lines) } }
    var iterator = InboxIterator(other.snapshot(), .allKinds)
    while var records = try iterator.next() {
      let owners = attribution.isEmpty ? [] : records.map { (attribution.owner(of: $0), $0.receivedAt) }
      for index in records.indices where records[index].outcome == .pending {
        let decision = records[index].end.decision
        records[index].finish(
          with: Record.Result(
            decision == .pending ? .unknown : decision, .disconnected, sentResponse: records[index].sentResponse,
            wireDetails: records[index].wireDetails, finishedAt: records[index].receivedAt))
      }
      // Records that are not written yet stay in memory.
      while writer?.answers.isBehind == true {
        try checkStore()
        try await Task.sleep(for: .milliseconds(5))
      }
      let count = records.count
      let first = append(&records, isCounted: false)
      if count > 0 { range = (range?.lowerBound ?? first)...(first + count - 1) }
      for (index, (owner, time)) in owners.enumerated() {
        guard let owner else { continue }
        if isOwn {
          restored.append((seq: first + index, owner: owner))
        } else {
          collector.assign(first + index, to: owner, at: time)
        }
      }
      await Task.yield()
    }
    runs.add(imported: collector.imported)
    runs.add(restored: restored)
    guard let range, let writer else { return range }
    while true {
      do throws(StoreUnavailable) {
        try await writer.blocking { try writer.awaitWritten() }
        break
      } catch {
        // Thousands of records may take longer than that waits.
        try checkStore()
        try Task.checkCancellation()
      }
    }
    return range
  }

  /// Removes new records that are not kept.
  private func discard(
    from records: inout [Record], _ state: inout State, where isDiscarded: (borrowing Record) -> Bool
  ) {
    records.removeAll { record in
      guard isDiscarded(record) else { return false }
      state.evicted += 1
      state.counts.addEvicted()
      state.lastEvicted = record.seq
      return true
    }
  }

  private func evict(from state: inout State) {
    while state.records.count > maxRecords || (state.records.bytes > maxBytes && state.records.count > 1),
      let oldest = state.records.removeFirst()
    {
      state.evicted += 1
      state.counts.addEvicted()
      state.lastEvicted = max(state.lastEvicted, oldest)
    }
  }

  /// Removes all records, attempt counts and the count of evicted records, from a store too. The numbering continues.
  ///
  /// - Parameter reset: The names of what is reset together with the inbox, for the event log.
  /// - Returns: The number of records removed.
  @discardableResult
  package func removeAll(reset: [String] = ["inbox"]) -> Int {
    attempts.removeAll()
    // The former records are freed after the lock is released, because that is slow with a million records.
    let former = state.withLockedValue { state in
      let former = state
      state = State()
      state.nextSeq = former.nextSeq
      state.counts = former.counts
      state.stored = former.stored
      state.stored?.empty(through: former.nextSeq - 1)
      writer?.didEmpty(through: former.nextSeq - 1)
      return former
    }
    analyzer.reset(through: former.nextSeq - 1)
    // After a restart nothing of it may be there again.
    writer?.flush()
    notifier.signalEmptied(self, through: former.nextSeq - 1, reset: reset)
    return former.stored?.count ?? former.records.count
  }

  /// Removes the selected records of an inbox in memory.
  ///
  /// - Returns: The number of records removed.
  /// - Throws: `StoreUnavailable` if the store fails.
  @discardableResult
  package func remove(_ selection: Selection) throws(StoreUnavailable) -> Int {
    var seqs: [Int] = []
    try snapshot().records.forEach(in: selection) { record in
      seqs.append(record.seq)
      return true
    }
    return try remove(seqs)
  }

  /// Removes the records with these `seq` values, which must ascend.
  private func remove(_ seqs: [Int]) throws(StoreUnavailable) -> Int {
    let count = state.withLockedValue { state in
      state.stored?.remove(seqs, from: state.records)
      let count = state.records.remove(seqs)
      return state.stored == nil ? count : seqs.count
    }
    try writer?.awaitWritten()
    return count
  }

  /// Removes the selected records like `remove(_:)`, but searches in slices and suspends between them.
  ///
  /// - Returns: The number of records removed.
  /// - Throws: `FilterError` if the selection exceeds the work limit; then no record is removed. `CancellationError` if the
  ///   task was cancelled, `StoreUnavailable` if the store fails; then some may be removed from a store.
  package func removeInSlices(_ selection: Selection) async throws -> Int {
    var count = 0
    var seqs: [Int] = []
    let snapshot = snapshot()
    let attribution = runs.attribution
    // The reports of runs lack these.
    var missing: [String: Int] = [:]
    try await snapshot.forEachSlice(of: selection) { part in
      try snapshot.records.forEach(in: part) { record in
        seqs.append(record.seq)
        if !attribution.isEmpty, let run = attribution.owner(of: record)?.run { missing[run, default: 0] += 1 }
        return true
      }
      // From a store in steps, so that pushes do not wait long for the database.
      while writer != nil, seqs.count >= StoreBatch.removalLimit {
        try removeFirst(StoreBatch.removalLimit, of: &seqs, count: &count)
      }
      return true
    }
    try removeFirst(seqs.count, of: &seqs, count: &count)
    runs.add(missing: missing)
    return count
  }

  /// Removes the selected records, their attempt counts, and their part in the analysis for findings, as if these
  /// pushes had never arrived. Searches in slices and suspends between them.
  ///
  /// - Returns: The number of records removed.
  /// - Throws: `FilterError` if the selection exceeds the work limit; `CancellationError` if the task was cancelled.
  ///   In both cases nothing is reset. `StoreUnavailable` if the store fails; then some records may be removed.
  package func resetInSlices(_ selection: Selection) async throws -> Int {
    var pushes: Set<PushKey> = []
    var seqs: [Int] = []
    let snapshot = snapshot()
    try await snapshot.forEachSlice(of: selection) { part in
      try snapshot.records.forEach(in: part) { record in
        seqs.append(record.seq)
        pushes.insert(record.pushKey)
        // A profile may count attempts by `apns-id`.
        if let key = record.withID({ $0.map(PushKey.init(apnsID:)) }) { pushes.insert(key) }
        return true
      }
      return true
    }
    attempts.remove(pushes)
    let removed = seqs
    var count = 0
    while !seqs.isEmpty {
      try removeFirst(writer == nil ? seqs.count : StoreBatch.removalLimit, of: &seqs, count: &count)
      await Task.yield()
    }
    // The analysis starts again without these records, because its state has no parts that belong to single pushes.
    analyzer.restart { seq in
      let position = removed.position(ofSeq: seq)
      return position == removed.endIndex || removed[position] != seq
    }
    return count
  }

  /// Removes the records with the first of these `seq` values, which must ascend, and adds their number to `count`.
  private func removeFirst(_ number: Int, of seqs: inout [Int], count: inout Int) throws(StoreUnavailable) {
    let number = min(number, seqs.count)
    guard number > 0 else { return }
    do throws(StoreUnavailable) {
      count += try remove(Array(seqs.prefix(number)))
    } catch {
      guard count > 0 else { throw error }
      throw StoreUnavailable(
        problem: "\(count) pushes are removed; repeat the request for the others: \(error.problem)")
    }
    seqs.removeFirst(number)
  }

  /// Records for the findings how a connection was closed. The first call for a connection says who closed it and when;
  /// later ones add what is known afterwards.
  package func recordClose(of connection: ConnectionFacts, _ closing: ConnectionEnd.Closing) {
    analyzer.add(ConnectionEnd(of: connection, .closed(closing)))
  }

  /// Records for the findings that a connection ended while its flow-control window held back responses.
  package func addExhaustedWindow(of connection: ConnectionFacts, responses: Int) {
    analyzer.add(ConnectionEnd(of: connection, .windowExhausted(responses: responses)))
  }

  /// Records a finding that follows neither from the record of a push nor from other records: what happened to it on its way to
  /// the device, or that its client does not verify servers.
  ///
  /// - Parameters:
  ///   - kind: `overwrittenInStorage`, `overwrittenBeforeAck`, `backgroundBudget`, `wouldNotShow` or `trustedAnything`.
  ///   - other: The `seq` of the push that replaced it, or that the device shows instead; nil if none did.
  ///   - problem: Why the device does not show it, for `wouldNotShow`.
  package func addFinding(_ kind: Finding.Kind, seq: Int, by other: Int? = nil, _ problem: DisplayProblem? = nil) {
    // One that has left memory may be in the store, for which no event loop may wait.
    guard writer != nil || state.withLockedValue({ $0.records.record(seq) != nil }) else { return }
    let proof = problem.map(FindingEvidence.Proof.notShown) ?? .kind
    analyzer.addDelivery(FindingEvidence(kind, with: other.map { [$0] } ?? [], proof), to: seq)
    notifier.signalUpdated(seq, in: self)
  }

  // MARK: - Reading

  /// The number of queries that are to run at the same time, because they wait for a store; 1 without one.
  package var concurrentReads: Int { writer?.store.concurrentReads ?? 1 }

  /// Waits until the store has made all changes so far, so that a snapshot has them too: results of pushes that have left memory,
  /// and the removal of what exceeds a limit. Waits at most four seconds, and not while the store fails.
  ///
  /// - Throws: `StoreUnavailable` if others write the store and it cannot be read.
  package func settle() async throws(StoreUnavailable) {
    guard let writer else { return }
    guard !writer.health.isFailing else {
      // A store that cannot be written can often be read, which a change needs whose answer has left.
      if writer.laterChanges.areWaiting {
        _ = try? await writer.blocking { writer.laterChanges.wait(atMost: .milliseconds(500)) }
      }
      return
    }
    if writer.store.isReadOnly { return try await followStore() }
    let isUnsettled = state.withLockedValue { state in
      state.hasOlderChanges || state.stored.map { $0.count > maxRecords || $0.bytes > maxBytes } ?? false
    }
    guard isUnsettled || writer.laterChanges.areWaiting else { return }
    try? await writer.blocking { try writer.awaitChanges() }
  }

  /// Checks that no other server can have taken over the store. Waits at most three seconds until that is known.
  ///
  /// - Throws: `StoreUnavailable` if it is not, or if the store fails.
  package func checkIsActive() async throws {
    guard let writer, writer.store.isRemote else { return }
    for _ in 0..<150 {
      // No request waits for a database that is known to fail.
      if let problem = writer.health.writingProblem { throw StoreUnavailable(problem: problem) }
      if writer.store.isExclusive { return }
      try await Task.sleep(for: .milliseconds(20))
    }
    if let problem = writer.health.exclusivityProblem { throw StoreUnavailable(problem: problem) }
  }

  /// Checks after a request, which may have waited, that no other server has taken over the store in the meantime.
  ///
  /// - Throws: `StoreUnavailable` if that is not known.
  package func checkIsStillActive() async throws {
    if let writer, !writer.store.isExclusive { try await checkIsActive() }
  }

  /// Returns the current content, which later pushes do not change. Does not wait: `settle()` does.
  package func snapshot() -> InboxSnapshot {
    state.withLockedValue { state in
      InboxSnapshot(
        records: SnapshotRecords(
          recent: state.records, stored: writer.flatMap { state.storedRecords(of: $0) }),
        lastSeq: state.nextSeq - 1, evicted: state.evicted, lastEvicted: state.lastEvicted)
    }
  }

  /// The counts of all pushes so far.
  package var counts: PushCounts { state.withLockedValue { $0.counts } }

  /// Returns the record with this `seq`; nil if it is not in the inbox or not any more.
  ///
  /// - Parameter leavesOutDamage: Whether a record whose row is damaged counts as one that is not in the inbox.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package func record(seq: Int, leavesOutDamage: Bool = false) throws(StoreUnavailable) -> Record? {
    var (record, stored) = state.withLockedValue { state -> (Record?, StoredRecords?) in
      let record = state.records.record(seq) ?? state.stored?.changedRecord(seq)
      return (record, record == nil ? writer.flatMap { state.storedRecords(of: $0) } : nil)
    }
    if leavesOutDamage { stored?.skipped = StoredRecords.Skipped() }
    if record == nil { record = try stored?.record(seq) }
    return record
  }
}
