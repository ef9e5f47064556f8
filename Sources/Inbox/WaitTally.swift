/// What a wait has counted: a value that hears of records and says what follows.
struct WaitTally: Sendable {
  /// What follows from what was counted.
  enum Verdict: Equatable, Sendable {
    /// It is what was waited for.
    case satisfied
    /// Nothing that may come can make it that.
    case hopeless
    /// It may yet be; without anything new at the given time, if there is one.
    case open(until: ContinuousClock.Instant?)
  }

  let selection: Selection
  let count: WaitQuery.Count
  let settle: Duration
  /// The numbers of the records that match, ascending.
  private(set) var matched: [Int] = []
  /// Those of them that are pending: they may match no longer once they have ended.
  private var pending: Set<Int> = []
  /// When the number of matches last changed, or the wait began.
  private var quietSince: ContinuousClock.Instant
  /// Whether no record that could count was gone before it was looked at.
  var isComplete = true

  init(_ query: WaitQuery, began: ContinuousClock.Instant) {
    selection = query.selection
    count = query.count
    settle = query.settle
    quietSince = began
  }

  /// Counts a record that was there when the wait began.
  mutating func find(_ record: borrowing Record) {
    if selection.contains(record) { insert(record) }
  }

  /// Counts a record that came, or has ended.
  mutating func take(_ record: borrowing Record, at now: ContinuousClock.Instant) {
    if selection.contains(record) {
      if insert(record) { quietSince = now }
    } else if pending.remove(record.seq) != nil {
      matched.remove(seq: record.seq)
      quietSince = now
    }
  }

  /// Forgets the records up to a number: the inbox was emptied.
  mutating func empty(through seq: Int, at now: ContinuousClock.Instant) {
    let gone = seq == .max ? matched.count : matched.position(ofSeq: seq + 1)
    guard gone > 0 else { return }
    for seq in matched[..<gone] { pending.remove(seq) }
    matched.removeFirst(gone)
    quietSince = now
  }

  /// What follows from all that.
  func verdict(at now: ContinuousClock.Instant) -> Verdict {
    if case .exactly(let wanted) = count, !isComplete || matched.count - pending.count > wanted { return .hopeless }
    return isWanted ? afterQuiet(now) : .open(until: nil)
  }

  /// Whether so many match as are wanted, quiet or not.
  var isWanted: Bool {
    switch count {
    case .atLeast(let wanted): matched.count >= wanted
    case .exactly(let wanted): matched.count == wanted
    }
  }

  private func afterQuiet(_ now: ContinuousClock.Instant) -> Verdict {
    now >= quietSince + settle ? .satisfied : .open(until: quietSince + settle)
  }

  /// - Returns: whether it was not there yet.
  @discardableResult
  private mutating func insert(_ record: borrowing Record) -> Bool {
    if record.outcome == .pending { pending.insert(record.seq) } else { pending.remove(record.seq) }
    return matched.insert(seq: record.seq)
  }
}
