internal import APNSRules

/// The state of the findings analysis. Records are added in the order of their ends, each once.
///
/// Its tables are bounded and drop the oldest entries. Evidence is dropped with the records it belongs to.
struct FindingsState: Sendable {
  private struct Connection: Sendable {
    let facts: ConnectionFacts
    let host: Int
    var pushes = 0
    var tokens = TokenUse()
  }

  private static let connectionLimit = 4096
  private static let hostLimit = 1024
  private static let pruneFrom = 4096

  private var connections = GenerationalCache<ObjectIdentifier, Connection>(limit: connectionLimit)
  /// The connection of the last record, mostly also that of the next one.
  private var current: Connection?
  private var hosts = ClientHosts()
  private var stories = PushAttemptHistory()
  /// Pushes whose last attempt may be retried.
  private(set) var unsettled = UnsettledPushes()
  private var devices = UnregisteredDevices()
  private var staleTokens = StaleTokens()
  /// The evidence by the `seq` of the records.
  private(set) var evidence: [Int: [FindingEvidence]] = [:]
  /// The number of records with evidence at which evidence of removed records is dropped.
  private var pruneAt = pruneFrom

  /// Notes a pending record.
  mutating func await(_ seq: Int, _ push: PushKey) {
    stories.await(push)
    unsettled.begin(seq, push)
  }

  /// Undoes `await` in the push's attempts, for a record that has ended and will be added.
  mutating func endPending(_ push: PushKey) { stories.endPending(push) }

  /// Drops a pending record that was removed.
  mutating func forget(_ seq: Int, _ push: PushKey) {
    stories.endPending(push)
    unsettled.forget(seq, push)
  }

  /// Adds a record that has ended.
  ///
  /// - Parameters:
  ///   - interval: The minimum time for which a provider token should be used, in milliseconds.
  ///   - wasPending: Whether `await` was called for the record.
  mutating func take(_ record: borrowing Record, interval: Int64, wasPending: Bool = false) {
    var connection = turn(to: record.connection)
    defer { current = connection }
    hosts.note(record, from: connection.host)
    connection.pushes += 1
    if connection.pushes == 1, record.isPlain, !record.isByOwnClient { hosts.begin(record, from: connection.host) }
    if connection.pushes == 2 { hosts.leaveOut(connection.facts, from: connection.host) }
    if let token = record.verdict?.token,
      let evidence = connection.tokens.take(record, token, interval: interval)
    {
      earn(record.seq, evidence)
    }
    if let breach = record.wireOutcome?.breach { earn(record.seq, FindingEvidence(breach)) }
    takePush(record, from: connection.host, wasPending: wasPending)
  }

  private mutating func takePush(_ record: borrowing Record, from host: Int, wasPending: Bool) {
    let isDelivered = record.outcome == .accepted && record.served.status == 200
    if isDelivered, stories.isEmpty, unsettled.isEmpty, devices.isEmpty, staleTokens.isEmpty { return }
    // A request that did not arrive completely has the key of another push.
    guard record.isJudged || record.isUnprocessed else { return }
    let push = record.pushKey
    unsettled.take(record, push, wasPending: wasPending)
    guard record.isJudged else { return }
    let (hosts, arrival) = (hosts, record.arrivedAt)
    func isUnderWay(_ end: Int64) -> Bool { hosts.isUnderWay(host, arrival: arrival, end: end) }
    for (seq, evidence) in stories.take(record, push) { earn(seq, evidence) }
    if let evidence = devices.take(record, push, isUnderWay: isUnderWay) { earn(record.seq, evidence) }
    if let evidence = staleTokens.take(record, push, isUnderWay: isUnderWay) { earn(record.seq, evidence) }
  }

  /// Adds the evidence that follows from connections that have ended since the last call.
  mutating func settle() {
    for (seq, evidence) in hosts.settle() { earn(seq, evidence) }
  }

  private mutating func earn(_ seq: Int, _ what: FindingEvidence) { evidence[seq, default: []].append(what) }

  /// Drops the evidence of removed records, once there may be much.
  mutating func prune(isThere: (Int) -> Bool) {
    unsettled.prune(isThere: isThere)
    guard evidence.count >= pruneAt else { return }
    evidence = evidence.filter { isThere($0.key) }
    pruneAt = max(Self.pruneFrom, 2 * evidence.count)
  }

  /// Removes and returns the state of a connection; the caller stores it in `current`.
  private mutating func turn(to facts: ConnectionFacts) -> Connection {
    if let current, current.facts === facts {
      self.current = nil
      return current
    }
    if let former = current { connections.set(ObjectIdentifier(former.facts), former) }
    current = nil
    if let known = connections.remove(ObjectIdentifier(facts)) { return known }
    if hosts.count == Self.hostLimit {
      // Connections refer to hosts by number, so both are dropped together.
      hosts = ClientHosts()
      connections = GenerationalCache(limit: Self.connectionLimit)
    }
    return Connection(facts: facts, host: hosts.number(of: facts.clientHost))
  }
}

extension FindingEvidence {
  fileprivate init(_ breach: WireOutcome.Breach) {
    switch breach {
    case .afterGoAway(let lastStream, let time):
      self.init(.afterGoAway, with: [], .goAway(lastStream: lastStream, after: time))
    case .excessStreams(let limit): self.init(.excessStreams, with: [], .excess(limit: limit))
    }
  }
}

extension Record {
  /// Whether the response follows APNs' rules and no fault contributed to it.
  fileprivate var isPlain: Bool {
    (outcome == .accepted || outcome == .rejected) && served.status != nil && wireOutcome?.injections.isEmpty != false
  }
}
