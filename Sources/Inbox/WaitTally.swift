/// The counts of a wait, and whether they meet its condition.
struct WaitTally: Sendable {
  /// The state of the condition.
  enum Verdict: Equatable, Sendable {
    /// The condition is met.
    case satisfied
    /// The condition can no longer be met.
    case hopeless
    /// The condition may be met later; at the given time, if any, even without a new record.
    case open(until: ContinuousClock.Instant?)
  }

  let selection: Selection
  let count: WaitQuery.Count
  let settle: Duration
  /// The `seq` of each matching record, ascending.
  private(set) var matched: [Int] = []
  /// The matching records that are pending: they may no longer match once they have ended.
  private var pending: Set<Int> = []
  /// The time of the last change of the number of matches, or the start of the wait.
  private var quietSince: ContinuousClock.Instant
  /// Whether no record that could count was evicted before it was examined.
  var isComplete = true

  init(_ query: WaitQuery, began: ContinuousClock.Instant) {
    selection = query.selection
    count = query.count
    settle = query.settle
    quietSince = began
  }

  /// Counts a record that existed when the wait began.
  mutating func find(_ record: borrowing Record) {
    if selection.contains(record) { insert(record) }
  }

  /// Counts a record that arrived or ended.
  mutating func take(_ record: borrowing Record, at now: ContinuousClock.Instant) {
    if selection.contains(record) {
      if insert(record) { quietSince = now }
    } else if pending.remove(record.seq) != nil {
      matched.remove(seq: record.seq)
      quietSince = now
    }
  }

  /// Drops the records up to `seq`, after the inbox was emptied.
  mutating func empty(through seq: Int, at now: ContinuousClock.Instant) {
    let gone = seq == .max ? matched.count : matched.position(ofSeq: seq + 1)
    guard gone > 0 else { return }
    for seq in matched[..<gone] { pending.remove(seq) }
    matched.removeFirst(gone)
    quietSince = now
  }

  /// Returns the state of the condition.
  func verdict(at now: ContinuousClock.Instant) -> Verdict {
    if case .exactly(let wanted) = count, !isComplete || matched.count - pending.count > wanted { return .hopeless }
    return isWanted ? afterQuiet(now) : .open(until: nil)
  }

  /// Whether the wanted number of records matches, regardless of the settle time.
  var isWanted: Bool {
    switch count {
    case .atLeast(let wanted): matched.count >= wanted
    case .exactly(let wanted): matched.count == wanted
    }
  }

  private func afterQuiet(_ now: ContinuousClock.Instant) -> Verdict {
    now >= quietSince + settle ? .satisfied : .open(until: quietSince + settle)
  }

  /// Adds a matching record.
  ///
  /// - Returns: Whether it was not counted before.
  @discardableResult
  private mutating func insert(_ record: borrowing Record) -> Bool {
    if record.outcome == .pending { pending.insert(record.seq) } else { pending.remove(record.seq) }
    return matched.insert(seq: record.seq)
  }
}
