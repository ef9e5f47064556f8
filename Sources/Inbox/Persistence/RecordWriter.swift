internal import APNSRules
internal import Dispatch
internal import NIOConcurrencyHelpers
internal import PlatformLibc
internal import Synchronization

/// Writes the records of an inbox to a store, in batches and on a thread of its own, so that no push waits for the
/// database unless answers have to.
package final class RecordWriter: Sendable {
  /// When the answer to a push leaves.
  package enum Durability: String, CaseIterable, Sendable {
    /// After the push was written to the disk.
    case answer
    /// At once. Pushes that are not written yet are lost if the server is killed.
    case soon
  }

  /// What happens to pushes while the store fails.
  package enum FailurePolicy: String, CaseIterable, Sendable {
    /// They are answered with 503 `ServiceUnavailable`.
    case refuse
    /// They are answered as usual, and not kept.
    case drop
  }

  /// How records are kept.
  package struct Options: Sendable {
    package var durability = Durability.soon
    package var failurePolicy = FailurePolicy.refuse
    /// The age in milliseconds after which records are removed, by the server's clock; nil for no limit.
    package var retention: Int64?
    /// The number of the newest records that are in memory too.
    package var recentRecords = 32_768
    /// The size of the newest records that are in memory too, in bytes.
    package var recentBytes = 64 << 20

    /// Creates the default options.
    package init() {}
  }

  /// A change of the store's condition, for the log.
  package enum Event: Sendable {
    case failed(String)
    case recovered(after: Duration)
  }

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
  /// The time to wait for more records, so that a batch has many of them.
  private static let collectingTime = 5_000
  /// The time between two attempts to write while the store fails, and between two checks of the limits.
  private static let retryTime = DispatchTimeInterval.milliseconds(250)

  package let store: any RecordStore
  package let options: Options
  private let report: @Sendable (Event) -> Void

  private struct Waiter: Sendable {
    let batch: Int
    let resume: @Sendable () -> Void
  }

  private struct State {
    var waiters: [Waiter] = []
    var figures = Figures()
    var failedSince: ContinuousClock.Instant?
  }

  private let state = NIOLockedValueBox(State())
  private let slowUpdates = NIOLock()
  private let wakeUp = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)
  private let isSignaled = Atomic<Bool>(false)
  private let isUrgent = Atomic<Bool>(false)
  private let isStopping = Atomic<Bool>(false)
  private let failing = Atomic<Bool>(false)
  private let hasBacklog = Atomic<Bool>(false)
  /// The number of the batch that changes made now belong to.
  private let collecting = Atomic<Int>(1)
  /// All batches up to this number were written, or given up.
  private let completed = Atomic<Int>(0)

  /// Creates a writer, which the inbox starts.
  ///
  /// - Parameter report: Called when the store fails and when it has recovered.
  package init(_ store: any RecordStore, _ options: Options, report: @escaping @Sendable (Event) -> Void) {
    self.store = store
    self.options = options
    self.report = report
  }

  // MARK: - For connections

  /// Whether pushes are refused because the store fails.
  package var refusesPushes: Bool { options.failurePolicy == .refuse && failing.load(ordering: .relaxed) }

  /// Counts a push that was refused.
  package func countRefused() { state.withLockedValue { $0.figures.refused += 1 } }

  /// The batch whose writing the answers to all records appended so far wait for; nil if answers need not wait.
  package var batchToAwait: Int? {
    guard options.durability == .answer || hasBacklog.load(ordering: .relaxed) else { return nil }
    return collecting.load(ordering: .acquiring)
  }

  /// Returns whether a batch was written.
  package func isWritten(_ batch: Int) -> Bool { completed.load(ordering: .acquiring) >= batch }

  /// Calls `resume` on any thread when a batch is written.
  package func whenWritten(_ batch: Int, _ resume: @escaping @Sendable () -> Void) {
    let isWritten = state.withLockedValue { state in
      if completed.load(ordering: .acquiring) >= batch { return true }
      state.waiters.append(Waiter(batch: batch, resume: resume))
      return false
    }
    if isWritten { resume() } else { signal() }
  }

  // MARK: - For the inbox

  /// Figures about writing.
  package var figures: Figures { state.withLockedValue { $0.figures } }

  /// Called with the lock of the inbox after an append.
  func didAppend(to state: inout Inbox.State) {
    evictWritten(&state)
    if let stored = state.stored, state.nextSeq - 1 - stored.written > Self.backlogLimit {
      hasBacklog.store(true, ordering: .relaxed)
    }
    signal()
  }

  private func signal() {
    if !isSignaled.exchange(true, ordering: .acquiringAndReleasing) { wakeUp.signal() }
  }

  /// Drops records from memory that the store has.
  private func evictWritten(_ state: inout Inbox.State) {
    guard let written = state.stored?.written else { return }
    while state.records.count > options.recentRecords || state.records.bytes > options.recentBytes,
      let first = state.records.first, first <= written
    {
      _ = state.records.removeFirst()
    }
  }

  /// Waits until all changes made so far are written, at most for two seconds: while the store fails, they are not.
  func flush() {
    let written = DispatchSemaphore(value: 0)
    isUrgent.store(true, ordering: .releasing)
    whenWritten(collecting.load(ordering: .acquiring)) { written.signal() }
    _ = written.wait(timeout: .now() + .seconds(2))
  }

  /// Changes a record that is not in memory any more.
  ///
  /// - Returns: The changed record; nil if there is none.
  func update(_ seq: Int, in inbox: Inbox, _ change: (inout Record) -> Void) -> Record? {
    slowUpdates.withLock {
      guard var record = inbox.record(seq: seq) else { return nil }
      change(&record)
      let changed = record
      inbox.state.withLockedValue { $0.stored?.change(changed) }
      signal()
      return record
    }
  }

  // MARK: - Writing

  func start(_ inbox: Inbox) {
    DispatchQueue(label: "store").async { [self] in
      while !isStopping.load(ordering: .acquiring) {
        _ = wakeUp.wait(timeout: .now() + Self.retryTime)
        isSignaled.store(false, ordering: .sequentiallyConsistent)
        if options.durability == .soon, !isUrgent.exchange(false, ordering: .acquiringAndReleasing) {
          inbox.waitForMore(than: Self.usualBatch, microseconds: Self.collectingTime)
        }
        writeAll(of: inbox)
      }
      writeAll(of: inbox)
      ended.signal()
    }
  }

  /// Writes what is left and closes the store. Waits at most ten seconds.
  ///
  /// - Throws: An error of the database.
  package func stop() throws {
    isStopping.store(true, ordering: .releasing)
    signal()
    _ = ended.wait(timeout: .now() + .seconds(10))
    try store.close()
  }

  private func writeAll(of inbox: Inbox) {
    var isIncomplete = false
    repeat { isIncomplete = writeBatch(of: inbox, isRequired: isIncomplete) } while isIncomplete
  }

  /// Writes one batch.
  ///
  /// - Parameter isRequired: Whether to write it even if nothing has changed, so that the store removes records.
  /// - Returns: Whether more records have to be removed because of a limit.
  private func writeBatch(of inbox: Inbox, isRequired: Bool) -> Bool {
    guard let (batch, number) = inbox.takeBatch(for: options) else { return false }
    collecting.store(number + 1, ordering: .releasing)
    if batch.isEmpty, !isRequired {
      complete(number)
      return false
    }
    let start = ContinuousClock.now
    while true {
      do {
        let removed = try store.write(batch)
        didWrite(batch, in: .now - start)
        inbox.state.withLockedValue { state in
          state.stored?.didWrite(through: batch.contents.lastSeq, removed)
          state.evict(removed)
          evictWritten(&state)
          let backlog = state.nextSeq - 1 - (state.stored?.written ?? 0)
          hasBacklog.store(backlog > Self.backlogLimit, ordering: .relaxed)
        }
        complete(number)
        return removed.isIncomplete
      } catch {
        didFail(error)
        if options.failurePolicy == .drop || isStopping.load(ordering: .acquiring) {
          giveUp(batch, of: inbox)
          complete(number)
          return false
        }
        _ = wakeUp.wait(timeout: .now() + Self.retryTime)
      }
    }
  }

  private func complete(_ number: Int) {
    let ready = state.withLockedValue { state in
      completed.store(number, ordering: .releasing)
      let ready = state.waiters.filter { $0.batch <= number }
      if !ready.isEmpty { state.waiters.removeAll { $0.batch <= number } }
      return ready
    }
    for waiter in ready { waiter.resume() }
  }

  private func didWrite(_ batch: borrowing StoreBatch, in time: Duration) {
    let (size, isBatch) = (batch.appended.count, !batch.appended.isEmpty)
    let failedSince = state.withLockedValue { state in
      state.figures.batches += 1
      state.figures.records += size
      state.figures.time += time
      state.figures.processorTime = .nanoseconds(MachineTime.threadNanoseconds)
      if isBatch { (state.figures.lastBatch, state.figures.lastLatency) = (size, time) }
      state.figures.problem = nil
      defer { state.failedSince = nil }
      return state.failedSince
    }
    failing.store(false, ordering: .relaxed)
    if let failedSince { report(.recovered(after: .now - failedSince)) }
  }

  private func didFail(_ error: any Error) {
    let text = String(describing: error)
    let isNew = state.withLockedValue { state in
      state.figures.problem = text
      guard state.failedSince == nil else { return false }
      state.failedSince = .now
      return true
    }
    failing.store(true, ordering: .relaxed)
    if isNew { report(.failed(text)) }
  }

  /// Drops the records of a batch that cannot be written.
  private func giveUp(_ batch: borrowing StoreBatch, of inbox: Inbox) {
    let lost = batch.appended.map(\.seq)
    var removed = RemovedRecords()
    removed.count = lost.count
    removed.bytes = batch.appended.reduce(0) { $0 + $1.storedSize }
    removed.lastSeq = lost.last ?? 0
    let result = removed
    let lastSeq = batch.contents.lastSeq
    inbox.state.withLockedValue { state in
      state.stored?.didWrite(through: lastSeq, result)
      _ = state.records.remove(lost)
      state.evict(result)
    }
    state.withLockedValue { $0.figures.lost += lost.count }
  }
}

extension Inbox {
  /// Takes what is not written yet, and what exceeds the limits; nil without a store.
  ///
  /// - Returns: The batch and its number.
  fileprivate func takeBatch(for options: RecordWriter.Options) -> (batch: StoreBatch, number: Int)? {
    let now = now?()
    return state.withLockedValue { state in
      guard let number = state.stored?.batch else { return nil }
      let (records, evicted) = (state.records, (state.evicted, state.lastEvicted))
      guard
        var batch = state.stored?.takeBatch(of: records, lastSeq: state.nextSeq - 1, evicted: evicted)
      else { return nil }
      batch.excess = max(0, batch.contents.count - maxRecords)
      batch.excessBytes = max(0, batch.contents.bytes - maxBytes)
      if let retention = options.retention, let now { batch.oldestTime = now - retention }
      return (batch, number)
    }
  }

  /// Waits a moment unless many records wait to be written.
  fileprivate func waitForMore(than count: Int, microseconds: Int) {
    let waiting = state.withLockedValue { state in state.nextSeq - 1 - (state.stored?.written ?? 0) }
    if waiting < count { usleep(UInt32(microseconds)) }
  }
}

extension Inbox.State {
  /// Notes that the store has removed its oldest records.
  fileprivate mutating func evict(_ removed: RemovedRecords) {
    guard removed.count > 0 else { return }
    evicted += removed.count
    lastEvicted = max(lastEvicted, removed.lastSeq)
    counts.addEvicted(removed.count)
    while let first = records.first, first <= removed.lastSeq { _ = records.removeFirst() }
  }
}
