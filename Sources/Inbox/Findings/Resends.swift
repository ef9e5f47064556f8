internal import APNSMockNotation

/// Pushes that are sent again after an accepted attempt whose complete response was written, for `duplicate` and
/// `blind-resend`: whether the client had shown that it read the response decides which one it is, if any.
struct Resends: Sendable {
  /// A later attempt that cannot be judged before the connection of the accepted one has ended.
  private struct Candidate: Sendable {
    let accepted: Settlement.Answered
    let seq: Int
    let hasSameID: Bool
    let arrivedAt: MonotonicTime
    /// Whether the push was accepted again, and the device shows both.
    let isSecondNotification: Bool
    /// Whether the client had shown by other pushes that it read the response.
    let isShown: Bool
  }

  private static let candidateLimit = 16_384

  private var candidates: [Candidate] = []
  /// Whether candidates were dropped because there were too many.
  private(set) var isTruncated = false

  /// Analyzes an attempt that has ended.
  ///
  /// - Parameters:
  ///   - former: The accepted attempt of the push before this one that had a complete response.
  ///   - lastArrival: Returns the latest arrival of a push on a connection, in monotonic nanoseconds.
  /// - Returns: What is certain already.
  mutating func analyze(
    _ record: borrowing Record, after former: Settlement.Answered,
    lastArrival: (_ connection: UInt64) -> MonotonicTime?
  ) -> FindingEvidence? {
    guard former.seq != record.seq, record.arrivedAt >= former.respondedAt,
      record.arrivedAt &- former.respondedAt < FindingThreshold.retryWindow
    else { return nil }
    let hasSameID = former.id == record.idIdentity
    // Two equal pushes with ids of their own on one connection are two pushes.
    guard hasSameID || record.connection.identity != former.connection else { return nil }
    let latest =
      record.connection.identity == former.connection
      ? record.arrivedAt : lastArrival(former.connection) ?? former.respondedAt
    let isShown = latest &- former.respondedAt >= FindingThreshold.reaction
    if hasSameID, isShown { return FindingEvidence(.blindResend, with: [former.seq], .resentAfterResponse) }
    add(
      Candidate(
        accepted: former, seq: record.seq, hasSameID: hasSameID, arrivedAt: record.arrivedAt,
        isSecondNotification: record.accepted && !record.isCollapsible, isShown: isShown))
    return nil
  }

  private mutating func add(_ candidate: Candidate) {
    if candidates.count >= Self.candidateLimit {
      candidates.removeFirst(Self.candidateLimit / 2)
      isTruncated = true
    }
    candidates.append(candidate)
  }

  /// Judges the attempts that waited for the end of a connection.
  ///
  /// - Parameter end: Returns how a connection has ended; nil for an open one.
  mutating func settle(_ end: (UInt64) -> ConnectionEnd.Closing?) -> [(seq: Int, evidence: FindingEvidence)] {
    guard !candidates.isEmpty else { return [] }
    var evidence: [(seq: Int, evidence: FindingEvidence)] = []
    candidates.removeAll { candidate in
      guard let end = end(candidate.accepted.connection), end.isFinal else { return false }
      if let found = Self.evidence(candidate, end) { evidence.append((candidate.seq, found)) }
      return true
    }
    return evidence
  }

  private static func evidence(_ candidate: Candidate, _ end: ConnectionEnd.Closing) -> FindingEvidence? {
    let (accepted, arrivedAt) = (candidate.accepted, candidate.arrivedAt)
    let hasEnded = end.at <= arrivedAt
    let wasShown =
      candidate.isShown || hasEnded && end.isOrderly
      || end.lastReceivedAt <= arrivedAt && end.lastReceivedAt &- accepted.respondedAt >= FindingThreshold.reaction
    if wasShown {
      guard
        candidate.hasSameID
          || hasEnded && end.initiator == .server && arrivedAt &- end.at < FindingThreshold.batchRepetition
      else { return nil }
      return FindingEvidence(.blindResend, with: [accepted.seq], .resentAfterResponse)
    }
    guard !candidate.hasSameID, candidate.isSecondNotification, hasEnded, end.initiator == .server || end.isReset else {
      return nil
    }
    return FindingEvidence(.duplicate, with: [accepted.seq], .acceptedTwice)
  }
}
