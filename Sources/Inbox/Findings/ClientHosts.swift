internal import APNSRules

/// What the connections of each provider's address have in common: `connection-churn`, and whether it has several pushes
/// under way at once.
struct ClientHosts: Sendable {
  /// A connection with one push.
  fileprivate struct Single: Sendable {
    let connection: ConnectionFacts
    let seq: Int
    let token: Int?
    var isTold = false
  }

  fileprivate struct Host: Sendable {
    /// With one push until now; it may be open.
    var candidates: [Single] = []
    /// Closed by the client after one push, in the order they were opened.
    var singles: [Single] = []
    /// The latest end of a push.
    var busyUntil: Int64 = .min
    var hasSeveralUnderWay = false
  }

  /// So many connections of each host are looked at.
  private static let connectionLimit = 256

  private var hosts: [Host] = []
  private var numbers: [String: Int] = [:]

  /// How many hosts are known.
  var count: Int { hosts.count }

  /// The number of a host, by which the other calls know it.
  mutating func number(of name: String) -> Int {
    if let number = numbers[name] { return number }
    numbers[name] = hosts.count
    hosts.append(Host())
    return hosts.count - 1
  }

  /// Notes from when to when a push was under way.
  mutating func note(_ record: borrowing Record, from host: Int) {
    if record.arrivedAt < hosts[host].busyUntil { hosts[host].hasSeveralUnderWay = true }
    hosts[host].busyUntil = max(hosts[host].busyUntil, record.endedAt)
  }

  /// Whether a push that came at `arrival` may have left before the client read an answer of `end`. Who never has more
  /// than one under way has read the answer before it sends the next.
  func isUnderWay(_ host: Int, arrival: Int64, end: Int64) -> Bool {
    hosts[host].hasSeveralUnderWay && arrival &- end < FindingThreshold.reaction
  }

  /// A connection had its first push.
  mutating func begin(_ record: borrowing Record, from host: Int) {
    if hosts[host].candidates.count == Self.connectionLimit { hosts[host].candidates.removeFirst() }
    hosts[host].candidates.append(
      Single(connection: record.connection, seq: record.seq, token: record.verdict?.token?.identity))
  }

  /// It had another one: it does not count.
  mutating func leaveOut(_ connection: ConnectionFacts, from host: Int) {
    if let index = hosts[host].candidates.lastIndex(where: { $0.connection === connection }) {
      hosts[host].candidates.remove(at: index)
    }
  }

  /// Looks which connections have ended since, and how.
  ///
  /// - Returns: what is earned, and by which record.
  mutating func settle() -> [(seq: Int, earned: Earned)] {
    var earned: [(seq: Int, earned: Earned)] = []
    for index in hosts.indices where hosts[index].settle() {
      earned += Self.judge(&hosts[index].singles)
      hosts[index].singles.removeFirst(max(0, hosts[index].singles.count - Self.connectionLimit))
    }
    return earned
  }

  private static func judge(_ singles: inout [Single]) -> [(seq: Int, earned: Earned)] {
    var earned: [(seq: Int, earned: Earned)] = []
    let size = FindingThreshold.churnConnections
    for last in singles.indices.dropFirst(size - 1) where !singles[last].isTold {
      let window = singles[(last - size + 1)...last]
      let time = singles[last].connection.openedAt &- singles[window.startIndex].connection.openedAt
      guard time <= FindingThreshold.churnTime else { continue }
      singles[last].isTold = true
      let others = window.dropLast().map(\.seq).sorted()
      earned.append((singles[last].seq, Earned(.connectionChurn, with: others, .connections(within: time))))
      let tokens = window.compactMap(\.token)
      if tokens.count == size, Set(tokens).count == size {
        earned.append((singles[last].seq, Earned(.jwtChurn, with: others, .tokenForEachConnection)))
      }
    }
    return earned
  }
}

extension ClientHosts.Host {
  /// Sorts out the candidates that have ended; true if some of them count.
  fileprivate mutating func settle() -> Bool {
    guard candidates.contains(where: { $0.connection.ending != .none }) else { return false }
    let ended = candidates.filter { $0.connection.ending == .byClient }
    candidates.removeAll { $0.connection.ending != .none }
    singles = (singles + ended).sorted { $0.connection.openedAt < $1.connection.openedAt }
    return !ended.isEmpty
  }
}
