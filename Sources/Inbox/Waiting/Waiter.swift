internal import APNSMockRules
internal import NIOConcurrencyHelpers

/// A single wait: counts the records in the inbox, then those that arrive, until the result is known or the timeout
/// expires. The records that are in the inbox at the beginning are counted completely, even if that takes longer.
final class Waiter: InboxListener {
  /// The reason why a wait ended.
  enum Termination: Sendable {
    case satisfied, unsatisfiable, timedOut
    /// The server stopped, or the waiting client disconnected.
    case abandoned
  }

  private struct State {
    var counts: WaitCounts
    /// All records up to this `seq` were counted.
    var seen = 0
    /// Changes received during the first pass over the inbox; nil after it.
    var pendingChanges: PendingChanges? = PendingChanges()
    var termination: Termination?
    var continuation: CheckedContinuation<Void, Never>?
    /// Evaluates the wait again at the deadline or when the settle time has passed.
    var timer = WaitTimer()
  }

  private struct PendingChanges {
    var through = 0
    var updated: [Int] = []
    var emptiedThrough: Int?

    var isEmpty: Bool { through == 0 && updated.isEmpty && emptiedThrough == nil }
  }

  /// A condition on device tokens makes the wait independent of all other pushes.
  let deviceTokens: Set<PushKey>?
  private let inbox: Inbox
  private let deadline: ContinuousClock.Instant
  private let state: NIOLockedValueBox<State>

  init(_ query: WaitQuery, in inbox: Inbox) {
    let startedAt = ContinuousClock.now
    self.inbox = inbox
    deviceTokens = query.selection.filter.deviceTokens.map { Set($0.map { PushKey(deviceToken: $0) }) }
    deadline = startedAt + query.timeout
    state = NIOLockedValueBox(State(counts: WaitCounts(query, startedAt: startedAt)))
  }

  /// Runs the wait to its end.
  ///
  /// - Returns: The reason for the end, the counts, and the `seq` up to which records were examined.
  func run() async -> (termination: Termination, counts: WaitCounts, seen: Int) {
    if inbox.notifier.add(self, to: inbox) {
      await countExistingRecords()
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let isOver = state.withLockedValue { state in
            if state.termination == nil { state.continuation = continuation }
            return state.termination != nil
          }
          if isOver { continuation.resume() }
        }
      } onCancel: {
        inboxDidClose()
      }
      inbox.notifier.remove(self)
    }
    return state.withLockedValue { state in
      state.timer.cancel()
      return (state.termination ?? .abandoned, state.counts, state.seen)
    }
  }

  // MARK: - Existing records

  /// Counts the records that are in the inbox. Because this may take long, changes received during the pass are
  /// buffered and processed at its end.
  private func countExistingRecords() async {
    var snapshot = inbox.snapshot()
    var counts = state.withLockedValue { $0.counts }
    counts.recordEviction(through: snapshot.lastEvicted, examined: counts.selection.after)
    var seen = 0
    while true {
      var rest = counts.selection
      rest.after = max(rest.after, seen)
      var iterator = InboxIterator(snapshot, rest)
      while let records = iterator.nextOrLoss(in: &counts) {
        let now = ContinuousClock.now
        for record in records {
          if seen == 0 { counts.countExisting(record) } else { counts.update(record, at: now) }
        }
        if Task.isCancelled { return }
        await Task.yield()
      }
      seen = snapshot.lastSeq
      let newer = inbox.snapshot()
      // A store may have removed records before they were read.
      if snapshot.records.stored != nil, newer.lastEvicted > snapshot.lastEvicted {
        counts.recordEviction(through: newer.lastEvicted, examined: counts.selection.after)
      }
      if newer.lastSeq - seen < 1000 { break }
      counts.recordEviction(through: newer.lastEvicted, examined: seen)
      snapshot = newer
    }
    while let pendingChanges = takePendingChanges(counts, seen) { catchUp(&counts, &seen, with: pendingChanges) }
    check()
  }

  /// Returns the changes received since it was last called. If there are none, the counts become those of the wait, and further
  /// changes are counted when they are received.
  ///
  /// The caller processes them without the lock, which event loops take, because it may wait for the store.
  private func takePendingChanges(_ counts: WaitCounts, _ seen: Int) -> PendingChanges? {
    state.withLockedValue { state in
      if let pendingChanges = state.pendingChanges, !pendingChanges.isEmpty, state.termination == nil {
        state.pendingChanges = PendingChanges()
        return pendingChanges
      }
      state.pendingChanges = nil
      (state.counts, state.seen) = (counts, seen)
      return nil
    }
  }

  /// Processes the changes received since the last snapshot.
  private func catchUp(_ counts: inout WaitCounts, _ seen: inout Int, with pendingChanges: PendingChanges) {
    let now = ContinuousClock.now
    let snapshot = inbox.snapshot()
    if let through = pendingChanges.emptiedThrough { counts.empty(through: through, at: now) }
    for seq in pendingChanges.updated where seq <= seen {
      do throws(StoreUnavailable) {
        if let record = try inbox.record(seq: seq) { counts.update(record, at: now) }
      } catch {
        // It may be counted in its former state.
        if !error.isByReset { counts.recordEviction(through: .max, examined: seen) }
      }
    }
    guard pendingChanges.through > seen else { return }
    counts.recordEviction(through: snapshot.lastEvicted, examined: seen)
    var newRecords = Selection.allKinds
    newRecords.after = seen
    var iterator = InboxIterator(snapshot, newRecords)
    while let records = iterator.nextOrLoss(in: &counts) {
      for record in records { counts.update(record, at: now) }
    }
    seen = max(seen, snapshot.lastSeq)
  }

  // MARK: - New records

  func inboxDidChange(_ changes: InboxChanges) {
    let isNew = state.withLockedValue { state in
      if var pendingChanges = state.pendingChanges {
        pendingChanges.through = max(pendingChanges.through, changes.through)
        pendingChanges.updated += changes.updated.map(\.seq)
        pendingChanges.emptiedThrough = changes.emptiedThrough ?? pendingChanges.emptiedThrough
        state.pendingChanges = pendingChanges
        return false
      }
      guard state.termination == nil else { return false }
      let now = ContinuousClock.now
      if let through = changes.emptiedThrough { state.counts.empty(through: through, at: now) }
      if changes.removed > 0 {
        state.counts.recordEviction(through: changes.evictedThrough, examined: max(state.seen, changes.after))
      }
      for record in changes.records where record.seq > state.seen { state.counts.update(record, at: now) }
      for record in changes.updated { state.counts.update(record, at: now) }
      state.seen = max(state.seen, changes.through)
      return true
    }
    if isNew { check() }
  }

  func inboxDidClose() {
    end { state in state.termination = state.termination ?? .abandoned }
  }

  // MARK: - Ending the wait

  /// Ends the wait if the result is known or the timeout has expired; otherwise schedules the next evaluation.
  private func check() {
    end { state in
      guard state.termination == nil, state.pendingChanges == nil else { return }
      let now = ContinuousClock.now
      switch state.counts.status(at: now) {
      case .satisfied: state.termination = .satisfied
      case .unsatisfiable: state.termination = .unsatisfiable
      case .open where now >= deadline: state.termination = .timedOut
      case .open(let until):
        return state.timer.schedule(at: min(until ?? deadline, deadline)) { [weak self] in self?.check() }
      }
      state.seen = max(state.seen, inbox.notifier.deliveredThrough)
    }
  }

  private func end(_ change: (inout State) -> Void) {
    let continuation = state.withLockedValue { state in
      change(&state)
      guard state.termination != nil else { return CheckedContinuation<Void, Never>?.none }
      defer { state.continuation = nil }
      return state.continuation
    }
    continuation?.resume()
  }
}

extension InboxIterator {
  /// Returns the next records like `next()`. If the store cannot be read, the wait is inconclusive, as if the records
  /// had been evicted. If the inbox was emptied, none of those counted so far is left.
  fileprivate mutating func nextOrLoss(in counts: inout WaitCounts) -> [Record]? {
    do {
      return try next()
    } catch {
      if error.isByReset {
        counts.empty(through: .max, at: .now)
      } else {
        counts.recordEviction(through: .max, examined: through)
      }
      return nil
    }
  }
}

/// A timer of a wait. It fires once, at the earliest of the times it was scheduled for.
struct WaitTimer: Sendable {
  private var scheduled: (time: ContinuousClock.Instant, task: Task<Void, Never>)?

  /// Schedules `action`, unless the timer is scheduled for an earlier time that is not over: the action then schedules
  /// the timer again.
  mutating func schedule(at time: ContinuousClock.Instant, _ action: @escaping @Sendable () -> Void) {
    if let scheduled, scheduled.time > .now, scheduled.time <= time { return }
    cancel()
    let task = Task {
      do {
        try await Task.sleep(until: time, clock: .continuous)
        action()
      } catch {
        // The timer was cancelled.
      }
    }
    scheduled = (time, task)
  }

  mutating func cancel() {
    scheduled?.task.cancel()
    scheduled = nil
  }
}
