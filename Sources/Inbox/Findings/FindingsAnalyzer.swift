internal import APNSMockRules
internal import NIOConcurrencyHelpers

/// Analyzes an inbox for findings that depend on several records.
///
/// Without a store, nothing is analyzed while pushes arrive. With one, new records are analyzed in the background before they
/// leave memory, because reading them again takes longer. On demand, the analysis continues after the last analyzed record,
/// some thousand records at a time, with a lock of its own that no push waits for. A pending record is analyzed after it
/// has ended: a retry follows the end of the previous attempt, so the order is then correct.
final class FindingsAnalyzer: Sendable {
  fileprivate struct State: Sendable {
    var findingsState = FindingsState()
    /// The states of the servers of a view of several, by their names: pushes of different servers have nothing in common.
    var ofServers: [String: FindingsState] = [:]
    /// All records up to this `seq` were analyzed or are in `pending`.
    var through = 0
    /// Records up to this `seq` are not analyzed: they were removed, or are from before the start of the server.
    var start = 0
    var pending: [(seq: Int, server: String?, identity: PushIdentities.Identity)] = []
    /// The number of connections that ended with an exhausted window and were analyzed.
    var analyzedExhausted = 0
    /// Whether records were left out because their rows in the store are damaged.
    var hasLeftOut = false
  }

  /// The maximum number of connections in `closed`; beyond it half of them are dropped.
  private static let closedLimit = 1 << 17
  /// The maximum number of connections in `exhausted`.
  private static let exhaustedLimit = 256
  /// The maximum number of pushes in `deliveries`.
  private static let deliveryLimit = 16_384

  /// The number of records analyzed in one step.
  private static let span = 16_384

  private let state = NIOLockedValueBox(State())

  /// How connections have ended, by their `identity`.
  fileprivate struct Ends: Sendable {
    /// How connections were closed.
    var closed: [UInt64: ConnectionEnd.Closing] = [:]
    /// Whether some of `closed` were dropped.
    var isTruncated = false
    /// The connections that ended with an exhausted window, in this order.
    var exhausted: [(connection: UInt64, responses: Int)] = []
  }

  /// A lock of its own, so that no event loop waits for an analysis.
  private let ends = NIOLockedValueBox(Ends())
  /// What happened to pushes on their way to the device, by the `seq` of their records; for the same reason with a lock of
  /// its own.
  private let deliveries = NIOLockedValueBox([Int: [FindingEvidence]]())

  /// Analyzes all new records.
  ///
  /// - Throws: `StoreUnavailable` if the store could not be read, so that some are analyzed later.
  func catchUp(with inbox: Inbox, by rulebook: Rulebook) throws(StoreUnavailable) {
    let interval = rulebook.settings.tokenUpdateInterval.milliseconds
    while true {
      let result = state.withLockedValue { state -> Result<Bool, StoreUnavailable> in
        do throws(StoreUnavailable) {
          return .success(
            try state.analyzeSome(
              of: inbox.snapshot().leavingOutDamage, at: Self.span, interval: interval, ends))
        } catch {
          return .failure(error)
        }
      }
      if try result.get() || inbox.writer?.isEnding == true { return }
    }
  }

  /// Analyzes all new records, unless the record with this `seq` was analyzed already.
  func catchUp(to seq: Int, with inbox: Inbox, by rulebook: Rulebook) throws(StoreUnavailable) {
    if state.withLockedValue({ $0.through < seq }) { try catchUp(with: inbox, by: rulebook) }
  }

  /// Returns the evidence for findings on a record, as far as it was analyzed.
  ///
  /// - Parameters:
  ///   - abandonedAfter: The milliseconds without a further attempt after which a push counts as abandoned.
  ///   - now: The server's clock in milliseconds since 1970; nil without a clock, so that no push counts as
  ///     abandoned.
  func evidence(by seq: Int, abandonedAfter: Int64, now: Int64?) -> [FindingEvidence] {
    let deliveryEvidence = deliveries.withLockedValue { $0[seq] ?? [] }
    return state.withLockedValue { state in
      let evidence = (state.all.lazy.compactMap { $0.evidence[seq] }.first ?? []) + deliveryEvidence
      guard let now, let last = state.findingsState.resolutions.attempts[seq], let finishedAt = last.finishedAt,
        !last.isByOwnClient, now &- finishedAt >= abandonedAfter
      else { return evidence }
      return evidence + [FindingEvidence(.abandoned, with: [], .abandoned(after: abandonedAfter))]
    }
  }

  /// Returns the `seq` of the last attempt of each push that is not resolved, after `seq`, ascending.
  func unresolved(after seq: Int) -> [Int] {
    state.withLockedValue { $0.all.flatMap { $0.resolutions.attempts.keys.filter { $0 > seq } } }.sorted()
  }

  /// Returns the push of an attempt that was analyzed; nil if it follows from its record alone.
  func identity(of seq: Int) -> PushIdentities.Identity? {
    state.withLockedValue { $0.all.lazy.compactMap { $0.identities.special[seq] }.first }
  }

  /// Whether nothing was dropped that findings depend on.
  var isComplete: Bool {
    !state.withLockedValue { $0.all.contains(where: \.isTruncated) || $0.hasLeftOut }
      && !ends.withLockedValue(\.isTruncated)
  }

  /// Returns the `seq` of the attempts of which a record of an older format does not say how they ended, after `seq`.
  func unknown(after seq: Int) -> [Int] {
    state.withLockedValue { $0.all.flatMap { $0.resolutions.unknown.filter { $0 > seq } } }.sorted()
  }

  /// Records up to this `seq` are not analyzed: they were removed, or are from before the start of the server.
  var start: Int { state.withLockedValue(\.start) }

  /// The `seq` of each record with evidence, in no order.
  var seqs: [Int] {
    state.withLockedValue { $0.all.flatMap(\.evidence.keys) } + deliveries.withLockedValue { Array($0.keys) }
  }

  /// Reports the end of a connection, or more of it.
  func add(_ end: ConnectionEnd) {
    ends.withLockedValue { ends in
      switch end.event {
      case .closed(let closing):
        if let known = ends.closed[end.connection] {
          ends.closed[end.connection] = known.merging(closing)
          return
        }
        if ends.closed.count >= Self.closedLimit {
          let median = ends.closed.values.map(\.at).sorted()[Self.closedLimit / 2]
          ends.closed = ends.closed.filter { $0.value.at >= median }
          ends.isTruncated = true
        }
        ends.closed[end.connection] = closing
      case .windowExhausted(let responses):
        if ends.exhausted.count < Self.exhaustedLimit { ends.exhausted.append((end.connection, responses)) }
      }
    }
  }

  /// Reports what happened to a push on its way to the device. Beyond the limit, those of the oldest half are dropped.
  func addDelivery(_ evidence: FindingEvidence, to seq: Int) {
    deliveries.withLockedValue { deliveries in
      if deliveries.count >= Self.deliveryLimit, deliveries[seq] == nil {
        let median = deliveries.keys.sorted()[Self.deliveryLimit / 2]
        deliveries = deliveries.filter { $0.key >= median }
      }
      guard deliveries[seq]?.contains(where: { $0.kind == evidence.kind }) != true else { return }
      deliveries[seq, default: []].append(evidence)
    }
  }

  /// Starts the analysis again, for the records that are still in the inbox.
  ///
  /// - Parameter contains: Returns whether the record with this `seq` is in the inbox.
  func restart(contains: (Int) -> Bool) {
    deliveries.withLockedValue { $0 = $0.filter { contains($0.key) } }
    state.withLockedValue { state in
      let start = state.start
      state = State()
      (state.start, state.through) = (start, start)
    }
  }

  /// Resets the analysis, and begins after `seq`: the inbox was emptied, or has older records from its store.
  func reset(through seq: Int) {
    state.withLockedValue { state in
      state = State()
      (state.start, state.through) = (seq, seq)
      ends.withLockedValue { $0.exhausted = [] }
      deliveries.withLockedValue { $0 = [:] }
    }
  }
}

extension FindingsAnalyzer.State {
  /// The state of a server of a view of several, or that of the only server for nil.
  fileprivate subscript(server: String?) -> FindingsState {
    get { server.map { ofServers[$0] ?? FindingsState() } ?? findingsState }
    _modify {
      if let server { yield &ofServers[server, default: FindingsState()] } else { yield &findingsState }
    }
  }

  /// The states of all servers.
  fileprivate var all: [FindingsState] { ofServers.isEmpty ? [findingsState] : Array(ofServers.values) }

  /// Analyzes the next records.
  ///
  /// - Parameter ends: How connections have ended.
  /// - Returns: Whether all records were analyzed.
  /// - Throws: `StoreUnavailable` if a record could not be read. It is analyzed later, and none after it before.
  fileprivate mutating func analyzeSome(
    of snapshot: InboxSnapshot, at span: Int, interval: Int64, _ ends: NIOLockedValueBox<FindingsAnalyzer.Ends>
  ) throws(StoreUnavailable) -> Bool {
    func end(of connection: UInt64) -> ConnectionEnd.Closing? { ends.withLockedValue { $0.closed[connection] } }
    defer { if snapshot.hasLeftOut { hasLeftOut = true } }
    try analyzePending(of: snapshot, interval: interval, end)
    // Records evicted before they were analyzed are skipped.
    through = max(through, snapshot.lastEvicted)
    var selection = Selection.allKinds
    selection.after = through
    var count = 0
    try snapshot.records.forEach(in: selection) { record in
      if record.outcome == .pending {
        let server = record.origin?.server
        pending.append((record.seq, server, self[server].addPending(record)))
      } else {
        self[record.origin?.server].analyze(record, interval: interval, end)
      }
      through = record.seq
      count += 1
      return count < span
    }
    guard count < span else { return false }
    through = max(through, snapshot.lastSeq)
    findingsState.analyzeEndedConnections(end)
    let exhausted = ends.withLockedValue(\.exhausted)
    for (connection, responses) in exhausted[analyzedExhausted...] {
      findingsState.addExhaustedWindow(of: connection, responses: responses)
    }
    analyzedExhausted = exhausted.count
    do {
      for server in [nil] + ofServers.keys.map(Optional.init) {
        try self[server].prune { try snapshot.records.record($0) != nil }
      }
    } catch {
      throw StoreUnavailable(error)
    }
    return true
  }

  private mutating func analyzePending(
    of snapshot: InboxSnapshot, interval: Int64, _ end: (UInt64) -> ConnectionEnd.Closing?
  ) throws(StoreUnavailable) {
    guard !pending.isEmpty else { return }
    var former = pending[...]
    pending = []
    // What remains is analyzed later.
    defer { pending += former }
    while let (seq, server, identity) = former.first {
      let found = try snapshot.records.record(seq)
      former.removeFirst()
      guard let record = found else {
        self[server].removePending(seq, identity.push)
        continue
      }
      if record.outcome == .pending {
        pending.append((seq, server, identity))
      } else {
        self[server].endPending(identity.push)
        self[server].analyze(record, of: identity, interval: interval, end)
      }
    }
  }
}
