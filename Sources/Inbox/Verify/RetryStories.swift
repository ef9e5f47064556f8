internal import APNSRules

/// The attempts of each push, grouped into sequences. A sequence begins with a first attempt and continues while the
/// same push is sent again, until it is accepted.
struct RetryStories: Sendable {
  /// A single attempt.
  struct Attempt: Sendable {
    let seq: Int
    /// The times when the attempt arrived and when the client could know its end, in monotonic nanoseconds of
    /// machine time.
    let arrivedAt: Int64
    let endedAt: Int64
    let outcome: Record.Outcome

    init(_ record: borrowing Record) {
      seq = record.seq
      arrivedAt = record.arrivedAt
      endedAt = record.endedAt
      outcome = record.outcome
    }
  }

  /// The attempts of one push in order, at least one.
  struct Story: Sendable {
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
  /// The position of the newest attempt of each sequence, in the order in which the sequences began.
  private var latest: [Int32] = []
  /// The newest sequence of each push.
  private var newest: [PushKey: Int32] = [:]
  /// The pending attempts by the `seq` of their records: the positions of the attempt and of its sequence.
  private var pending: [Int: (attempt: Int, story: Int)] = [:]

  /// The sequence at a position returned by `take(_:)`.
  subscript(position: Int) -> Story {
    var found: [Attempt] = []
    var index = latest[position]
    while index >= 0 {
      found.append(attempts[Int(index)])
      index = earlier[Int(index)]
    }
    found.reverse()
    return Story(attempts: found)
  }

  /// Adds an attempt, or replaces a pending one that has ended.
  ///
  /// - Returns: The position of its sequence.
  mutating func take(_ record: borrowing Record) -> Int {
    let attempt = Attempt(record)
    if let known = pending[record.seq] {
      attempts[known.attempt] = attempt
      if attempt.outcome != .pending { pending[record.seq] = nil }
      return known.story
    }
    let push = record.pushKey
    // An inbox in memory has far fewer than 2³¹ records.
    let index = Int32(truncatingIfNeeded: attempts.count)
    attempts.append(attempt)
    let story: Int
    if record.attempt > 1, let begun = newest[push] {
      story = Int(begun)
      earlier.append(latest[story])
      latest[story] = index
    } else {
      story = latest.count
      earlier.append(-1)
      latest.append(index)
      newest[push] = Int32(truncatingIfNeeded: story)
    }
    if attempt.outcome == .pending { pending[record.seq] = (Int(index), story) }
    return story
  }
}
