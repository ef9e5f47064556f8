import APNSRules
import FaultModel
import Faults
import HTTP2Session
import HTTPMessage
import Inbox

/// Processes the pushes of one connection: validates each request, applies the active fault rules, records the
/// result and submits the response. Confined to the connection's event loop.
///
/// Pushes that a fault affects are handled in `PushProcessor+Faults.swift`.
///
/// A class because it is large: a value would be copied for most calls of its methods, several times per push.
final class PushProcessor {
  // Exclusivity is unchecked at run time: everything here runs on the connection's event loop, and no method
  // accesses one of these properties while it calls another method that modifies it.

  /// The pending actions on the connection; the handler performs and removes them after each push.
  @exclusivity(unchecked) var connectionActions: [ConnectionAction] = []

  let state: ServerState
  let attempts: Attempts
  let connection: ConnectionFacts
  let log: ConnectionLog
  @exclusivity(unchecked) var authentication: ConnectionAuthentication
  @exclusivity(unchecked) var answers: AnswerTemplates
  @exclusivity(unchecked) var streams: StreamLimitPolicy
  /// The pushes that are delayed, or whose response is sent in parts over time, by stream.
  @exclusivity(unchecked) var held: [Int32: DelayedPush] = [:]
  /// The lowest last stream of all GOAWAY frames sent: later streams are not served.
  @exclusivity(unchecked) private(set) var lastServedStream = Int32.max
  /// When `lastServedStream` was last lowered, in monotonic nanoseconds.
  @exclusivity(unchecked) private(set) var goAwaySentAt: Int64 = 0
  /// The first stream beyond the acknowledged stream limit, and that limit.
  @exclusivity(unchecked) var excess: (stream: Int32, limit: UInt32)?
  /// The highest stream whose push was evaluated.
  @exclusivity(unchecked) private(set) var highestProcessedStream: Int32 = 0
  /// The injected response to every push while a fault drains the connection.
  @exclusivity(unchecked) var draining: Injection? { didSet { noteFaults() } }
  @exclusivity(unchecked) private(set) var activePolicy: ActivePolicy { didSet { noteFaults() } }
  /// Whether magic device tokens are enabled.
  @exclusivity(unchecked) private(set) var areMagicTokensActive = false
  /// The pushes that faults may affect.
  @exclusivity(unchecked) private(set) var faultScope = FaultScope.none
  /// Whether there are active rules for the injection point `response`.
  @exclusivity(unchecked) private(set) var hasResponseRules = false
  /// Whether there are active rules for the injection point `connection`.
  @exclusivity(unchecked) private(set) var hasConnectionRules = false
  @exclusivity(unchecked) private(set) var now: Int64 = 0
  /// The time of the current read, in monotonic nanoseconds.
  @exclusivity(unchecked) private(set) var batchBegan: Int64 = 0
  /// The number of complete requests received.
  @exclusivity(unchecked) private(set) var completeRequests = 0

  /// The set of pushes that faults may affect. Computed when the rules change, so that a push needs only this one
  /// check.
  enum FaultScope {
    case none
    /// Pushes to magic device tokens.
    case magicTokens
    case all
  }

  @exclusivity(unchecked) private var policyReader: SnapshotReader<ActivePolicy>
  @exclusivity(unchecked) private var keyReader: SnapshotReader<TrustedKeySet>
  @exclusivity(unchecked) private var deviceReader: SnapshotReader<DeviceTable>
  @exclusivity(unchecked) private var ids: IdentifierSource
  /// Buffers shared by all connections of the event loop.
  private let scratch = LoopScratch.current
  @exclusivity(unchecked) private var rejections = 0
  @exclusivity(unchecked) private var batch: [Record] = []
  /// The streams of the delayed pushes in `batch`, with the indices of their records.
  @exclusivity(unchecked) private var batchHeld: [(stream: Int32, index: Int)] = []

  init(
    state: ServerState, facts: ConnectionFacts, log: ConnectionLog, certificate: ProviderCertificate?
  ) {
    self.state = state
    attempts = state.inbox.attempts
    self.log = log
    connection = facts
    keyReader = SnapshotReader(state.keys)
    deviceReader = SnapshotReader(state.devices)
    policyReader = SnapshotReader(state.activePolicy)
    activePolicy = policyReader.value
    authentication = ConnectionAuthentication(certificate: certificate, known: scratch.knownTokens)
    answers = AnswerTemplates(environment: state.configuration.environment, settings: activePolicy.settings)
    streams = StreamLimitPolicy(isWidened: certificate != nil, settings: activePolicy.settings)
    ids = IdentifierSource(seed: state.seed, connection: log.number)
    noteFaults()
  }

  private func noteFaults() {
    let plan = activePolicy.plan
    hasConnectionRules = plan.isActive(at: .connection)
    hasResponseRules = plan.isActive(at: .response)
    areMagicTokensActive = plan.areMagicTokensActive
    if draining != nil || hasResponseRules || plan.concerns(deviceToken: nil) {
      faultScope = .all
    } else {
      faultScope = plan.isActive(at: .request) ? .magicTokens : .none
    }
  }

  /// The policy, keys and devices that the pushes of one read are evaluated by. Passed as a separate value, because
  /// reading them from properties would retain them for each push.
  struct Terms {
    let activePolicy: ActivePolicy
    let keys: TrustedKeySet
    let devices: DeviceTable
  }

  /// Reads the clocks, the policy, the keys and the devices once for all requests of one read.
  @discardableResult
  func beginBatch() -> Terms {
    keyReader.refresh()
    deviceReader.refresh()
    if policyReader.refresh() {
      activePolicy = policyReader.value
      answers = AnswerTemplates(environment: state.configuration.environment, settings: activePolicy.settings)
      streams.follow(activePolicy.settings)
    }
    now = state.clock.now
    // Read after the policy, so that no rule is applied before its activation time.
    batchBegan = MachineTime.nanoseconds
    return Terms(activePolicy: activePolicy, keys: keyReader.value, devices: deviceReader.value)
  }

  /// Validates a request, submits its response and buffers a record for `commit`.
  func take(_ stream: RequestStream, on terms: borrowing Terms, session: HTTP2ServerSession) {
    completeRequests += 1
    if stream.id > lastServedStream { return ignore(stream) }
    highestProcessedStream = max(highestProcessedStream, stream.id)
    let request = stream.takeRequest()
    var verdict = Verdict()
    terms.activePolicy.rulebook.judge(
      request, authentication: &authentication, keys: terms.keys, devices: terms.devices, now: now, into: &verdict)
    if let rate = terms.activePolicy.deviceRate, verdict.isAccepted { limit(&verdict, of: request, to: rate) }
    let identity = identity(of: request, verdict.facts)
    attempts.expect(identity.countKey)
    var attempt: Int32?
    if mayBeAffectedByFaults(request, verdict),
      applyFaults(request, of: stream, verdict, identity, attempt: &attempt, session)
    {
      return stream.putBack(request)
    }
    if verdict.isAccepted {
      accept(request, of: stream, verdict, identity, attempt: attempt, session)
    } else {
      reject(request, of: stream, verdict, identity, attempt: attempt, session)
    }
    stream.putBack(request)
  }

  /// Marks an uncommitted push as aborted because a GOAWAY prevents its response. Whether APNs accepted the push
  /// stays recorded.
  func answerWasDropped(on stream: RequestStream, by goAway: GoAway?) {
    guard let index = batch.lastIndex(where: { $0.stream == stream.id }) else { return }
    let sentGoAway = goAway.map {
      WireOutcome.GoAway(code: HTTP2ErrorCode.name(of: $0.errorCode), lastStream: $0.lastStream, debugData: $0.text)
    }
    let wireOutcome = WireOutcome(
      injections: batch[index].wireOutcome?.injections ?? [], goAway: sentGoAway, endedAt: MachineTime.nanoseconds)
    if batch[index].outcome == .accepted {
      // The client does not learn that the push was accepted, so the same push again is its next attempt.
      attempts.resume(countKey(of: stream), after: batch[index].attempt, now: batchBegan)
    }
    batch[index].end(
      Record.End(
        outcome: .aborted, accepted: batch[index].accepted, served: Record.Served(), wireOutcome: wireOutcome,
        finishedAt: now))
  }

  /// Buffers a record of a complete request that is not processed, because the connection ended before it in the
  /// same read.
  ///
  /// - Parameter isCutByFault: Whether a fault ended the connection.
  func recordUnprocessed(_ stream: RequestStream, isCutByFault: Bool) {
    if isCutByFault || stream.id > lastServedStream { return ignore(stream) }
    let attempt = attempts.countUnprocessed(countKey(of: stream), now: batchBegan)
    recordUnfinished(stream, attempt: attempt)
  }

  /// Makes the records of this read visible in the inbox. Must be called before the responses leave: an answered
  /// push is readable.
  func commit() {
    guard !batch.isEmpty else { return }
    scratch.knownTokens.learn(from: authentication)
    // One clock reading for all records, because their responses leave together.
    let present = MachineTime.nanoseconds
    for index in batch.indices { batch[index].setLatency(respondedAt: present) }
    log.count(pushes: batch.count)
    let first = state.inbox.append(&batch)
    for (stream, index) in batchHeld { held[stream]?.seq = first + index }
    batchHeld.removeAll(keepingCapacity: true)
  }

  /// Buffers a record of a request that was incomplete when its stream ended: the client disconnected, or the server
  /// reset the stream because the request is not valid HTTP/2.
  func recordUnfinished(_ stream: RequestStream, reset: HTTP2ErrorCode? = nil, attempt: Int32 = 1) {
    var breach: WireOutcome.Breach?
    if let excess, excess.stream == stream.id { breach = .excessStreams(limit: excess.limit) }
    record(
      stream.request, Verdict(of: stream.request), isJudged: false, generatedID: [], attempt: attempt,
      Record.End(
        outcome: reset == nil ? .aborted : .rejected, accepted: false, served: Record.Served(),
        wireOutcome: reset == nil && breach == nil ? nil : WireOutcome(reset: reset?.name, breach: breach),
        finishedAt: now))
  }

  /// Notes that a GOAWAY with this last stream was sent. The last stream never rises again.
  func excludeStreams(after stream: Int32) {
    guard stream < lastServedStream else { return }
    lastServedStream = stream
    goAwaySentAt = MachineTime.nanoseconds
  }

  // MARK: - Responses

  /// Announces the stream limit, if it changes, in SETTINGS that leave before the response to `stream`. When the
  /// limit is reduced because of a rejection, refuses the other open streams.
  func announceStreams(before status: Int?, on stream: RequestStream, _ session: HTTP2ServerSession) {
    let wasThrottled = streams.isThrottled
    guard let limit = streams.change(before: status, isTrusted: authentication.providerTokenAccepted) else { return }
    session.announce(maxConcurrentStreams: limit)
    log.add(.settings, "max_concurrent_streams=\(limit)", at: now)
    guard streams.isThrottled, !wasThrottled else { return }
    for refused in session.refuseStreams(except: stream) {
      abandon(refused.id, reset: .refusedStream)
      log.add(.reset, "stream=\(refused.id) \(HTTP2ErrorCode.refusedStream.name)", at: now)
    }
  }

  private func accept(
    _ request: HTTPRequest, of stream: RequestStream, _ verdict: borrowing Verdict, _ identity: Identity,
    attempt: Int32?, _ session: HTTP2ServerSession
  ) {
    announceStreams(before: 200, on: stream, session)
    fillTemplate(status: 200, for: request, verdict.facts)
    session.respond(to: stream, headers: answers.accepted.headers)
    // Count after responding: the attempt table's cache line may still be loading.
    let attempt = countAttempt(of: identity, accepted: true, next: attempt)
    record(
      request, verdict, generatedID: answers.accepted.generatedID(of: verdict.facts), key: identity.key,
      attempt: attempt,
      Record.End(outcome: .accepted, accepted: true, served: Record.Served(status: 200), finishedAt: now))
  }

  private func reject(
    _ request: HTTPRequest, of stream: RequestStream, _ verdict: borrowing Verdict, _ identity: Identity,
    attempt: Int32?, _ session: HTTP2ServerSession
  ) {
    guard verdict.reason == nil else {
      return answer(
        request, of: stream, verdict, identity, attempt: attempt, status: verdict.status, reason: verdict.reason,
        body: verdict.body, session)
    }
    announceStreams(before: verdict.status, on: stream, session)
    countRejection(verdict.status)
    session.respond(to: stream, headers: answers.headersTooLarge)
    record(
      request, verdict, generatedID: [], key: identity.key,
      attempt: countAttempt(of: identity, accepted: false, next: attempt),
      Record.End(
        outcome: .rejected, accepted: false, served: Record.Served(status: verdict.status), finishedAt: now))
  }

  /// Responds with an error: the standard header fields, a status and a body.
  ///
  /// - Parameter injection: The fault that injects the response; nil for APNs' own.
  func answer(
    _ request: HTTPRequest, of stream: RequestStream, _ verdict: borrowing Verdict, _ identity: Identity,
    attempt: Int32?, status: Int, reason: Reason?, body: [UInt8], by injection: Injection? = nil,
    _ session: HTTP2ServerSession
  ) {
    announceStreams(before: status, on: stream, session)
    countRejection(status)
    fillTemplate(status: status, for: request, verdict.facts)
    session.respond(to: stream, headers: answers.rejected.headers, body: isHEAD(request, verdict) ? [] : body)
    record(
      request, verdict, generatedID: answers.rejected.generatedID(of: verdict.facts), key: identity.key,
      attempt: countAttempt(of: identity, accepted: false, next: attempt),
      Record.End(
        outcome: injection == nil ? .rejected : .faulted, accepted: false,
        served: Record.Served(status: status, reason: reason),
        wireOutcome: injection.map { WireOutcome(injections: Injections($0)) }, finishedAt: now))
  }

  /// Returns whether the response must have no body (RFC 9110 section 9.3.2). APNs accepts only POST and rejects
  /// HEAD with 405.
  func isHEAD(_ request: HTTPRequest, _ verdict: borrowing Verdict) -> Bool {
    verdict.status == 405 && verdict.facts.method.map { request.headers.string($0) } == "HEAD"
  }

  /// Counts a rejection towards the setting `errors_before_goaway`. 410 concerns the device, not the provider, and
  /// does not count (Protocol.md, section 7.2, documented); 431 does not count either.
  func countRejection(_ status: Int) {
    guard let limit = activePolicy.settings.errorsBeforeGoaway, status != 200, status != 410, status != 431 else {
      return
    }
    rejections += 1
    if rejections >= limit { connectionActions.append(.leave(.tooManyErrors)) }
  }

  /// Fills the response template for a status with the ids for a request.
  func fillTemplate(status: Int, for request: HTTPRequest, _ facts: PushFacts) {
    if status == 200 { return fillIdentifiers(of: &answers.accepted, for: request, facts) }
    answers.rejected.set(status: status)
    fillIdentifiers(of: &answers.rejected, for: request, facts)
  }

  /// Writes the client's `apns-id` byte for byte if it is a UUID, otherwise a generated one (Protocol.md, section
  /// 7.3).
  private func fillIdentifiers(
    of answer: inout AnswerTemplates.Template, for request: HTTPRequest, _ facts: PushFacts
  ) {
    if let given = facts.apnsID, facts.apnsIDIsUUID {
      request.headers.bytes.withUnsafeBufferPointer { bytes in
        answer.headers.withMutableValue(answer.apnsID) {
          _ = $0.update(fromContentsOf: UnsafeBufferPointer(rebasing: bytes[given.indices]))
        }
      }
    } else {
      answer.headers.withMutableValue(answer.apnsID) { ids.write(.upperCase, over: $0) }
    }
    if let uniqueID = answer.uniqueID {
      answer.headers.withMutableValue(uniqueID) { ids.write(.lowerCase, over: $0) }
    }
  }

  // MARK: - Records

  /// Buffers a push's record for `commit`.
  ///
  /// - Parameters:
  ///   - isJudged: Whether the push was evaluated. If false, the request was incomplete or not processed, and only
  ///     the verdict's facts are meaningful.
  ///   - generatedID: The `apns-id` that the server generated; empty if the client sent one, or there was no
  ///     response.
  ///   - key: The push's identity; nil to compute it.
  ///   - isHeld: Whether the push is delayed, so that its record is completed later.
  func record(
    _ request: HTTPRequest, _ verdict: borrowing Verdict, isJudged: Bool = true, generatedID: ArraySlice<UInt8>,
    key: PushKey? = nil, attempt: Int32 = 1, isHeld: Bool = false, _ end: consuming Record.End
  ) {
    if isHeld { batchHeld.append((request.stream, batch.count)) }
    batch.append(
      Record(
        request: request, verdict: verdict, hasVerdict: isJudged, generatedID: generatedID, connection: connection,
        attempt: attempt, receivedAt: now, arrivedAt: batchBegan, end: consume end, pushKey: key, in: scratch.records))
  }

  /// A push's identity.
  struct Identity {
    /// The key in the push's record.
    let key: PushKey
    /// The key by which attempts are counted. Differs from `key` if the profile identifies pushes by `apns-id`.
    let countKey: PushKey
  }

  /// Returns the key by which the attempts of an unprocessed request are counted.
  private func countKey(of stream: RequestStream) -> PushKey {
    identity(of: stream.request, Verdict(of: stream.request).facts).countKey
  }

  func identity(of request: HTTPRequest, _ facts: PushFacts) -> Identity {
    let defaultTopic = connection.defaultTopic(facts)
    let key = PushKey(request, facts, defaultTopic: defaultTopic)
    guard activePolicy.plan.profile.pushIdentity == .apnsID, facts.apnsID != nil else {
      return Identity(key: key, countKey: key)
    }
    return Identity(key: key, countKey: PushKey(request, facts, defaultTopic: defaultTopic, usesID: true))
  }

  /// Counts a push's attempt and returns its number.
  ///
  /// - Parameter number: The attempt's number, if it was already looked up.
  func countAttempt(of identity: Identity, accepted: Bool, next number: Int32?) -> Int32 {
    if accepted, number == 1 { return 1 }
    return attempts.count(identity.countKey, accepted: accepted, now: batchBegan)
  }

  private func limit(_ verdict: inout Verdict, of request: HTTPRequest, to rate: SharedDeviceRate) {
    guard let token = verdict.facts.deviceToken else { return }
    let admitted = request.headers.bytes.withUnsafeBytes { bytes in
      rate.admit(UnsafeRawBufferPointer(rebasing: bytes[token.indices]))
    }
    if !admitted { verdict.refuse(over: rate.rate) }
  }
}
