internal import APNSRules

/// The attempts of each push, put together: a story begins with a first attempt and goes on while the same push is sent
/// again, until APNs takes it.
struct RetryStories: Sendable {
  /// One attempt.
  struct Attempt: Sendable {
    let seq: Int
    /// When it came, and when the client could know how it ended, in monotonic nanoseconds of machine time.
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

  /// The attempts of one push, in their order; never none.
  struct Story: Sendable {
    var attempts: [Attempt]

    /// How long the provider waited before each retry: from the end of one attempt to the next, never below zero.
    var delays: [Duration] {
      zip(attempts, attempts.dropFirst()).map { earlier, later in
        .nanoseconds(max(0, later.arrivedAt &- earlier.endedAt))
      }
    }
  }

  /// All attempts, in the order they came. Each story is a chain through this array: an array per story takes twice the
  /// memory.
  private var attempts: [Attempt] = []
  /// For each attempt the position of the one before it in its story; -1 for a first attempt.
  private var earlier: [Int32] = []
  /// The position of the newest attempt of each story, in the order the stories began.
  private var latest: [Int32] = []
  /// The newest story of each push.
  private var newest: [PushKey: Int32] = [:]
  /// The attempts that have not ended, by the numbers of their records: their positions, and those of their stories.
  private var pending: [Int: (attempt: Int, story: Int)] = [:]

  /// The story at a position that `take` returned.
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
  /// - Returns: the position of its story.
  mutating func take(_ record: borrowing Record) -> Int {
    let attempt = Attempt(record)
    if let known = pending[record.seq] {
      attempts[known.attempt] = attempt
      if attempt.outcome != .pending { pending[record.seq] = nil }
      return known.story
    }
    let push = record.pushKey
    // An inbox in memory has far fewer records than 32 bits count.
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
