internal import APNSRules
internal import Notation

/// The connections of each client address, for `connection-churn` and to know whether a client has several pushes in
/// flight at once.
struct ClientHosts: Sendable {
  /// A connection with a single push.
  fileprivate struct SinglePushConnection: Sendable {
    /// The `identity` of the connection.
    let connection: UInt64
    let openedAt: MonotonicTime
    let seq: Int
    let token: UInt64?
    var isReported = false
  }

  fileprivate struct Host: Sendable {
    /// Connections with one push so far; they may be open.
    var candidates: [SinglePushConnection] = []
    /// Connections closed by the client after one push, in the order in which they were opened.
    var singles: [SinglePushConnection] = []
    /// The latest time at which one of its pushes ended.
    var busyUntil: Int64 = .min
    var hasConcurrentPushes = false
  }

  /// The maximum number of connections examined for each host.
  private static let connectionLimit = 256

  private var hosts: [Host] = []
  private var numbers: [String: Int] = [:]

  /// The number of known hosts.
  var count: Int { hosts.count }

  /// Returns the number that identifies a host in the other methods.
  mutating func number(of name: String) -> Int {
    if let number = numbers[name] { return number }
    numbers[name] = hosts.count
    hosts.append(Host())
    return hosts.count - 1
  }

  /// Adds the time in which a push was in flight.
  mutating func addPush(_ record: borrowing Record, from host: Int) {
    if record.arrivedAt < hosts[host].busyUntil { hosts[host].hasConcurrentPushes = true }
    hosts[host].busyUntil = max(hosts[host].busyUntil, record.endedAt)
  }

  /// Returns whether a push that arrived at `arrival` may have been sent before the client read a response sent at
  /// `end`. A client that never has more than one push in flight reads each response before it sends the next push.
  func mayBeInFlight(_ host: Int, arrival: Int64, end: Int64) -> Bool {
    hosts[host].hasConcurrentPushes && arrival &- end < FindingThreshold.reaction
  }

  /// Adds the first push of a connection.
  mutating func begin(_ record: borrowing Record, from host: Int) {
    if hosts[host].candidates.count == Self.connectionLimit { hosts[host].candidates.removeFirst() }
    hosts[host].candidates.append(
      SinglePushConnection(
        connection: record.connection.identity, openedAt: record.connection.openedAt, seq: record.seq,
        token: record.verdict?.token?.identity))
  }

  /// Drops a connection with a second push.
  mutating func removeCandidate(_ connection: UInt64, from host: Int) {
    if let index = hosts[host].candidates.lastIndex(where: { $0.connection == connection }) {
      hosts[host].candidates.remove(at: index)
    }
  }

  /// Examines the connections that have ended since the last call.
  ///
  /// - Parameter initiator: Returns which party has closed a connection; nil for an open one.
  /// - Returns: The findings and the `seq` of the record of each.
  mutating func analyzeEndedConnections(
    closedBy initiator: (UInt64) -> ConnectionFacts.CloseInitiator?
  ) -> [(seq: Int, evidence: FindingEvidence)] {
    var evidence: [(seq: Int, evidence: FindingEvidence)] = []
    for index in hosts.indices where hosts[index].sortEndedCandidates(closedBy: initiator) {
      evidence += Self.evidence(for: &hosts[index].singles)
      hosts[index].singles.removeFirst(max(0, hosts[index].singles.count - Self.connectionLimit))
    }
    return evidence
  }

  private static func evidence(for singles: inout [SinglePushConnection]) -> [(seq: Int, evidence: FindingEvidence)] {
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

extension ClientHosts.Host {
  /// Sorts the candidates that have ended; returns whether some of them count.
  fileprivate mutating func sortEndedCandidates(
    closedBy initiator: (UInt64) -> ConnectionFacts.CloseInitiator?
  ) -> Bool {
    let former = candidates
    candidates = []
    var hasNew = false
    for candidate in former {
      switch initiator(candidate.connection) {
      case nil: candidates.append(candidate)
      case .server: break
      case .client:
        singles.append(candidate)
        hasNew = true
      }
    }
    if hasNew { singles.sort { $0.openedAt < $1.openedAt } }
    return hasNew
  }
}
