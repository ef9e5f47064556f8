/// What was counted for a verification: a value that hears of each record of the window, in their order, and once more of
/// one that was pending.
struct VerificationTally: Sendable {
  /// What was counted for one expectation.
  struct Count: Sendable {
    /// The numbers of the records that count.
    var seqs = SeqSet()
    /// How many of them are pending: they may count no longer once they have ended.
    var pending = 0
    /// The positions of the stories with a matching record that has ended; empty unless retries are expected.
    fileprivate var endedStories = SeqSet()
    /// How many pending records of each story match, by the story's position.
    fileprivate var pendingStories: [Int: Int] = [:]

    /// The positions of the stories with a matching record, ascending.
    var stories: [Int] {
      var stories = endedStories
      for story in pendingStories.keys { stories.insert(story) }
      return stories.prefix(.max)
    }
  }

  /// What a pending record was taken for: positions of expectations, and of its story.
  private struct Taken: Sendable {
    var counting: [Int] = []
    var matching: [Int] = []
    var story: Int?
  }

  let verification: Verification
  private(set) var counts: [Count]
  /// The numbers of the records that no expectation matches; empty unless there must be none.
  private(set) var others = SeqSet()
  private(set) var retries = RetryStories()
  private var pending: [Int: Taken] = [:]
  private let asksForRetries: Bool

  init(_ verification: Verification) {
    self.verification = verification
    counts = Array(repeating: Count(), count: verification.expectations.count)
    asksForRetries = verification.expectations.contains { $0.retries != nil }
  }

  /// Counts a record of the window, or how one has ended that `isWaiting` for.
  ///
  /// - Returns: whether it has to do with what is expected.
  mutating func take(_ record: borrowing Record) -> Bool {
    let seq = record.seq
    let earlier = pending.removeValue(forKey: seq)
    if let earlier { giveBack(earlier, seq) }
    let isPending = record.outcome == .pending
    var taken = Taken()
    if asksForRetries { taken.story = retries.take(record) }
    for (index, expectation) in verification.expectations.enumerated() where expectation.selection.contains(record) {
      taken.matching.append(index)
      if let story = taken.story, expectation.retries != nil {
        if isPending {
          counts[index].pendingStories[story, default: 0] += 1
        } else {
          counts[index].endedStories.insert(story)
        }
      }
      guard expectation.ending.matches(record) else { continue }
      taken.counting.append(index)
      counts[index].seqs.insert(seq)
      if isPending { counts[index].pending += 1 }
    }
    if taken.matching.isEmpty, verification.allowsNoOthers { others.insert(seq) }
    if isPending { pending[seq] = taken }
    return !taken.matching.isEmpty || earlier != nil || verification.allowsNoOthers
      || verification.refusedFindings != nil || verification.allowsNoLost || asksForRetries && record.attempt > 1
  }

  /// Whether the record was pending when it was counted.
  func isWaiting(for seq: Int) -> Bool { pending[seq] != nil }

  /// Forgets what a pending record was counted for.
  private mutating func giveBack(_ taken: Taken, _ seq: Int) {
    for index in taken.counting {
      counts[index].seqs.remove(seq)
      counts[index].pending -= 1
    }
    for index in taken.matching {
      guard let story = taken.story, let count = counts[index].pendingStories[story] else { continue }
      counts[index].pendingStories[story] = count > 1 ? count - 1 : nil
    }
    if taken.matching.isEmpty { others.remove(seq) }
  }

  // MARK: - What follows while somebody waits

  /// Whether a count has yet to become large enough.
  var isShort: Bool { counts.indices.contains(where: isShort) }

  /// Whether that is so for one expectation.
  func isShort(_ index: Int) -> Bool {
    let (expectation, count) = (verification.expectations[index], counts[index].seqs.count)
    return count < expectation.count?.least ?? 0 && !expectation.permits(count)
  }

  /// Whether a count is too large, or a push not expected, whatever comes.
  var isBroken: Bool {
    let isOver = zip(verification.expectations, counts).contains { expectation, count in
      expectation.count.map { count.seqs.count - count.pending > $0.most ?? .max } ?? false
    }
    return isOver || others.count > pending.values.count { $0.matching.isEmpty }
  }
}

extension Verification {
  /// Whether something could be broken by a further push, so that meeting it once is not enough.
  var canBreak: Bool {
    asksForCourse || allowsNoOthers || expectations.contains { $0.count?.most != nil || $0.allowsNone }
  }

  /// Whether more than numbers is expected, so that one broken number does not tell all there is to tell.
  var asksForCourse: Bool {
    order != nil || refusedFindings != nil || allowsNoLost || expectations.contains { $0.retries != nil }
  }
}
