/// The counts of a verification. Each record of the window is passed to it in order, and an changeable record again
/// whenever it has changed.
///
/// A record is changeable while it is pending or, if a condition depends on it, while its delivery may change.
struct VerificationCounts: Sendable {
  /// The counts for one expectation.
  struct Count: Sendable {
    /// The `seq` of each record that counts.
    var seqs = SeqSet()
    /// The number of these that are changeable: they may no longer count later.
    var changeable = 0
    /// The positions of the retry sequences with a matching record that is settled; empty unless retries are expected.
    fileprivate var settledSequences = SeqSet()
    /// The number of matching changeable records of each retry sequence, by its position.
    fileprivate var unsettledSequences: [Int: Int] = [:]

    /// The positions of the retry sequences with a matching record, ascending.
    var sequences: [Int] {
      var sequences = settledSequences
      for sequence in unsettledSequences.keys { sequences.insert(sequence) }
      return sequences.prefix(.max)
    }
  }

  /// What an changeable record was counted for: positions of expectations, and of its retry sequence.
  private struct CountedRecord: Sendable {
    /// Whether the record was in the verification's scope.
    var isInScope = true
    /// Whether the record had ended.
    var hasEnded = false
    var counting: [Int] = []
    var matching: [Int] = []
    var sequence: Int?
  }

  let verification: Verification
  private(set) var counts: [Count]
  /// The `seq` of each record that no expectation matches; empty unless such records are disallowed.
  private(set) var others = SeqSet()
  private(set) var retries = RetrySequences()
  private var changeable: [Int: CountedRecord] = [:]
  /// Whether an expectation has a retry policy, so that records are counted after their analysis.
  let checksRetries: Bool
  private let dependsOnDelivery: Bool

  init(_ verification: Verification) {
    self.verification = verification
    counts = Array(repeating: Count(), count: verification.expectations.count)
    checksRetries = verification.checksRetries
    dependsOnDelivery =
      verification.scope.dependsOnDelivery
      || verification.expectations.contains { $0.selection.filter.dependsOnDelivery || $0.ending.dependsOnDelivery }
  }

  /// Counts a record of the window, or the change of a record for which `isWaiting(for:)` returns true.
  ///
  /// - Parameter identity: Returns the push of an attempt; nil if it follows from the record alone.
  /// - Returns: Whether the record may affect the result.
  mutating func count(_ record: borrowing Record, identity: (borrowing Record) -> PushIdentities.Identity?) -> Bool {
    let seq = record.seq
    let earlier = changeable.removeValue(forKey: seq)
    if let earlier { uncount(earlier, seq) }
    let isChangeable = record.mayChange(includingDelivery: dependsOnDelivery)
    var counted = CountedRecord(hasEnded: record.outcome != .pending)
    guard verification.scope.matches(record) else {
      counted.isInScope = false
      if isChangeable { changeable[seq] = counted }
      return earlier?.isInScope == true
    }
    if checksRetries {
      counted.sequence =
        earlier.flatMap { $0.hasEnded ? $0.sequence : nil } ?? retries.add(record, of: identity(record))
    }
    for (index, expectation) in verification.expectations.enumerated() where expectation.selection.contains(record) {
      counted.matching.append(index)
      if let sequence = counted.sequence, expectation.retries != nil {
        if isChangeable {
          counts[index].unsettledSequences[sequence, default: 0] += 1
        } else {
          counts[index].settledSequences.insert(sequence)
        }
      }
      guard expectation.ending.matches(record) else { continue }
      counted.counting.append(index)
      counts[index].seqs.insert(seq)
      if isChangeable { counts[index].changeable += 1 }
    }
    if counted.matching.isEmpty, verification.allowsNoOthers, verification.covers(record.kind) { others.insert(seq) }
    if isChangeable { changeable[seq] = counted }
    return !counted.matching.isEmpty || earlier != nil || verification.allowsNoOthers
      || verification.refusedFindings != nil || verification.requiresNothingLost || checksRetries && record.attempt > 1
  }

  /// Returns whether the record was changeable when it was counted.
  func isWaiting(for seq: Int) -> Bool { changeable[seq] != nil }

  /// Undoes the counting of an changeable record.
  private mutating func uncount(_ counted: CountedRecord, _ seq: Int) {
    for index in counted.counting {
      counts[index].seqs.remove(seq)
      counts[index].changeable -= 1
    }
    for index in counted.matching {
      guard let sequence = counted.sequence, let count = counts[index].unsettledSequences[sequence] else { continue }
      counts[index].unsettledSequences[sequence] = count > 1 ? count - 1 : nil
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
      expectation.count.map { count.seqs.count - count.changeable > $0.maximum ?? .max } ?? false
    }
    return isOver || others.count > changeable.values.count { $0.isInScope && $0.matching.isEmpty }
  }
}

extension Verification {
  /// The memory that counting needs for each record of the inbox if retries are checked, in bytes.
  package static let bytesPerAttempt = 96

  /// Whether an expectation has a retry policy, so that the attempts of all pushes are kept while they are counted.
  package var checksRetries: Bool { expectations.contains { $0.retries != nil } }

  /// Whether a further push could make the verification fail, so that meeting all expectations once is not enough.
  var canBeViolated: Bool {
    hasCriteriaBeyondCounts || allowsNoOthers || expectations.contains { $0.count?.maximum != nil || $0.allowsNone }
  }

  /// Whether the verification has criteria other than counts, so that one wrong count does not complete the report.
  var hasCriteriaBeyondCounts: Bool {
    order != nil || refusedFindings != nil || requiresNothingLost || checksRetries
  }
}
