internal import NIOConcurrencyHelpers
internal import Synchronization

/// What the answers to pushes wait for: that the batch with their records was written, if they wait at all.
///
/// Safe to use from any thread.
package final class AnswerGate: Sendable {
  /// What an answer waits for.
  package struct Prerequisite: Sendable {
    /// The number of the batch that has to be written.
    fileprivate var batch = 0

    /// Creates a prerequisite that is always met.
    package init() {}
  }

  private struct Waiter: Sendable {
    let batch: Int
    let resume: @Sendable () -> Void
  }

  private let options: RecordWriter.Options
  private let store: any RecordStore
  private let health: StoreHealth
  private let wakeWriter: @Sendable () -> Void
  /// The number of the batch that changes made now belong to.
  private let collecting = Atomic<Int>(1)
  /// All batches up to this number were written, or given up.
  private let written = Atomic<Int>(0)
  private let waiters = NIOLockedValueBox<[Waiter]>([])
  private let hasBacklog = Atomic<Bool>(false)

  /// - Parameter wakeWriter: Called when something waits for a batch, so that it is written now.
  init(
    of store: any RecordStore, _ options: RecordWriter.Options, _ health: StoreHealth,
    wakeWriter: @escaping @Sendable () -> Void
  ) {
    self.options = options
    self.store = store
    self.health = health
    self.wakeWriter = wakeWriter
  }

  // MARK: - For connections

  /// Whether pushes are refused because the store fails.
  package var refusesPushes: Bool { options.failurePolicy == .refuse && health.isFailing }

  /// Extends what the answers of a connection wait for, after it has appended records.
  package func extend(_ prerequisite: inout Prerequisite) {
    if options.failurePolicy == .drop, health.isFailing { return }
    // A server that was stopped or cut off may answer only what it can still write.
    guard options.durability == .answer || isBehind || !store.isExclusive else { return }
    prerequisite.batch = collecting.load(ordering: .acquiring)
  }

  /// Returns whether an answer need not wait any more.
  package func isMet(_ prerequisite: Prerequisite) -> Bool { written.load(ordering: .acquiring) >= prerequisite.batch }

  /// Calls `resume` on any thread when an answer need not wait any more.
  package func whenMet(_ prerequisite: Prerequisite, _ resume: @escaping @Sendable () -> Void) {
    let isDone = waiters.withLockedValue { waiters in
      if isMet(prerequisite) { return true }
      waiters.append(Waiter(batch: prerequisite.batch, resume: resume))
      return false
    }
    if isDone { resume() } else { wakeWriter() }
  }

  // MARK: - For the writer

  /// Whether many records wait to be written, so that answers wait too.
  var isBehind: Bool {
    get { hasBacklog.load(ordering: .relaxed) }
    set { hasBacklog.store(newValue, ordering: .relaxed) }
  }

  /// What a change made now waits for.
  var current: Prerequisite {
    var prerequisite = Prerequisite()
    prerequisite.batch = collecting.load(ordering: .acquiring)
    return prerequisite
  }

  /// Notes that changes belong to the next batch from now on.
  func didTake(_ batch: Int) { collecting.store(batch + 1, ordering: .releasing) }

  /// Notes that all batches up to this number were written, or given up.
  func didWrite(through batch: Int) {
    let ready = waiters.withLockedValue { waiters in
      written.max(batch, ordering: .releasing)
      let ready = waiters.filter { $0.batch <= batch }
      if !ready.isEmpty { waiters.removeAll { $0.batch <= batch } }
      return ready
    }
    for waiter in ready { waiter.resume() }
  }

  /// Forgets the answers that wait, because their connections, and the event loops that would send them, have ended.
  func forgetWaiters() { waiters.withLockedValue { $0.removeAll() } }
}
