internal import APNSRules
internal import Notation

/// The state of the findings analysis. Records are added in the order of their ends, each once.
///
/// Its tables are bounded and drop the oldest entries. Evidence is dropped with the records it belongs to.
struct FindingsState: Sendable {
  private struct Connection: Sendable {
    let identity: UInt64
    let host: Int
    /// The host and the topic of the connection's first push, among which connections are counted for
    /// `connection-churn`: test suites that share a server and a machine have topics of their own.
    let churnGroup: Int
    var pushes = 0
    var lastSeq = 0
    var tokens = TokenUse()
    var token: ConcurrentTokens.Use?
    /// Whether `apns-mock` itself sends on the connection, with a provider token of its own.
    let isByOwnClient: Bool
  }

  private static let connectionLimit = 4096
  private static let hostLimit = 2048
  private static let pruneFrom = 4096

  private var connections = GenerationalCache<UInt64, Connection>(limit: connectionLimit)
  /// The connection of the last record, mostly also that of the next one.
  private var current: Connection?
  private var hosts = ClientHosts()
  private var history = PushAttemptHistory()
  /// Pushes whose last attempt may be retried.
  private(set) var unresolved = UnresolvedPushes()
  private var devices = UnregisteredDevices()
  private var staleTokens = StaleTokens()
  private var concurrentTokens = ConcurrentTokens()
  /// The evidence by the `seq` of the records.
  private(set) var evidence: [Int: [FindingEvidence]] = [:]
  /// The number of records with evidence at which evidence of removed records is dropped.
  private var pruneAt = pruneFrom

  /// Adds a pending record.
  mutating func addPending(_ seq: Int, _ push: PushKey) {
    history.addPending(push)
    unresolved.addPending(seq, push)
  }

  /// Undoes `addPending` in the push's attempts, for a record that has ended and will be added.
  mutating func endPending(_ push: PushKey) { history.endPending(push) }

  /// Drops a pending record that was removed.
  mutating func removePending(_ seq: Int, _ push: PushKey) {
    history.endPending(push)
    unresolved.removePending(seq, push)
  }

  /// Adds a record that has ended.
  ///
  /// - Parameters:
  ///   - interval: The minimum time for which a provider token should be used, in milliseconds.
  ///   - wasPending: Whether `addPending` was called for the record.
  ///   - isRetried: Whether a retry of the push was accepted before the push was recorded as unprocessed.
  mutating func analyze(
    _ record: borrowing Record, interval: Int64, wasPending: Bool = false, isRetried: Bool = false
  ) {
    var connection = takeState(of: record)
    defer { current = connection }
    hosts.addPush(record, from: connection.host)
    connection.pushes += 1
    connection.lastSeq = record.seq
    if connection.pushes == 1, record.isPlain, !connection.isByOwnClient, record.kind == .push {
      hosts.begin(record, from: connection.churnGroup)
    }
    if connection.pushes == 2 { hosts.removeCandidate(connection.identity, from: connection.churnGroup) }
    if let token = record.verdict?.token,
      let evidence = connection.tokens.analyze(record, token, interval: interval)
    {
      add(evidence, to: record.seq)
    }
    if let token = record.verdict?.token, !connection.isByOwnClient,
      let evidence = concurrentTokens.analyze(record, token, of: &connection.token, interval: interval)
    {
      add(evidence, to: record.seq)
    }
    if let violation = record.wireOutcome?.violation { add(FindingEvidence(violation), to: record.seq) }
    if !isRetried { analyzePush(record, from: connection.host, wasPending: wasPending) }
  }

  private mutating func analyzePush(_ record: borrowing Record, from host: Int, wasPending: Bool) {
    let isDelivered = record.outcome == .accepted && record.hasSuccessStatus
    if isDelivered, history.isEmpty, unresolved.isEmpty, devices.isEmpty, staleTokens.isEmpty { return }
    // A request that did not arrive completely has the key of another push.
    guard record.hasVerdict || record.isUnprocessed else { return }
    let push = record.pushKey
    unresolved.update(record, push, wasPending: wasPending)
    guard record.hasVerdict else { return }
    let (hosts, arrival) = (hosts, record.arrivedAt)
    func mayBeInFlight(_ end: Int64) -> Bool { hosts.mayBeInFlight(host, arrival: arrival, end: end) }
    for (seq, evidence) in history.analyze(record, push) { add(evidence, to: seq) }
    if let evidence = devices.analyze(record, push, mayBeInFlight: mayBeInFlight) { add(evidence, to: record.seq) }
    if let evidence = staleTokens.analyze(record, push, mayBeInFlight: mayBeInFlight) { add(evidence, to: record.seq) }
  }

  /// Adds the evidence that follows from connections that have ended since the last call.
  ///
  /// - Parameter initiator: Returns which party has closed a connection; nil for an open one.
  mutating func analyzeEndedConnections(closedBy initiator: (UInt64) -> ConnectionFacts.CloseInitiator?) {
    for (seq, evidence) in hosts.analyzeEndedConnections(closedBy: initiator) { add(evidence, to: seq) }
  }

  /// Adds the evidence that a connection ended with an exhausted window, to its last push.
  ///
  /// - Parameter responses: The number of responses that were not sent completely.
  mutating func addExhaustedWindow(of identity: UInt64, responses: Int) {
    guard let connection = current?.identity == identity ? current : connections[identity] else { return }
    add(FindingEvidence(.windowNeverOpened, with: [], .windowExhausted(responses: responses)), to: connection.lastSeq)
  }

  private mutating func add(_ item: FindingEvidence, to seq: Int) { evidence[seq, default: []].append(item) }

  /// Drops the evidence of removed records, once there may be much.
  mutating func prune(contains: (Int) -> Bool) {
    unresolved.prune(contains: contains)
    guard evidence.count >= pruneAt else { return }
    evidence = evidence.filter { contains($0.key) }
    pruneAt = max(Self.pruneFrom, 2 * evidence.count)
  }

  /// Removes and returns the state of a record's connection; the caller stores it in `current`.
  private mutating func takeState(of record: borrowing Record) -> Connection {
    let facts = record.connection
    if let current, current.identity == facts.identity {
      self.current = nil
      return current
    }
    if let former = current { connections[former.identity] = former }
    current = nil
    if let known = connections.removeValue(forKey: facts.identity) { return known }
    if hosts.count >= Self.hostLimit {
      // Connections refer to hosts by number, so both are dropped together.
      hosts = ClientHosts()
      connections = GenerationalCache(limit: Self.connectionLimit)
    }
    let host = facts.clientHost
    let topic = record.withTopic { $0.map { String(decoding: $0, as: UTF8.self) } } ?? ""
    return Connection(
      identity: facts.identity, host: hosts.number(of: host), churnGroup: hosts.number(of: "\(host) \(topic)"),
      isByOwnClient: record.isByOwnClient)
  }
}

extension FindingEvidence {
  fileprivate init(_ violation: WireOutcome.ProtocolViolation) {
    switch violation {
    case .afterGoAway(let lastStream, let time):
      self.init(.afterGoAway, with: [], .goAway(lastStream: lastStream, after: time))
    case .excessStreams(let limit): self.init(.excessStreams, with: [], .excess(limit: limit))
    }
  }
}

extension Record {
  /// Whether the response follows APNs' rules and no fault contributed to it.
  fileprivate var isPlain: Bool {
    (outcome == .accepted || outcome == .rejected) && sentResponse.status != nil
      && wireOutcome?.injections.isEmpty != false
  }
}
