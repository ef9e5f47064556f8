internal import APNSMockNotation

internal import APNSMockRules

/// The attempts of each push, grouped into sequences. A sequence begins with a first attempt and continues while the
/// same push is sent again, until it is accepted.
struct RetrySequences: Sendable {
  /// A single attempt.
  struct Attempt: Sendable {
    let seq: Int
    /// The times when the attempt arrived and when the client could know its end, in monotonic nanoseconds of
    /// machine time.
    let arrivedAt: MonotonicTime
    let endedAt: MonotonicTime
    let outcome: Record.Outcome
    let accepted: Bool

    init(_ record: borrowing Record) {
      seq = record.seq
      arrivedAt = record.arrivedAt
      endedAt = record.endedAt
      outcome = record.outcome
      accepted = record.accepted
    }
  }

  /// The attempts of one push in order; none if the sequence has become the beginning of another one.
  struct AttemptSequence: Sendable {
    var attempts: [Attempt]

    /// The time before each retry: from the end of one attempt to the arrival of the next, at least zero.
    var delays: [Duration] {
      zip(attempts, attempts.dropFirst()).map { earlier, later in
        .nanoseconds(max(0, later.arrivedAt &- earlier.endedAt))
      }
    }
  }

  /// All attempts, in order of arrival. Each sequence is a chain through this array; an array per sequence takes
  /// twice the memory.
  private var attempts: [Attempt] = []
  /// For each attempt the position of the previous one in its sequence; -1 for a first attempt.
  private var earlier: [Int32] = []
  /// The position of the newest attempt of each sequence, in the order in which the sequences began; -1 for one that has become
  /// the beginning of another.
  private var latest: [Int32] = []
  /// The newest sequence of each push.
  private var newest: [PushKey: Int32] = [:]
  /// The pending attempts by the `seq` of their records: the positions of the attempt and of its sequence.
  private var pending: [Int: (attempt: Int, sequence: Int)] = [:]

  /// The sequence at a position returned by `add(_:)`.
  subscript(position: Int) -> AttemptSequence {
    var found: [Attempt] = []
    var index = latest[position]
    while index >= 0 {
      found.append(attempts[Int(index)])
      index = earlier[Int(index)]
    }
    found.reverse()
    return AttemptSequence(attempts: found)
  }

  /// Adds an attempt, or replaces a pending one that has ended.
  ///
  /// - Parameter identity: The push of the attempt; nil if it follows from the record alone.
  /// - Returns: The position of its sequence.
  mutating func add(_ record: borrowing Record, of identity: PushIdentities.Identity?) -> Int {
    let attempt = Attempt(record)
    if let known = pending[record.seq] {
      attempts[known.attempt] = attempt
      if attempt.outcome != .pending { pending[record.seq] = nil }
      return known.sequence
    }
    let push = identity?.push ?? record.pushKey
    // An inbox in memory has far fewer than 2³¹ records.
    let index = Int32(truncatingIfNeeded: attempts.count)
    attempts.append(attempt)
    let sequence: Int
    if let former = identity?.former { join(former, to: push) }
    if let begun = newest[push], record.attempt > 1 || identity != nil {
      sequence = Int(begun)
      let last = latest[sequence]
      if identity?.isOvertaken == true {
        earlier.append(earlier[Int(last)])
        earlier[Int(last)] = index
      } else {
        earlier.append(last)
        latest[sequence] = index
      }
    } else {
      sequence = latest.count
      earlier.append(-1)
      latest.append(index)
      newest[push] = Int32(truncatingIfNeeded: sequence)
    }
    if attempt.outcome == .pending { pending[record.seq] = (Int(index), sequence) }
    return sequence
  }

  /// Makes the newest sequence of one push the newest of another: they are the same push.
  private mutating func join(_ former: PushKey, to push: PushKey) {
    guard let joined = newest.removeValue(forKey: former) else { return }
    let begun = newest.updateValue(joined, forKey: push)
    guard let begun, !attempts[Int(latest[Int(begun)])].accepted else { return }
    // The other one becomes the beginning of this one.
    var first = latest[Int(joined)]
    while earlier[Int(first)] >= 0 { first = earlier[Int(first)] }
    earlier[Int(first)] = latest[Int(begun)]
    latest[Int(begun)] = -1
  }
}

/// Evaluates a retry policy.
struct RetryPolicyEvaluator {
  typealias Criterion = VerificationReport.Criterion
  typealias AttemptSequence = RetrySequences.AttemptSequence

  let policy: RetryPolicy
  /// The retry sequences of the pushes concerned, in the order in which they began.
  let sequences: [AttemptSequence]
  /// Returns a record as users name it.
  let pushName: (Int) -> PushName

  var criteria: [Criterion] {
    var criteria: [Criterion] = []
    if let min = policy.min {
      let worst = sequences.min { $0.attempts.count < $1.attempts.count }
      criteria.append(number("min", "at least \(Self.retries(min))", worst) { $0 >= min })
    }
    if let max = policy.max {
      let worst = sequences.max { $0.attempts.count < $1.attempts.count }
      criteria.append(number("max", "at most \(Self.retries(max))", worst) { $0 <= max })
    }
    if let minimum = policy.minFirstDelay {
      let worst = retried.min { $0.delays[0] < $1.delays[0] }
      criteria.append(
        firstDelay("min_first_delay", "at least \(DurationFormat.text(minimum))", worst) { $0 >= minimum })
    }
    if let maximum = policy.maxFirstDelay {
      let worst = retried.max { $0.delays[0] < $1.delays[0] }
      criteria.append(firstDelay("max_first_delay", "at most \(DurationFormat.text(maximum))", worst) { $0 <= maximum })
    }
    if policy.isGrowing { criteria.append(growing) }
    if let endings = policy.endings { criteria.append(ending(endings)) }
    return criteria
  }

  private var retried: [AttemptSequence] { sequences.filter { $0.attempts.count > 1 } }

  private static func retries(_ count: Int) -> String { count == 1 ? "1 retry" : "\(count) retries" }

  private func criterion(_ name: String, _ wanted: String, _ found: String?, _ isMet: Bool, _ hint: String?)
    -> Criterion
  {
    Criterion(
      name: "retries.\(name)", wanted: wanted, found: sequences.isEmpty ? "no push" : found ?? "no retry", isMet: isMet,
      hint: isMet ? nil : hint)
  }

  private func number(_ name: String, _ wanted: String, _ worst: AttemptSequence?, _ isMet: (Int) -> Bool) -> Criterion
  {
    let count = worst.map { $0.attempts.count - 1 }
    return criterion(
      name, wanted, count.map(Self.retries), count.map(isMet) ?? true,
      worst.map { ReportText.seqs($0.attempts.map { pushName($0.seq) }) })
  }

  private func firstDelay(_ name: String, _ wanted: String, _ worst: AttemptSequence?, _ isMet: (Duration) -> Bool)
    -> Criterion
  {
    let delay = worst?.delays[0]
    return criterion(
      name, wanted, delay.map(DurationFormat.text), delay.map(isMet) ?? true,
      worst.map { "seq \(pushName($0.attempts[1].seq)) after seq \(pushName($0.attempts[0].seq))" })
  }

  /// Returns whether each delay is at least a tenth longer than the previous one. Delays that are meant to be equal
  /// differ by less.
  private static func grows(_ delays: [Duration]) -> Bool {
    zip(delays, delays.dropFirst()).allSatisfy { $1 > $0 && $1 * 10 >= $0 * 11 }
  }

  private var growing: Criterion {
    let worst = sequences.first { !Self.grows($0.delays) }
    let shown = worst ?? retried.max { $0.attempts.count < $1.attempts.count }
    let delays = shown.map { sequence in
      sequence.delays.map(DurationFormat.text).listed(8)
    }
    return criterion(
      "growing", "each delay a tenth longer than the one before", delays, worst == nil,
      worst.map { ReportText.seqs($0.attempts.map { pushName($0.seq) }) })
  }

  private func ending(_ endings: [Record.Outcome]) -> Criterion {
    // `accepted` means the same as the boolean: what APNs did, whatever the client learned of it.
    let wrong = sequences.compactMap(\.attempts.last).filter { last in
      !endings.contains(last.outcome) && !(last.accepted && endings.contains(.accepted))
    }
    let last = wrong.first ?? sequences.last?.attempts.last
    var found = last?.outcome.rawValue
    if wrong.count > 1 { found = found.map { "\($0), and \(wrong.count - 1) more that are not" } }
    return criterion(
      "finally", endings.map(\.rawValue).joinedWithOr, found, wrong.isEmpty,
      ReportText.seqs(wrong.map { pushName($0.seq) }))
  }
}
