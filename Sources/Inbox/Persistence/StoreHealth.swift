internal import APNSMockRules
internal import Dispatch
internal import NIOConcurrencyHelpers
internal import Synchronization

/// What is wrong with a store: an error of writing or reading, a database that does not answer, or another server that may have
/// taken over.
///
/// Safe to use from any thread.
package final class StoreHealth: Sendable {
  /// A change of the store's condition, for the log.
  package enum Event: Sendable {
    /// It cannot be written.
    case failed(String)
    /// It can be written again.
    case recovered(after: Duration)
    /// A query could not read it.
    case readFailed(String)
    /// A record was left out because its row is damaged.
    case leftOut(String)
  }

  private struct State {
    /// Why it cannot be written; nil if it can.
    var problem: String?
    var failedSince: ContinuousClock.Instant?
    /// An error while reading, since the last batch was written.
    var readProblem: String?
    /// When such an error was last reported.
    var readReport: ContinuousClock.Instant?
  }

  /// The nanoseconds for which another server may be active before the store counts as failing.
  private static let doubtTime: Int64 = 2_000_000_000
  /// The nanoseconds between two checks that the database answers.
  private static let watchTime: Int64 = 50_000_000
  /// The nanoseconds of delay of such a check from which this process was suspended.
  private static let suspensionTime: Int64 = 250_000_000
  /// The time between two reports of errors while reading.
  private static let reportInterval = Duration.seconds(60)
  private static let queue = DispatchQueue(label: "store.watching")

  private let store: any RecordStore
  private let report: @Sendable (Event) -> Void
  private let state = NIOLockedValueBox(State())
  private let failing = Atomic<Bool>(false)
  /// When the batch that is being written was begun, in monotonic nanoseconds; 0 if none is.
  private let writingSince = Atomic<Int64>(0)
  /// Since when another server may be active, in monotonic nanoseconds; 0 if none can be.
  private let doubtfulSince = Atomic<Int64>(0)

  init(of store: any RecordStore, report: @escaping @Sendable (Event) -> Void) {
    self.store = store
    self.report = report
  }

  /// Whether the store cannot be written.
  package var isFailing: Bool { failing.load(ordering: .relaxed) }

  /// What is wrong with the store; nil if nothing is.
  package var problem: String? { state.withLockedValue { $0.problem ?? $0.readProblem } }

  /// Why the store cannot be written; nil if it can.
  var writingProblem: String? { state.withLockedValue { $0.problem } }

  /// Why this server cannot know that it is the only one that writes; nil if it is.
  package var exclusivityProblem: String? {
    store.isExclusive ? nil : "another server may be active: the database does not confirm the lock of this one in time"
  }

  /// Notes that the store could not be read, and reports it.
  func didFail(toRead error: any Error) {
    let problem = String(describing: error)
    state.withLockedValue { $0.readProblem = "reading: \(problem)" }
    reportRead(.readFailed(problem))
  }

  /// Notes that a record was left out because its row is damaged, and reports it.
  func didLeaveOut(_ error: any Error) { reportRead(.leftOut(String(describing: error))) }

  /// Reports an error of reading once a minute, and not if writing is known to fail.
  private func reportRead(_ event: Event) {
    let isReported = state.withLockedValue { state in
      let isRecent = state.readReport.map { .now - $0 < Self.reportInterval } ?? false
      guard !isRecent, state.failedSince == nil else { return false }
      state.readReport = .now
      return true
    }
    if isReported { report(event) }
  }

  // MARK: - For the thread that writes

  /// Calls `body`, which writes a batch, and its argument whenever the database has answered.
  func writing<Result>(_ body: (_ didAnswer: () -> Void) throws -> Result) rethrows -> Result {
    func note() { writingSince.store(MachineTime.nanoseconds, ordering: .relaxed) }
    note()
    defer { writingSince.store(0, ordering: .relaxed) }
    return try body(note)
  }

  /// Notes that a batch was written. A failure lasts until this server is also known to be the only one that writes.
  func didWrite() {
    guard store.isExclusive else { return }
    let failedSince = state.withLockedValue { state in
      defer { (state.problem, state.readProblem, state.failedSince) = (nil, nil, nil) }
      return state.failedSince
    }
    failing.store(false, ordering: .relaxed)
    if let failedSince { report(.recovered(after: .now - failedSince)) }
  }

  /// Notes that the store cannot be written.
  func didFail(toWrite error: any Error) {
    let text = (error as? StoreUnavailable)?.problem ?? String(describing: error)
    let isNew = state.withLockedValue { state in
      state.problem = text
      guard state.failedSince == nil else { return false }
      state.failedSince = .now
      return true
    }
    failing.store(true, ordering: .relaxed)
    if isNew { report(.failed(text)) }
  }

  // MARK: - Watching

  /// Begins to notice that the database does not answer while the thread that writes waits for it, or does not confirm that this
  /// server is the active one. Ends with this object, or when `isEnding` returns true.
  func watch(until isEnding: @escaping @Sendable () -> Bool) {
    let due = MachineTime.nanoseconds + Self.watchTime
    Self.queue.asyncAfter(deadline: .now() + .nanoseconds(Int(Self.watchTime))) { [weak self] in
      guard let self, !isEnding() else { return }
      check(due: due)
      watch(until: isEnding)
    }
  }

  /// - Parameter due: When the check should have been made, in monotonic nanoseconds.
  private func check(due: Int64) {
    let now = MachineTime.nanoseconds
    let since = writingSince.load(ordering: .relaxed)
    // This process was suspended (SIGSTOP, a paused virtual machine), so the time says nothing about the database.
    let wasSuspended = now - due > Self.suspensionTime
    if wasSuspended, since != 0, since < now {
      let later = min(since + now - due, now)
      _ = writingSince.compareExchange(expected: since, desired: later, ordering: .relaxed)
    }
    if isStalled {
      didFail(toWrite: StoreUnavailable(problem: "the database does not answer"))
    } else if let problem = exclusivityProblem {
      if wasSuspended || doubtfulSince.load(ordering: .relaxed) == 0 { doubtfulSince.store(now, ordering: .relaxed) }
      // Not at once: a server that was suspended first finds out whether another one has taken over.
      let isDoubtful = now - doubtfulSince.load(ordering: .relaxed) > Self.doubtTime
      if isDoubtful, !isFailing { didFail(toWrite: StoreUnavailable(problem: problem)) }
    } else {
      doubtfulSince.store(0, ordering: .relaxed)
    }
  }

  private var isStalled: Bool {
    let since = writingSince.load(ordering: .relaxed)
    return since != 0 && MachineTime.nanoseconds - since > store.stallTime
  }
}
