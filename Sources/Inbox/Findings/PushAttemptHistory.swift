internal import APNSMockNotation

internal import APNSMockRules
internal import APNSMockHTTPMessage

/// The sequence of attempts of each push that was not accepted with a response, for the findings `retried-permanent`, `hot-retry`,
/// `no-backoff` and `duplicate`.
struct PushAttemptHistory: Sendable {
  private struct AttemptSequence: Sendable {
    var last: Attempt
    /// The `seq` of each attempt that ended; of many, the last ones.
    var seqs: [Int] = []
    /// Nanoseconds from each failure that calls for a back-off to the next attempt.
    var delays: [Int64] = []
    /// The first attempt that was accepted.
    var accepted: AcceptedAttempt?
  }

  fileprivate struct Attempt: Sendable {
    let seq: Int
    let advice: RetryAdvice
    /// The status of APNs' own verdict; nil without one.
    let verdictStatus: Int?
    let endedAt: MonotonicTime
    let response: String
    let remedy: Int
    let retryAfter: Int64?
    /// The `identity` of the connection.
    let connection: UInt64
  }

  private struct AcceptedAttempt: Sendable {
    let seq: Int
    let id: Int
  }

  /// The number of pushes in each of two generations, as in the attempt table.
  private static let limit = AttemptTable.limit
  /// The maximum number of a push's attempts that are kept as evidence.
  private static let attemptLimit = 10

  private var sequences = GenerationalCache<PushKey, AttemptSequence>(limit: limit)
  /// The number of pending attempts of each push that has any.
  private var pending: [PushKey: Int] = [:]

  /// Whether no push is tracked, so that a push delivered at once need not be looked up.
  var isEmpty: Bool { sequences.isEmpty && pending.isEmpty }

  /// Counts an attempt that is pending and will be passed to `analyze(_:_:)` when it ends.
  mutating func addPending(_ push: PushKey) { pending[push, default: 0] += 1 }

  /// Undoes `addPending(_:)` for an attempt that has ended or was removed.
  mutating func endPending(_ push: PushKey) {
    guard let count = pending[push] else { return }
    pending[push] = count > 1 ? count - 1 : nil
  }

  /// Analyzes an attempt that has ended.
  ///
  /// - Parameter end: Returns how a connection has ended; nil for an open one.
  /// - Returns: The findings and the `seq` of the record of each, which may be a later record that was analyzed
  ///   before.
  mutating func analyze(
    _ record: borrowing Record, _ push: PushKey, _ end: (UInt64) -> ConnectionEnd.Closing?
  ) -> [(seq: Int, evidence: FindingEvidence)] {
    guard let advice = record.retryAdvice, record.isRequestComplete else { return [] }
    let former = sequences.removeValue(forKey: push).flatMap { sequence in
      record.arrivedAt &- sequence.last.endedAt < FindingThreshold.retryWindow ? sequence : nil
    }
    if let former, record.seq < former.last.seq {
      // The attempt was pending for so long that the next attempt ended before it.
      sequences[push] = former
      return lateDuplicate(record, former)
    }
    var evidence: [(seq: Int, evidence: FindingEvidence)] = []
    var sequence = former ?? AttemptSequence(last: Attempt(record, advice))
    if former != nil, record.arrivedAt >= sequence.last.endedAt {
      let (connection, endedAt) = (sequence.last.connection, sequence.last.endedAt)
      let isUnread = end(connection)?.mayHaveDestroyed(responseOf: endedAt, before: record.arrivedAt) == true
      evidence = retryEvidence(for: record, after: &sequence, isUnread: isUnread).map { (record.seq, $0) }
    }
    let id = record.idIdentity
    if record.accepted {
      if let accepted = sequence.accepted, accepted.id != id, !record.isCollapsible {
        evidence.append((record.seq, FindingEvidence(.duplicate, with: [accepted.seq], .acceptedTwice)))
      }
      sequence.accepted = sequence.accepted ?? AcceptedAttempt(seq: record.seq, id: id)
    }
    // After delivery, the same push is a new one.
    if case .none = advice, pending[push] == nil { return evidence }
    sequence.last = Attempt(record, advice)
    sequence.seqs = sequence.seqs.suffix(Self.attemptLimit - 1) + [record.seq]
    sequences[push] = sequence
    return evidence
  }

  private func lateDuplicate(_ record: borrowing Record, _ sequence: AttemptSequence) -> [(
    seq: Int, evidence: FindingEvidence
  )] {
    guard record.accepted, let accepted = sequence.accepted, accepted.seq > record.seq,
      accepted.id != record.idIdentity,
      !record.isCollapsible
    else { return [] }
    return [(accepted.seq, FindingEvidence(.duplicate, with: [record.seq], .acceptedTwice))]
  }

  /// - Parameter isUnread: Whether the client may not have the response to the attempt before.
  private func retryEvidence(
    for record: borrowing Record, after sequence: inout AttemptSequence, isUnread: Bool
  ) -> [FindingEvidence] {
    let last = sequence.last
    let delay = record.arrivedAt &- last.endedAt
    var evidence: [FindingEvidence] = []
    switch isUnread ? .afterLoss : last.advice {
    case .none, .unregister, .immediately: return []
    case .fix(let remedy):
      guard remedy.value(of: record) == last.remedy, !last.wasFixedElsewhere(before: record) else { return [] }
      return [FindingEvidence(.retriedPermanent, with: [last.seq], .permanent(response: last.response))]
    case .later:
      if let retryAfter = last.retryAfter,
        delay < retryAfter.multipliedReportingOverflow(by: 1_000_000_000).partialValue
      {
        evidence.append(
          FindingEvidence(
            .hotRetry, with: [last.seq], .earlyRetry(response: last.response, after: delay, retryAfter: retryAfter)))
      } else if delay < FindingThreshold.instant, !last.isRetriedOnNewConnection(by: record) {
        evidence.append(
          FindingEvidence(
            .hotRetry, with: [last.seq], .earlyRetry(response: last.response, after: delay, retryAfter: nil)))
      }
    case .afterLoss: break
    }
    sequence.delays = sequence.delays.suffix(Self.attemptLimit - 1) + [delay]
    if Self.areConstant(sequence.delays) {
      evidence.append(FindingEvidence(.noBackoff, with: sequence.seqs, .constantDelays(sequence.delays)))
    }
    return evidence
  }

  /// Returns whether delays do not grow. All delays below `FindingThreshold.instant` count as equal.
  private static func areConstant(_ delays: [Int64]) -> Bool {
    let lengths = delays.map { Double(max($0, FindingThreshold.instant)) }
    guard lengths.count > 1, let first = lengths.first else { return false }
    if lengths.count < FindingThreshold.manyDelays {
      let ratio = lengths[1] / first
      return ratio <= FindingThreshold.sameDelay && ratio >= 1 / FindingThreshold.sameDelay
    }
    return !lengths.dropFirst().contains { $0 >= first * FindingThreshold.grownDelay }
  }
}

extension PushAttemptHistory.Attempt {
  fileprivate init(_ record: borrowing Record, _ advice: RetryAdvice) {
    seq = record.seq
    self.advice = advice
    verdictStatus = record.verdict?.status
    endedAt = record.endedAt
    response = record.responseText
    remedy = if case .fix(let remedy) = advice { remedy.value(of: record) } else { 0 }
    retryAfter = record.retryAfter
    connection = record.connection.identity
  }

  /// Whether APNs' rules accept the push now and did not before, because something changed that the request does not show: the
  /// device was registered, or the topic became known.
  fileprivate func wasFixedElsewhere(before record: borrowing Record) -> Bool {
    guard let verdictStatus, !HTTPStatus.isSuccess(verdictStatus) else { return false }
    return record.verdict?.isAccepted == true
  }

  /// Whether the provider sent the attempt on another connection, as these two responses require, instead of
  /// waiting.
  fileprivate func isRetriedOnNewConnection(by record: borrowing Record) -> Bool {
    guard record.connection.identity != connection else { return false }
    return response == "503 Shutdown" || response == "429 TooManyProviderTokenUpdates"
  }
}

extension Record {
  /// A hash of the push's `apns-id`, compared without case.
  var idIdentity: Int {
    withID { bytes in
      var hasher = Hasher()
      for byte in bytes ?? UnsafeRawBufferPointer(start: nil, count: 0) { hasher.combine(byte | 0x20) }
      return hasher.finalize()
    }
  }

  /// Whether the device replaces an earlier notification with this one (Protocol.md, section 11).
  var isCollapsible: Bool { facts.collapseID != nil }
}
