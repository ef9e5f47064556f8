internal import APNSMockRules
internal import NIOConcurrencyHelpers

/// A single verification: counts the records in the inbox, then those that arrive, until the result is known or the
/// timeout expires.
///
/// Notifications only set a signal. Records are counted in the task of the caller, each once, so a burst costs one
/// round and delays no other listener.
final class VerificationWait: InboxListener {
  private struct PendingChanges {
    var updated: [Int] = []
    var isEmptied = false
  }

  private let verification: Verification
  private let inbox: Inbox
  private let rulebook: Rulebook
  private let signals: AsyncStream<Void>
  private let signal: AsyncStream<Void>.Continuation
  private let pendingChanges = NIOLockedValueBox(PendingChanges())

  /// - Parameter rulebook: The rules that determine which attempts are of one push.
  init(_ verification: Verification, in inbox: Inbox, by rulebook: Rulebook) {
    self.verification = verification
    self.inbox = inbox
    self.rulebook = rulebook
    (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
  }

  func inboxDidChange(_ changes: InboxChanges) {
    pendingChanges.withLockedValue { pendingChanges in
      pendingChanges.updated += changes.updated.map(\.seq)
      if changes.emptiedThrough != nil {
        pendingChanges.isEmptied = true
        pendingChanges.updated = []
      }
    }
    signal.yield()
  }

  func inboxDidClose() { signal.finish() }

  /// Runs the verification to its end.
  ///
  /// - Parameters:
  ///   - deadline: When the timeout expires.
  ///   - isMet: Returns whether all expectations are met. Called only when the counts are right and the settle time has
  ///     passed.
  /// - Returns: The counts; nil if the server stopped or the client disconnected.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  func run(
    until deadline: ContinuousClock.Instant, isMet: (VerificationCounts) throws -> Bool
  ) async throws -> VerificationCounts? {
    if let failure = verification.failure { throw failure }
    var rounds = Rounds(verification, until: deadline)
    // Without a timeout only the existing records count, so no listener is needed.
    guard verification.timeout > .zero else { return try await countNewRecords(&rounds) ? rounds.totals : nil }
    guard inbox.notifier.add(self, to: inbox) else { return nil }
    var timer = WaitTimer()
    defer {
      inbox.notifier.remove(self)
      timer.cancel()
    }
    var iterator = signals.makeAsyncIterator()
    repeat {
      guard try await countNewRecords(&rounds) else { return nil }
      guard let time = try rounds.nextRound(at: .now, isMet: isMet) else { return rounds.totals }
      timer.schedule(at: time) { [signal] in signal.yield() }
    } while await iterator.next() != nil
    return nil
  }

  /// Counts the new records.
  ///
  /// - Returns: false if the task was cancelled.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  private func countNewRecords(_ rounds: inout Rounds) async throws(StoreUnavailable) -> Bool {
    let pendingChanges = pendingChanges.withLockedValue { pendingChanges in
      defer { pendingChanges = PendingChanges() }
      return pendingChanges
    }
    if pendingChanges.isEmptied { rounds.restart() }
    let snapshot = inbox.snapshot()
    if rounds.totals.checksRetries { try inbox.updateFindings(by: rulebook) }
    for seq in pendingChanges.updated where rounds.totals.isWaiting(for: seq) {
      if let record = try inbox.record(seq: seq) { rounds.count(record, in: inbox) }
    }
    var newRecords = Selection.allKinds
    newRecords.after = rounds.seen
    var iterator = InboxIterator(snapshot, newRecords)
    while let records = try iterator.next() {
      for record in records { rounds.count(record, in: inbox) }
      if Task.isCancelled { return false }
      await Task.yield()
    }
    rounds.seen = max(rounds.seen, snapshot.lastSeq)
    return true
  }
}

/// The counts so far, and the time of the next round.
private struct Rounds {
  private(set) var totals: VerificationCounts
  /// All records up to this `seq` were counted.
  var seen: Int
  private let deadline: ContinuousClock.Instant
  /// The time of the last change that affects an expectation.
  private var quietSince: ContinuousClock.Instant
  /// Whether all expectations are met, if that was evaluated since the last change.
  private var isMet: Bool?

  init(_ verification: Verification, until deadline: ContinuousClock.Instant) {
    totals = VerificationCounts(verification)
    seen = verification.after
    quietSince = .now
    self.deadline = deadline
  }

  mutating func restart() {
    totals = VerificationCounts(totals.verification)
    seen = totals.verification.after
    change()
  }

  mutating func count(_ record: borrowing Record, in inbox: Inbox) {
    if totals.count(record, identity: inbox.analyzer.identity) { change() }
  }

  private mutating func change() {
    quietSince = .now
    isMet = nil
  }

  /// Returns the time of the next round if nothing arrives before; nil if there is nothing to wait for.
  mutating func nextRound(
    at now: ContinuousClock.Instant, isMet evaluate: (VerificationCounts) throws -> Bool
  ) throws -> ContinuousClock.Instant? {
    let verification = totals.verification
    if now >= deadline { return nil }
    if totals.isShort { return deadline }
    guard verification.canBeViolated else { return nil }
    if totals.isBroken, !verification.hasCriteriaBeyondCounts { return nil }
    guard verification.settle > .zero else { return deadline }
    let quiet = quietSince + verification.settle
    guard now >= quiet else { return min(quiet, deadline) }
    let isMet = if let isMet { isMet } else { try evaluate(totals) }
    self.isMet = isMet
    return isMet ? nil : deadline
  }
}
