/// The counts of a verification. Each record of the window is passed to it in order, and a pending record once more
/// after it has ended.
struct VerificationCounts: Sendable {
  /// The counts for one expectation.
  struct Count: Sendable {
    /// The `seq` of each record that counts.
    var seqs = SeqSet()
    /// The number of these that are pending; they may no longer count once they have ended.
    var pending = 0
    /// The positions of the retry sequences with a matching record that has ended; empty unless retries are
    /// expected.
    fileprivate var endedSequences = SeqSet()
    /// The number of matching pending records of each retry sequence, by its position.
    fileprivate var pendingSequences: [Int: Int] = [:]

    /// The positions of the retry sequences with a matching record, ascending.
    var sequences: [Int] {
      var sequences = endedSequences
      for sequence in pendingSequences.keys { sequences.insert(sequence) }
      return sequences.prefix(.max)
    }
  }

  /// What a pending record was counted for: positions of expectations, and of its retry sequence.
  private struct CountedRecord: Sendable {
    /// Whether the record was in the verification's scope.
    var isInScope = true
    var counting: [Int] = []
    var matching: [Int] = []
    var sequence: Int?
  }

  let verification: Verification
  private(set) var counts: [Count]
  /// The `seq` of each record that no expectation matches; empty unless such records are disallowed.
  private(set) var others = SeqSet()
  private(set) var retries = RetrySequences()
  private var pending: [Int: CountedRecord] = [:]
  private let checksRetries: Bool

  init(_ verification: Verification) {
    self.verification = verification
    counts = Array(repeating: Count(), count: verification.expectations.count)
    checksRetries = verification.expectations.contains { $0.retries != nil }
  }

  /// Counts a record of the window, or the end of a record for which `isWaiting(for:)` returns true.
  ///
  /// - Returns: Whether the record may affect the result.
  mutating func count(_ record: borrowing Record) -> Bool {
    let seq = record.seq
    let earlier = pending.removeValue(forKey: seq)
    if let earlier { uncount(earlier, seq) }
    let isPending = record.outcome == .pending
    var counted = CountedRecord()
    guard verification.scope.matches(record) else {
      counted.isInScope = false
      if isPending { pending[seq] = counted }
      return earlier?.isInScope == true
    }
    if checksRetries { counted.sequence = retries.add(record) }
    for (index, expectation) in verification.expectations.enumerated() where expectation.selection.contains(record) {
      counted.matching.append(index)
      if let sequence = counted.sequence, expectation.retries != nil {
        if isPending {
          counts[index].pendingSequences[sequence, default: 0] += 1
        } else {
          counts[index].endedSequences.insert(sequence)
        }
      }
      guard expectation.ending.matches(record) else { continue }
      counted.counting.append(index)
      counts[index].seqs.insert(seq)
      if isPending { counts[index].pending += 1 }
    }
    if counted.matching.isEmpty, verification.allowsNoOthers { others.insert(seq) }
    if isPending { pending[seq] = counted }
    return !counted.matching.isEmpty || earlier != nil || verification.allowsNoOthers
      || verification.refusedFindings != nil || verification.requiresNothingLost || checksRetries && record.attempt > 1
  }

  /// Returns whether the record was pending when it was counted.
  func isWaiting(for seq: Int) -> Bool { pending[seq] != nil }

  /// Undoes the counting of a pending record.
  private mutating func uncount(_ counted: CountedRecord, _ seq: Int) {
    for index in counted.counting {
      counts[index].seqs.remove(seq)
      counts[index].pending -= 1
    }
    for index in counted.matching {
      guard let sequence = counted.sequence, let count = counts[index].pendingSequences[sequence] else { continue }
      counts[index].pendingSequences[sequence] = count > 1 ? count - 1 : nil
    }
    if counted.matching.isEmpty { others.remove(seq) }
  }

  // MARK: - Intermediate results

  /// Whether a count is still below its minimum.
  var isShort: Bool { counts.indices.contains(where: isShort) }

  /// Returns whether the count of one expectation is still below its minimum.
  func isShort(_ index: Int) -> Bool {
    let (expectation, count) = (verification.expectations[index], counts[index].seqs.count)
    return count < expectation.count?.minimum ?? 0 && !expectation.permits(count)
  }

  /// Whether a count is too large or an unexpected push arrived, so that the verification fails whatever follows.
  var isBroken: Bool {
    let isOver = zip(verification.expectations, counts).contains { expectation, count in
      expectation.count.map { count.seqs.count - count.pending > $0.maximum ?? .max } ?? false
    }
    return isOver || others.count > pending.values.count { $0.isInScope && $0.matching.isEmpty }
  }
}

extension Verification {
  /// Whether a further push could make the verification fail, so that meeting all expectations once is not enough.
  var canBeViolated: Bool {
    hasCriteriaBeyondCounts || allowsNoOthers || expectations.contains { $0.count?.maximum != nil || $0.allowsNone }
  }

  /// Whether the verification has criteria other than counts, so that one wrong count does not complete the report.
  var hasCriteriaBeyondCounts: Bool {
    order != nil || refusedFindings != nil || requiresNothingLost || expectations.contains { $0.retries != nil }
  }
}
