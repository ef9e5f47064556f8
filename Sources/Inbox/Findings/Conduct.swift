internal import APNSRules
internal import NIOConcurrencyHelpers

/// What the provider of an inbox does wrong over several records.
///
/// Nobody looks while pushes come. When somebody asks, it goes on from the last record it has looked at, some thousand at
/// a time, with a lock of its own that no push waits for. A record that is pending is looked at when it has ended: a
/// retry comes after the end of the attempt before it, so by then the order is right.
final class Conduct: Sendable {
  fileprivate struct State: Sendable {
    var ledger = Ledger()
    /// All records up to this number were looked at, or are in `pending`.
    var through = 0
    var pending: [(seq: Int, push: PushKey)] = []
  }

  /// So many records at a time.
  private static let span = 16_384

  private let state = NIOLockedValueBox(State())

  /// Looks at what is new.
  func catchUp(with inbox: Inbox, by rulebook: Rulebook) {
    let interval = rulebook.settings.tokenUpdateInterval.milliseconds
    while state.withLockedValue({ !$0.takeSome(of: inbox.snapshot(), at: Self.span, interval: interval) }) {}
  }

  /// Looks at what is new, unless this record was looked at.
  func catchUp(to seq: Int, with inbox: Inbox, by rulebook: Rulebook) {
    if state.withLockedValue({ $0.through < seq }) { catchUp(with: inbox, by: rulebook) }
  }

  /// What a record has earned, as far as it was looked at.
  ///
  /// - Parameters:
  ///   - abandonedAfter: milliseconds without a further attempt after which a push counts as abandoned.
  ///   - now: milliseconds since 1970 of the server's clock; nil if there is no clock, and so no abandoned push.
  func earned(by seq: Int, abandonedAfter: Int64, now: Int64?) -> [Earned] {
    state.withLockedValue { state in
      let earned = state.ledger.earned[seq] ?? []
      guard let now, let last = state.ledger.unsettled.attempts[seq], let finishedAt = last.finishedAt,
        !last.isByOwnClient, now &- finishedAt >= abandonedAfter
      else { return earned }
      return earned + [Earned(.abandoned, with: [], .abandoned(after: abandonedAfter))]
    }
  }

  /// The numbers of the last attempts, after `seq`, of pushes that were neither accepted nor rejected for good; ascending.
  func unsettled(after seq: Int) -> [Int] {
    state.withLockedValue { $0.ledger.unsettled.attempts.keys.filter { $0 > seq } }.sorted()
  }

  /// The numbers of all records that have earned something, in no order.
  var seqs: [Int] { state.withLockedValue { Array($0.ledger.earned.keys) } }

  /// The inbox was emptied: nothing up to this number is in it any more.
  func forget(through seq: Int) {
    state.withLockedValue { state in
      state = State()
      state.through = seq
    }
  }
}

extension Conduct.State {
  /// Looks at the next records.
  ///
  /// - Returns: whether these were all.
  fileprivate mutating func takeSome(of snapshot: InboxSnapshot, at span: Int, interval: Int64) -> Bool {
    takePending(of: snapshot, interval: interval)
    // What was pushed out before anybody looked costs no steps.
    through = max(through, snapshot.lastEvicted)
    var selection = Selection()
    selection.after = through
    var taken = 0
    snapshot.records.forEach(in: selection) { record in
      if record.outcome == .pending {
        let push = record.pushKey
        pending.append((record.seq, push))
        ledger.await(record.seq, push)
      } else {
        ledger.take(record, interval: interval)
      }
      through = record.seq
      taken += 1
      return taken < span
    }
    guard taken < span else { return false }
    through = max(through, snapshot.lastSeq)
    ledger.settle()
    ledger.prune { snapshot.records.record($0) != nil }
    return true
  }

  private mutating func takePending(of snapshot: InboxSnapshot, interval: Int64) {
    guard !pending.isEmpty else { return }
    let former = pending
    pending = []
    for (seq, push) in former {
      guard let record = snapshot.records.record(seq) else {
        ledger.forget(seq, push)
        continue
      }
      if record.outcome == .pending {
        pending.append((seq, push))
      } else {
        ledger.awaitNoMore(push)
        ledger.take(record, interval: interval, wasPending: true)
      }
    }
  }
}
