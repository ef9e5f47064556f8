internal import APNSMockRules
internal import Dispatch
internal import NIOConcurrencyHelpers
internal import APNSMockNotation
internal import APNSMockPlatformLibc
internal import Synchronization

/// Writes the records of an inbox to a store, in batches and on a thread of its own, so that no push waits for the
/// database unless answers have to.
package final class RecordWriter: Sendable {
  /// Figures about writing, since the start.
  package struct Figures: Sendable {
    /// The number of batches written.
    package fileprivate(set) var batches = 0
    /// The number of records written.
    package fileprivate(set) var records = 0
    /// The size of the last batch with records, in records.
    package fileprivate(set) var lastBatch = 0
    /// The time that writing the last batch with records took.
    package fileprivate(set) var lastLatency = Duration.zero
    /// The time that writing took in all.
    package fileprivate(set) var time = Duration.zero
    /// The CPU time of the thread that writes.
    package fileprivate(set) var processorTime = Duration.zero
    /// The number of records that were lost because the store failed.
    package fileprivate(set) var lost = 0
    /// The number of pushes that were refused because the store failed.
    package fileprivate(set) var refused = 0
    /// What is wrong with the store; nil if nothing is.
    package fileprivate(set) var problem: String?
  }

  /// The number of records that may wait to be written. While more of them wait, answers wait too.
  private static let backlogLimit = 10_000
  /// The number of records that are written without waiting for more.
  private static let usualBatch = 1024
  /// The microseconds to wait for more records, so that a batch has many of them.
  private static let collectingTime: UInt32 = 5_000
  /// The maximum number of new records in one transaction.
  package static let batchLimit = 16_384
  /// The size of the new records in one transaction of a remote store, in bytes: a slow network transmits them within the time
  /// that the database has to execute a command.
  private static let remoteBatchBytes = 4 << 20
  /// The nanoseconds that writing may take after the server has stopped.
  private static let stopTime: Int64 = 5_000_000_000
  /// The number of seqs without a record in the store after which the newest seq is stored nevertheless.
  private static let unstoredLimit = 16_384
  /// The time between two checks of the age of records.
  private static let retentionInterval = Duration.seconds(10)
  /// The number of new records after which they are analyzed in the background: half of those in memory by default.
  private static let analysisInterval = 16_384
  /// The nanoseconds between two attempts to write while the store fails, and between two checks of the limits.
  private static let retryTime: Int64 = 250_000_000
  package let store: any RecordStore
  package let options: Options
  /// What is wrong with the store.
  package let health: StoreHealth
  /// What answers wait for.
  package let answers: AnswerGate
  /// What the store keeps of the server besides its records.
  package let serverState = StoredServerState()

  private struct State {
    var figures = Figures()
    /// The number of records that could not be written when the server ended.
    var lostAtEnd = 0
    var analyze: (@Sendable () -> Void)?
  }

  /// What only the thread that writes uses.
  private struct Progress {
    var lastRetention: ContinuousClock.Instant?
    var storedSeq: Int
    /// The newest `seq` when the last analysis in the background began.
    var analyzedSeq: Int
    /// The number of batches so far.
    var batches = 0
    /// Whether the server has stopped and the store has failed for too long since.
    var hasGivenUp = false
  }

  private let state = NIOLockedValueBox(State())
  private let wakeUp = WakeUp()
  private let ended = DispatchSemaphore(value: 0)
  private let skipsCollecting = Atomic<Bool>(false)
  private let isAnalyzing = Atomic<Bool>(false)
  private let isStopping = Atomic<Bool>(false)
  /// When the server stopped, in monotonic nanoseconds.
  private let stoppedAt = Atomic<Int64>(0)
  /// The number of the newest connection.
  private let newestConnection: Synchronization.Atomic<Int>
  /// Records up to this `seq` were removed because the inbox was emptied.
  private let emptied = Atomic<Int>(0)
  /// Changes of records that have left memory.
  let laterChanges = LaterChanges()

  /// Creates a writer, which the inbox starts.
  ///
  /// - Parameter report: Called when the store fails and when it has recovered.
  package init(_ store: any RecordStore, _ options: Options, report: @escaping @Sendable (StoreHealth.Event) -> Void) {
    self.store = store
    self.options = options
    health = StoreHealth(of: store, report: report)
    answers = AnswerGate(of: store, options, health) { [wakeUp] in wakeUp.signal() }
    newestConnection = .init(store.initialContents.lastConnection)
    emptied.store(store.initialContents.emptiedThrough, ordering: .relaxed)
  }

  // MARK: - For connections

  /// Notes the number of a new connection, so that it is not used again after a restart.
  package func didOpen(connection number: Int) { newestConnection.max(number, ordering: .relaxed) }

  /// Counts a push that was refused.
  package func countRefused() { state.withLockedValue { $0.figures.refused += 1 } }

  /// Counts new records as lost if the store fails and as many wait to be written as may; returns whether that is so.
  func countAsLostIfFull(_ count: @autoclosure () -> Int, waiting: Int) -> Bool {
    guard options.failurePolicy == .drop, health.isFailing, waiting >= Self.backlogLimit else {
      return false
    }
    let lost = count()
    state.withLockedValue { $0.figures.lost += lost }
    return true
  }

  // MARK: - For the inbox

  /// Figures about writing.
  package var figures: Figures {
    var figures = state.withLockedValue(\.figures)
    figures.problem = health.problem
    return figures
  }

  /// Records up to this `seq` were removed because the inbox was emptied.
  var emptiedThrough: Int { emptied.load(ordering: .acquiring) }

  /// Notes that the inbox was emptied.
  func didEmpty(through seq: Int) { emptied.store(seq, ordering: .releasing) }

  /// Called with the lock of the inbox after an append.
  func didAppend(to state: inout Inbox.State) {
    evictWritten(&state)
    if state.waitingRecords > Self.backlogLimit { answers.isBehind = true }
    wakeUp.signal()
  }

  /// Called after records that are to be written were changed.
  func didChange() { wakeUp.signal() }

  /// Drops records from memory that the store has.
  private func evictWritten(_ state: inout Inbox.State) {
    guard let written = state.stored?.written else { return }
    while state.records.count > options.recentRecords || state.records.bytes > options.recentBytes,
      let first = state.records.first, first <= written
    {
      _ = state.records.removeFirst()
    }
  }

  /// Waits until all changes made so far are written, at most for two seconds. Does not wait while the store fails.
  ///
  /// - Returns: Whether they are written.
  @discardableResult
  package func flush() -> Bool {
    BlockingCheck.checkThread()
    guard !health.isFailing else { return false }
    let written = DispatchSemaphore(value: 0)
    skipsCollecting.store(true, ordering: .releasing)
    answers.whenMet(answers.current) { written.signal() }
    return written.wait(timeout: .now() + .seconds(2)) == .success && !health.isFailing
  }

  /// Waits until all changes made so far are written, also those that are still to be made later.
  package func awaitChanges() throws(StoreUnavailable) {
    BlockingCheck.checkThread()
    guard laterChanges.wait() else { throw StoreUnavailable.unwritten }
    try awaitWritten()
  }

  /// Runs `body`, which waits for the database, on a thread of its own.
  ///
  /// - Throws: `StoreUnavailable` for any error.
  package func blocking<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws(StoreUnavailable) -> Result {
    let result = await withCheckedContinuation { continuation in
      Self.waitingQueues.randomElement()?.async {
        continuation.resume(
          returning: Swift.Result(catching: body).mapError { StoreUnavailable($0) })
      }
    }
    return try result.get()
  }

  /// Serial queues, whose threads are not those of Swift's concurrency.
  private static let waitingQueues = (0..<16).map { DispatchQueue(label: "store.waiting.\($0)") }
  private let analysisQueue = DispatchQueue(label: "store.analysis")

  /// Calls `analyze`, on a thread of its own, whenever there are many new records that it has not analyzed.
  package func analyzeInBackground(_ analyze: @escaping @Sendable () -> Void) {
    state.withLockedValue { $0.analyze = analyze }
  }

  /// Begins an analysis before many new records leave memory, because reading them again takes much longer.
  private func analyzeNewRecords(of inbox: Inbox, _ progress: inout Progress) {
    let lastSeq = inbox.state.withLockedValue { $0.nextSeq - 1 }
    progress.analyzedSeq = min(progress.analyzedSeq, lastSeq)
    guard lastSeq - progress.analyzedSeq >= Self.analysisInterval, let analyze = state.withLockedValue(\.analyze),
      !isAnalyzing.exchange(true, ordering: .acquiring)
    else { return }
    progress.analyzedSeq = lastSeq
    analysisQueue.async { [self] in
      analyze()
      isAnalyzing.store(false, ordering: .releasing)
    }
  }

  /// Waits until all changes made so far are written.
  ///
  /// - Throws: `StoreUnavailable` if that fails or takes long.
  func awaitWritten() throws(StoreUnavailable) {
    guard flush() else {
      throw health.problem.map { StoreUnavailable(problem: $0) } ?? .unwritten
    }
  }

  /// The time for which a change of a record that cannot be read is tried again although the store works.
  private static let patience = Duration.seconds(2)

  /// Changes a record that is not in memory any more. Waits for the database. While the store fails, tries again without a
  /// limit.
  ///
  /// - Returns: Whether there is such a record.
  func update(_ seq: Int, in inbox: Inbox, _ change: (inout Record) -> Void) -> Bool {
    let deadline = ContinuousClock.now + Self.patience
    while true {
      do {
        // Nothing else changes the record in between: only `laterChanges` changes stored records, one after the other.
        guard var record = try inbox.record(seq: seq, leavesOutDamage: true) else { return false }
        change(&record)
        let changed = record
        inbox.state.withLockedValue { $0.stored?.change(changed) }
        wakeUp.signal()
        return true
      } catch {
        guard .now < deadline || health.isFailing, !isEnding else { return false }
        usleep(250_000)
      }
    }
  }

  // MARK: - Writing

  func start(_ inbox: Inbox) {
    health.watch { [weak self] in self?.isEnding ?? true }
    DispatchQueue(label: "store").async { [self] in
      let lastSeq = store.initialContents.lastSeq
      var progress = Progress(storedSeq: lastSeq, analyzedSeq: lastSeq)
      while !isStopping.load(ordering: .acquiring) {
        wakeUp.wait(atMost: Self.retryTime)
        if options.durability == .soon, !skipsCollecting.exchange(false, ordering: .acquiringAndReleasing) {
          if inbox.waitingRecords < Self.usualBatch { usleep(Self.collectingTime) }
        }
        writeAll(of: inbox, &progress)
      }
      progress.storedSeq = .min
      writeAll(of: inbox, &progress)
      ended.signal()
    }
  }

  /// Whether the server has stopped, so that long work is to end.
  var isEnding: Bool { isStopping.load(ordering: .acquiring) }

  /// Writes what is left and closes the store, after all connections have ended. Waits at most 22 seconds.
  ///
  /// - Throws: An error of the database; `StoreUnavailable` if pushes could not be written.
  package func stop() throws {
    answers.forgetWaiters()
    // Thousands of results may take longer than one wait.
    for _ in 0..<5 where !health.isFailing { if laterChanges.wait() { break } }
    stoppedAt.store(MachineTime.nanoseconds, ordering: .relaxed)
    isStopping.store(true, ordering: .releasing)
    wakeUp.signal()
    _ = ended.wait(timeout: .now() + .seconds(10))
    let analysisEnded = DispatchSemaphore(value: 0)
    analysisQueue.async { analysisEnded.signal() }
    _ = analysisEnded.wait(timeout: .now() + .seconds(2))
    try store.close()
    let lost = state.withLockedValue { $0.lostAtEnd }
    if lost > 0 {
      throw StoreUnavailable(
        problem: lost.counted("push", "could not be written and is lost", "could not be written and are lost"))
    }
  }

  private func writeAll(of inbox: Inbox, _ progress: inout Progress) {
    var isIncomplete = false
    repeat { isIncomplete = writeBatch(of: inbox, isRequired: isIncomplete, &progress) } while isIncomplete
  }

  /// Writes one batch.
  ///
  /// - Parameter isRequired: Whether to write it even if nothing has changed, so that the store removes records.
  /// - Returns: Whether more records have to be written or removed.
  private func writeBatch(of inbox: Inbox, isRequired: Bool, _ progress: inout Progress) -> Bool {
    let checksAge = isRequired || progress.lastRetention.map { .now - $0 >= Self.retentionInterval } ?? true
    guard let taken = takeBatch(of: inbox, checksAge: checksAge) else { return false }
    var batch = taken.batch
    let (number, isPartial) = (taken.number, taken.isPartial)
    progress.batches += 1
    (batch.number, batch.isRequired) = (progress.batches, isRequired)
    batch.serverState = serverState.take()
    if checksAge { progress.lastRetention = .now }
    let unstored = batch.contents.lastSeq.subtractingReportingOverflow(progress.storedSeq)
    guard
      // While something is wrong, writing finds out whether it still is.
      !batch.isEmpty || isRequired || health.problem != nil || unstored.overflow
        || unstored.partialValue > Self.unstoredLimit || store.isLost
    else {
      finish(batch, StoreBatch.Result(), of: inbox)
      serverState.didWrite()
      answers.didWrite(through: number)
      return false
    }
    let start = ContinuousClock.now
    // The rest of what could not be written is not tried.
    if progress.hasGivenUp || isRequired && options.failurePolicy == .drop && health.isFailing {
      discard(batch, of: inbox, atEnd: isStopping.load(ordering: .acquiring))
      if !isPartial { answers.didWrite(through: number) }
      return isPartial
    }
    while true {
      do {
        let result = try health.writing { didAnswer in try store.write(batch, progress: didAnswer) }
        progress.storedSeq = batch.contents.lastSeq
        serverState.didWrite()
        didWrite(batch, in: .now - start)
        finish(batch, result, of: inbox)
        analyzeNewRecords(of: inbox, &progress)
        if !isPartial { answers.didWrite(through: number) }
        // What remains to be removed is removed after the next start.
        return isPartial || result.isIncomplete && !isStopping.load(ordering: .acquiring)
      } catch {
        health.didFail(toWrite: error)
        let isStopped = isStopping.load(ordering: .acquiring)
        let hasWaited = MachineTime.nanoseconds - stoppedAt.load(ordering: .relaxed) > Self.stopTime
        progress.hasGivenUp = isStopped && (batch.isEmpty || hasWaited)
        if options.failurePolicy == .drop || progress.hasGivenUp {
          discard(batch, of: inbox, atEnd: isStopped)
          if !isPartial { answers.didWrite(through: number) }
          return isPartial
        }
        usleep(UInt32(Self.retryTime / 1000))
      }
    }
  }

  /// Takes what is not written yet, and what exceeds the limits.
  ///
  /// - Returns: The batch, its number, and whether more of the same number remains.
  private func takeBatch(
    of inbox: Inbox, checksAge: Bool
  ) -> (batch: StoreBatch, number: Int, isPartial: Bool)? {
    let now = inbox.now?()
    return inbox.state.withLockedValue { state in
      guard let number = state.stored?.batch else { return nil }
      let (records, evicted) = (state.records, (state.evicted, state.lastEvicted))
      guard
        let taken = state.stored?.takeBatch(
          of: records, lastSeq: state.nextSeq - 1, evicted: evicted, limit: Self.batchLimit,
          byteLimit: store.isRemote ? Self.remoteBatchBytes : .max)
      else { return nil }
      var batch = taken.batch
      batch.contents.lastConnection = newestConnection.load(ordering: .relaxed)
      // With the lock of the inbox, so that a connection that appends later waits for the next batch.
      if !taken.isPartial { answers.didTake(number) }
      (batch.maxRecords, batch.maxBytes) = (inbox.maxRecords, inbox.maxBytes)
      if checksAge, let retention = options.retention, let now {
        batch.keptTimes = now - retention...max(now, MachineTime.nanosecondsSince1970 / 1_000_000)
      }
      return (batch, number, taken.isPartial)
    }
  }

  /// Notes that a batch was written.
  private func finish(_ batch: borrowing StoreBatch, _ result: StoreBatch.Result, of inbox: Inbox) {
    let lastSeq = batch.contents.lastSeq
    inbox.state.withLockedValue { state in
      state.stored?.didWrite(through: lastSeq, result)
      state.evict(result.evicted)
      evictWritten(&state)
      answers.isBehind = state.waitingRecords > Self.backlogLimit
    }
  }

  private func didWrite(_ batch: borrowing StoreBatch, in time: Duration) {
    let (size, isBatch, isEmpty) = (batch.appended.count, !batch.appended.isEmpty, batch.isEmpty)
    state.withLockedValue { state in
      if !isEmpty { state.figures.batches += 1 }
      state.figures.records += size
      state.figures.time += time
      state.figures.processorTime = .nanoseconds(MachineTime.threadNanoseconds)
      if isBatch { (state.figures.lastBatch, state.figures.lastLatency) = (size, time) }
    }
    health.didWrite()
  }

  /// Drops the new records of a batch that cannot be written. Its other changes remain to be made.
  private func discard(_ batch: StoreBatch, of inbox: Inbox, atEnd: Bool) {
    serverState.didLose(batch.serverState)
    let count = inbox.state.withLockedValue { state in
      var lost = RemovedRecords()
      for record in batch.appended where state.records.record(record.seq) != nil {
        lost.count += 1
        lost.bytes += record.storedSize
        lost.lastSeq = record.seq
      }
      _ = state.records.remove(batch.appended.map(\.seq))
      state.stored?.didLose(batch)
      state.countEvicted(lost)
      answers.isBehind = state.waitingRecords > Self.backlogLimit
      return lost.count
    }
    state.withLockedValue { state in
      state.figures.lost += count
      if atEnd { state.lostAtEnd += count }
    }
  }
}

/// Wakes the thread that writes.
private final class WakeUp: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)
  private let isSignaled = Atomic<Bool>(false)

  /// Ends the present wait, or the next one.
  func signal() { if !isSignaled.exchange(true, ordering: .acquiringAndReleasing) { semaphore.signal() } }

  /// Waits for a signal, at most for this number of nanoseconds.
  func wait(atMost time: Int64) {
    _ = semaphore.wait(timeout: .now() + .nanoseconds(Int(time)))
    isSignaled.store(false, ordering: .sequentiallyConsistent)
  }
}
