internal import APNSRules

/// What became of the attempts of each push that was not delivered: `retried-permanent`, `hot-retry`, `no-backoff` and
/// `duplicate`.
struct PushStories: Sendable {
  private struct Story: Sendable {
    var last: Attempt
    /// The attempts that ended, the last ones of many.
    var seqs: [Int] = []
    /// Nanoseconds from each failure that a back-off is for to the next attempt.
    var delays: [Int64] = []
    /// The attempt that APNs took, the first one.
    var taken: Taken?
  }

  fileprivate struct Attempt: Sendable {
    let seq: Int
    let end: AttemptEnd
    let endedAt: Int64
    let answer: String
    let remedy: Int
    let retryAfter: Int64?
    let connection: ObjectIdentifier
  }

  private struct Taken: Sendable {
    let seq: Int
    let id: Int
  }

  /// So many pushes are remembered in each of two generations, as attempts are.
  private static let limit = AttemptTable.limit
  /// So many attempts of a push are kept as evidence.
  private static let attemptLimit = 10

  private var stories = TwoGenerations<PushKey, Story>(limit: limit)
  /// Pushes of which an attempt has no end yet, and how many have none.
  private var pending: [PushKey: Int] = [:]

  /// Whether no push has a story, so that one that is delivered at once need not be looked up.
  var isEmpty: Bool { stories.isEmpty && pending.isEmpty }

  /// An attempt has begun that will be taken when it has ended.
  mutating func await(_ push: PushKey) { pending[push, default: 0] += 1 }

  /// It has ended, or is gone.
  mutating func awaitNoMore(_ push: PushKey) {
    guard let count = pending[push] else { return }
    pending[push] = count > 1 ? count - 1 : nil
  }

  /// Looks at an attempt that has ended.
  ///
  /// - Returns: what is earned, and by which record, which may be a later one that was looked at before.
  mutating func take(_ record: borrowing Record, _ push: PushKey) -> [(seq: Int, earned: Earned)] {
    guard let end = AttemptEnd(record) else { return [] }
    let former = stories.remove(push).flatMap { story in
      record.arrivedAt &- story.last.endedAt < FindingThreshold.silence ? story : nil
    }
    if let former, record.seq < former.last.seq {
      // It was pending for so long that the next attempt has ended before it.
      stories.set(push, former)
      return lateDuplicate(record, former)
    }
    var earned: [(seq: Int, earned: Earned)] = []
    var story = former ?? Story(last: Attempt(record, end))
    if former != nil, record.arrivedAt >= story.last.endedAt {
      earned = judge(record, after: &story).map { (record.seq, $0) }
    }
    let id = record.idIdentity
    if record.accepted {
      if let taken = story.taken, taken.id != id, !record.isCollapsible {
        earned.append((record.seq, Earned(.duplicate, with: [taken.seq], .twice)))
      }
      story.taken = story.taken ?? Taken(seq: record.seq, id: id)
    }
    // Once it was delivered, the same push again is a new one.
    if case .delivered = end, pending[push] == nil { return earned }
    story.last = Attempt(record, end)
    story.seqs = story.seqs.suffix(Self.attemptLimit - 1) + [record.seq]
    stories.set(push, story)
    return earned
  }

  private func lateDuplicate(_ record: borrowing Record, _ story: Story) -> [(seq: Int, earned: Earned)] {
    guard record.accepted, let taken = story.taken, taken.seq > record.seq, taken.id != record.idIdentity,
      !record.isCollapsible
    else { return [] }
    return [(taken.seq, Earned(.duplicate, with: [record.seq], .twice))]
  }

  private func judge(_ record: borrowing Record, after story: inout Story) -> [Earned] {
    let last = story.last
    let delay = record.arrivedAt &- last.endedAt
    var earned: [Earned] = []
    switch last.end {
    case .delivered, .gone, .unprocessed: return []
    case .permanent(let remedy):
      guard remedy.value(of: record) == last.remedy else { return [] }
      return [Earned(.retriedPermanent, with: [last.seq], .permanent(answer: last.answer))]
    case .later:
      if let asked = last.retryAfter, delay < asked.multipliedReportingOverflow(by: 1_000_000_000).partialValue {
        earned.append(Earned(.hotRetry, with: [last.seq], .hot(answer: last.answer, after: delay, asked: asked)))
      } else if delay < FindingThreshold.instant, !last.isLeft(by: record) {
        earned.append(Earned(.hotRetry, with: [last.seq], .hot(answer: last.answer, after: delay, asked: nil)))
      }
    case .lost: break
    }
    story.delays = story.delays.suffix(Self.attemptLimit - 1) + [delay]
    if Self.areSteady(story.delays) {
      earned.append(Earned(.noBackoff, with: story.seqs, .steady(story.delays)))
    }
    return earned
  }

  /// Whether delays do not grow. Those that are no delay at all are alike.
  private static func areSteady(_ delays: [Int64]) -> Bool {
    let lengths = delays.map { Double(max($0, FindingThreshold.instant)) }
    guard lengths.count > 1, let first = lengths.first else { return false }
    if lengths.count < FindingThreshold.manyDelays {
      let ratio = lengths[1] / first
      return ratio <= FindingThreshold.sameDelay && ratio >= 1 / FindingThreshold.sameDelay
    }
    return !lengths.dropFirst().contains { $0 >= first * FindingThreshold.grownDelay }
  }
}

extension PushStories.Attempt {
  fileprivate init(_ record: borrowing Record, _ end: AttemptEnd) {
    seq = record.seq
    self.end = end
    endedAt = record.endedAt
    answer = record.answerText
    remedy = if case .permanent(let remedy) = end { remedy.value(of: record) } else { 0 }
    retryAfter = record.retryAfter
    connection = ObjectIdentifier(record.connection)
  }

  /// Whether the provider did what these two answers ask for instead of waiting: another connection.
  fileprivate func isLeft(by record: borrowing Record) -> Bool {
    guard ObjectIdentifier(record.connection) != connection else { return false }
    return answer == "503 Shutdown" || answer == "429 TooManyProviderTokenUpdates"
  }
}

extension Record {
  /// Tells the push's `apns-id`, without case.
  fileprivate var idIdentity: Int {
    withID { bytes in
      var hasher = Hasher()
      for byte in bytes ?? UnsafeRawBufferPointer(start: nil, count: 0) { hasher.combine(byte | 0x20) }
      return hasher.finalize()
    }
  }

  /// Whether the device shows it in place of the same push before it (APNS.md section 11).
  fileprivate var isCollapsible: Bool { facts.collapseID != nil }
}
