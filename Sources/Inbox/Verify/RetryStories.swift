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

  /// All stories, in the order they began.
  private(set) var stories: [Story] = []
  /// The newest story of each push.
  private var newest: [PushKey: Int] = [:]
  /// The stories of attempts that have not ended.
  private var pending: [Int: Int] = [:]

  /// Adds an attempt, or tells how one that was pending has ended.
  ///
  /// - Returns: the position of its story.
  mutating func take(_ record: borrowing Record) -> Int {
    let attempt = Attempt(record)
    if let story = pending[record.seq] {
      if let index = stories[story].attempts.firstIndex(where: { $0.seq == attempt.seq }) {
        stories[story].attempts[index] = attempt
      }
      if attempt.outcome != .pending { pending[record.seq] = nil }
      return story
    }
    let push = record.pushKey
    let story: Int
    if record.attempt > 1, let begun = newest[push] {
      story = begun
      stories[story].attempts.append(attempt)
    } else {
      story = stories.endIndex
      newest[push] = story
      stories.append(Story(attempts: [attempt]))
    }
    if attempt.outcome == .pending { pending[record.seq] = story }
    return story
  }
}
