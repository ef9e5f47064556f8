internal import APNSMockRules
internal import APNSMockNotation

/// Connections that the provider closed after a single push, for `connection-churn`. They are counted for each client address
/// and topic: test suites that share a server and a machine have topics of their own.
///
/// The result does not depend on how often the analysis runs: all connections of the window are kept, up to a limit.
struct ConnectionChurn: Sendable {
  /// A connection with a single push.
  private struct SinglePush: Sendable {
    /// The `identity` of the connection.
    let connection: UInt64
    let openedAt: MonotonicTime
    let seq: Int
    let token: UInt64?
    let group: Int
    var isReported = false
  }

  /// The maximum number of connections, open or closed.
  private static let limit = 1 << 17

  /// The connections with one push so far, by their `identity`; they may be open.
  private var candidates: [UInt64: SinglePush] = [:]
  /// Connections closed by the client after one push, in the order in which they were opened, by their group.
  private var singles: [Int: [SinglePush]] = [:]
  private var count = 0
  /// Whether connections were dropped because there were too many.
  private(set) var isTruncated = false

  /// Adds the first push of a connection.
  mutating func begin(_ record: borrowing Record) {
    guard count < Self.limit else { return isTruncated = true }
    var hasher = Hasher()
    hasher.combine(record.connection.clientHost)
    record.withTopic { topic in if let topic { hasher.combine(bytes: topic) } }
    let connection = record.connection
    count += 1
    candidates[connection.identity] = SinglePush(
      connection: connection.identity, openedAt: connection.openedAt, seq: record.seq,
      token: record.verdict?.token?.identity, group: hasher.finalize())
  }

  /// Drops a connection with a second push.
  mutating func removeCandidate(_ connection: UInt64) {
    if candidates.removeValue(forKey: connection) != nil { count -= 1 }
  }

  /// Examines the connections that have ended since the last call.
  ///
  /// - Parameter end: Returns how a connection has ended; nil for an open one.
  /// - Returns: The findings and the `seq` of the record of each.
  mutating func analyzeEnded(_ end: (UInt64) -> ConnectionEnd.Closing?) -> [(seq: Int, evidence: FindingEvidence)] {
    guard !candidates.isEmpty else { return [] }
    var changed: Set<Int> = []
    for (identity, candidate) in candidates {
      guard let end = end(identity) else { continue }
      candidates[identity] = nil
      if end.initiator == .client {
        singles[candidate.group, default: []].append(candidate)
        changed.insert(candidate.group)
      } else {
        count -= 1
      }
    }
    var evidence: [(seq: Int, evidence: FindingEvidence)] = []
    for group in changed {
      singles[group]?.sort { ($0.openedAt, $0.seq) < ($1.openedAt, $1.seq) }
      evidence += Self.evidence(for: &singles[group, default: []])
    }
    return evidence
  }

  /// Drops the connections of removed records.
  mutating func prune(contains: (Int) throws -> Bool) rethrows {
    guard count >= Self.limit / 2 else { return }
    candidates = try candidates.filter { try contains($0.value.seq) }
    singles = try singles.mapValues { try $0.filter { try contains($0.seq) } }.filter { !$0.value.isEmpty }
    count = candidates.count + singles.values.reduce(0) { $0 + $1.count }
  }

  private static func evidence(for singles: inout [SinglePush]) -> [(seq: Int, evidence: FindingEvidence)] {
    var evidence: [(seq: Int, evidence: FindingEvidence)] = []
    let size = FindingThreshold.churnConnections
    for last in singles.indices.dropFirst(size - 1) where !singles[last].isReported {
      let window = singles[(last - size + 1)...last]
      let time = singles[last].openedAt &- singles[window.startIndex].openedAt
      guard time <= FindingThreshold.churnTime else { continue }
      singles[last].isReported = true
      let others = window.dropLast().map(\.seq).sorted()
      evidence.append((singles[last].seq, FindingEvidence(.connectionChurn, with: others, .connections(within: time))))
      let tokens = window.compactMap(\.token)
      if tokens.count == size, Set(tokens).count == size {
        evidence.append((singles[last].seq, FindingEvidence(.jwtChurn, with: others, .tokenForEachConnection)))
      }
    }
    return evidence
  }
}
