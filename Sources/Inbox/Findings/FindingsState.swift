internal import APNSMockRules
internal import APNSMockNotation

/// The state of the findings analysis. Records are added in the order of their ends, each once.
///
/// Its tables are bounded and drop the oldest entries. Evidence is dropped with the records it belongs to.
struct FindingsState: Sendable {
  private struct Connection: Sendable {
    let identity: UInt64
    var pushes = 0
    var lastSeq = 0
    /// The latest arrival of a push, in monotonic nanoseconds.
    var lastArrival: MonotonicTime = .min
    var tokens = TokenUse()
    var token: ConcurrentTokens.Use?
    /// Whether `apns-mock` itself sends on the connection, with a provider token of its own.
    let isByOwnClient: Bool
  }

  private static let connectionLimit = 1 << 15
  private static let pruneFrom = 4096

  private var connections = GenerationalCache<UInt64, Connection>(limit: connectionLimit)
  /// The connection of the last record, mostly also that of the next one.
  private var current: Connection?
  private var churn = ConnectionChurn()
  private var history = PushAttemptHistory()
  private var resends = Resends()
  /// Which push each attempt belongs to.
  private(set) var identities = PushIdentities()
  /// The pushes that were accepted, or rejected for good.
  private var settlements = GenerationalCache<PushKey, Settlement>(limit: AttemptTable.limit)
  /// Pushes that are neither accepted nor rejected for good.
  private(set) var resolutions = PushResolutions()
  private var devices = UnregisteredDevices()
  private var staleTokens = StaleTokens()
  private var concurrentTokens = ConcurrentTokens()
  private var activities = ActivityUpdates()
  /// The evidence by the `seq` of the records.
  private(set) var evidence: [Int: [FindingEvidence]] = [:]
  /// The number of records with evidence at which evidence of removed records is dropped.
  private var pruneAt = pruneFrom

  /// Whether something was dropped that findings may depend on.
  var isTruncated: Bool { churn.isTruncated || resends.isTruncated || identities.isTruncated }

  /// Adds a pending record.
  ///
  /// - Returns: Its push, for `analyze(_:of:interval:)`, `endPending(_:)` or `removePending(_:_:)`.
  mutating func addPending(_ record: borrowing Record) -> PushIdentities.Identity {
    let identity = identify(record)
    history.addPending(identity.push)
    // A push that APNs has accepted is not lost.
    if !record.accepted { resolutions.addPending(record.seq, identity.push) }
    return identity
  }

  private mutating func identify(_ record: borrowing Record) -> PushIdentities.Identity {
    let identity = identities.identify(record)
    if let former = identity.former { resolutions.remove(former) }
    return identity
  }

  /// Undoes `addPending` in the push's attempts, for a record that has ended and will be added.
  mutating func endPending(_ push: PushKey) { history.endPending(push) }

  /// Drops a pending record that was removed.
  mutating func removePending(_ seq: Int, _ push: PushKey) {
    history.endPending(push)
    resolutions.removePending(seq, push)
  }

  /// Adds a record that has ended.
  ///
  /// - Parameters:
  ///   - pending: What `addPending(_:)` returned for the record; nil if it was not called.
  ///   - interval: The minimum time for which a provider token should be used, in milliseconds.
  ///   - end: Returns how a connection has ended; nil for an open one.
  mutating func analyze(
    _ record: borrowing Record, of pending: PushIdentities.Identity? = nil, interval: Int64,
    _ end: (UInt64) -> ConnectionEnd.Closing?
  ) {
    var connection = takeState(of: record)
    defer { current = connection }
    connection.pushes += 1
    connection.lastSeq = record.seq
    if connection.pushes == 1, !connection.isByOwnClient, record.kind == .push { churn.begin(record) }
    if connection.pushes == 2 { churn.removeCandidate(connection.identity) }
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
    if let violation = record.wireDetails?.violation, let evidence = FindingEvidence(violation) {
      add(evidence, to: record.seq)
    }
    analyzePush(record, pending ?? identify(record), on: connection, wasPending: pending != nil, end)
    connection.lastArrival = max(connection.lastArrival, record.arrivedAt)
  }

  private mutating func analyzePush(
    _ record: borrowing Record, _ identity: PushIdentities.Identity, on connection: Connection, wasPending: Bool,
    _ end: (UInt64) -> ConnectionEnd.Closing?
  ) {
    let push = identity.push
    let settlement = settlements[push]
    if !wasPending, settlement?.hasOvertaken(record) == true {
      return identities.markOvertaken(record.seq, identity)
    }
    if record.outcome != .accepted || !resolutions.isEmpty {
      resolutions.update(record, push, after: settlement, wasPending: wasPending)
    }
    guard record.isRequestComplete else { return }
    if let former = settlement?.accepted {
      let connections = connections
      let resend = resends.analyze(record, after: former) { identity in
        identity == connection.identity ? connection.lastArrival : connections[identity]?.lastArrival
      }
      if let resend { add(resend, to: record.seq) }
    }
    if record.accepted || record.isRejectedForGood {
      var settlement = settlement ?? Settlement()
      settlement.add(record)
      settlements[push] = settlement
    }
    if let evidence = activities.analyze(record) { add(evidence, to: record.seq) }
    guard record.hasVerdict,
      record.outcome != .accepted || !history.isEmpty || !devices.isEmpty || !staleTokens.isEmpty
    else { return }
    for (seq, evidence) in history.analyze(record, push, end) { add(evidence, to: seq) }
    if let evidence = devices.analyze(record, push, end) { add(evidence, to: record.seq) }
    if let evidence = staleTokens.analyze(record, push, end) { add(evidence, to: record.seq) }
  }

  /// Adds the evidence that follows from connections that have ended since the last call.
  ///
  /// - Parameter end: Returns how a connection has ended; nil for an open one.
  mutating func analyzeEndedConnections(_ end: (UInt64) -> ConnectionEnd.Closing?) {
    for (seq, evidence) in churn.analyzeEnded(end) { add(evidence, to: seq) }
    for (seq, item) in resends.settle(end) where evidence[seq]?.contains(where: { $0.kind == item.kind }) != true {
      add(item, to: seq)
    }
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
  mutating func prune(contains: (Int) throws -> Bool) rethrows {
    try resolutions.prune(contains: contains)
    try churn.prune(contains: contains)
    try identities.prune(contains: contains)
    guard evidence.count >= pruneAt else { return }
    evidence = try evidence.filter { try contains($0.key) }
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
    return Connection(identity: facts.identity, isByOwnClient: record.isByOwnClient)
  }
}

extension FindingEvidence {
  /// Creates the evidence of a violation; nil for a malformed request, which its record shows.
  fileprivate init?(_ violation: WireDetails.ProtocolViolation) {
    switch violation {
    case .afterGoAway(let lastStream, let time):
      self.init(.afterGoAway, with: [], .goAway(lastStream: lastStream, after: time))
    case .excessStreams(let limit): self.init(.excessStreams, with: [], .excess(limit: limit))
    case .malformed: return nil
    }
  }
}
