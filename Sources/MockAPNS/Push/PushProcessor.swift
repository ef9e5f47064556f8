import APNSMockRules
import APNSMockDevices
import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTP2Session
import APNSMockHTTPMessage
import APNSMockInbox
internal import APNSMockNotation

/// Processes the pushes of one connection: validates each request, applies the active fault rules, records the
/// result and submits the response. Confined to the connection's event loop.
///
/// Pushes that a fault affects are handled in `PushProcessor+Faults.swift`.
///
/// A class because it is large: a value would be copied for most calls of its methods, several times per push.
final class PushProcessor {
  // Exclusivity is unchecked at run time: everything here runs on the connection's event loop, and no method accesses
  // one of these properties while it calls another method that modifies it. `ConnectionHandler` states the gain.

  /// The pending actions on the connection; the handler performs and removes them after each push.
  @exclusivity(unchecked) var connectionActions: [ConnectionAction] = []

  let state: ServerState
  let attempts: Attempts
  let connection: ConnectionFacts
  let log: ConnectionLog
  /// Buffers shared by all connections of the event loop.
  private let resources = EventLoopResources.current
  @exclusivity(unchecked) var authentication: ConnectionAuthentication
  @exclusivity(unchecked) var responses: ResponseTemplates
  @exclusivity(unchecked) var streamLimit: StreamLimitPolicy
  /// The pushes that are delayed, or whose response is sent in parts over time, by stream.
  var delayedPushes: [Int32: DelayedPush] = [:]
  /// The pushes with a decision whose response is not written completely, or never sent, by stream.
  var unfinished: [Int32: UnfinishedPush] = [:]
  /// The rule that ended the connection, or sent a GOAWAY.
  private(set) var cause: EndCause?
  /// The last GOAWAY that was sent, except for one of nghttp2.
  var goAway: WireDetails.GoAway?
  /// The first stream beyond the acknowledged stream limit, and that limit.
  var excess: (stream: Int32, limit: UInt32)?
  /// The injected response to every push until the connection is shut down, because of the fault `drain`.
  var responseUntilShutdown: Injection? { didSet { updateFaultScope() } }
  @exclusivity(unchecked) private(set) var activePolicy: ActivePolicy { didSet { updateFaultScope() } }
  @exclusivity(unchecked) private(set) var faultScope = FaultScope()
  @exclusivity(unchecked) private(set) var batch = Batch()
  @exclusivity(unchecked) private var readers: Readers
  @exclusivity(unchecked) private var ids: IdentifierSource
  /// The registered device of the push that is being processed; nil if its token is not registered.
  @exclusivity(unchecked) private(set) var device: DeviceRegistry.Match?
  /// The accepted broadcast or request of channel management that is being processed; nil once it is recorded.
  @exclusivity(unchecked) var channelExchange: ChannelExchange?
  @exclusivity(unchecked) private var requestCount = 0
  @exclusivity(unchecked) private var rejections = RejectionCounter()
  /// Whether the record of a delayed push was completed in the inbox since the last `commit`.
  @exclusivity(unchecked) private var hasCompletedRecord = false
  /// Whether the server's certificate is one that no client may accept, and no push has shown yet that this client does.
  var isUnverified = false

  /// The pushes that faults may affect. Computed when the rules change, so that a push needs only one check.
  struct FaultScope {
    enum Pushes {
      case none
      /// Pushes to magic device tokens.
      case magicTokens
      case all
    }

    var pushes = Pushes.none
    /// Whether there are active rules for the injection point `response`.
    var hasResponseRules = false
    /// Whether there are active rules for the injection point `connection`.
    var hasConnectionRules = false
  }

  /// The pushes of one read, whose records become visible together.
  struct Batch {
    /// The time by the server's clock, in milliseconds since 1970.
    var serverTime: ServerTime = 0
    /// The time of the read, in monotonic nanoseconds.
    var arrivedAt: MonotonicTime = 0
    var records: [Record] = []
    /// The accepted pushes to registered devices; their positions are indices of `records`.
    var deliveries: [AcceptedPush] = []
    /// The accepted broadcasts, with the indices of their records.
    var broadcasts: [(broadcast: AcceptedBroadcast, index: Int)] = []
    /// The streams of the delayed pushes in `records`, with the indices of their records.
    var delayed: [(stream: Int32, index: Int)] = []
    /// The streams of `unfinished` whose records are in `records`, with the indices of these.
    var unfinished: [(stream: Int32, index: Int)] = []
    /// The delayed pushes that have ended, with their results.
    var completed: [(push: DelayedPush, result: Record.Result)] = []
  }

  /// A push with a decision whose attempt has not ended.
  struct UnfinishedPush {
    /// The result so far.
    var result: Record.Result
    /// The number of its record, once it is in the inbox.
    var seq: Int?
    /// The number of the attempt.
    let attempt: Int32
    /// The keys by which its attempts are counted.
    let attemptKey: AttemptKey
    /// When the push arrived, in monotonic nanoseconds.
    let arrivedAt: MonotonicTime
  }

  /// The rule that ended the connection, or sent a GOAWAY.
  struct EndCause {
    /// The push for which it fired.
    enum Push {
      /// The one with this index in the records of the current read.
      case inBatch(Int)
      /// The one with this number in the inbox.
      case recorded(Int)
    }

    let injection: Injection
    /// Nil if it fired for the connection itself.
    var push: Push?
  }

  private struct Readers {
    var policy: PublishedValueReader<ActivePolicy>
    var keys: PublishedValueReader<TrustedKeySet>
    var apps: PublishedValueReader<AppTable>
  }

  /// - Parameter acceptsPushes: Whether pushes to device tokens are accepted on the connection.
  init(state: ServerState, facts: ConnectionFacts, log: ConnectionLog, acceptsPushes: Bool) {
    self.state = state
    attempts = state.inbox.attempts
    self.log = log
    connection = facts
    let policy = PublishedValueReader(state.activePolicy)
    readers = Readers(
      policy: policy, keys: PublishedValueReader(state.keys), apps: PublishedValueReader(state.apps))
    activePolicy = policy.value
    authentication = ConnectionAuthentication(certificate: facts.certificate, known: resources.knownTokens)
    authentication.acceptsPushes = acceptsPushes
    authentication.teamUpdates = state.teamTokenUpdates
    responses = ResponseTemplates(environment: facts.environment, settings: policy.value.settings)
    streamLimit = StreamLimitPolicy(hasFullLimit: facts.certificate != nil, settings: policy.value.settings)
    ids = IdentifierSource(seed: state.seed, connection: log.number)
    updateFaultScope()
  }

  private func updateFaultScope() {
    let plan = activePolicy.plan
    faultScope.hasConnectionRules = plan.mayInject(at: .connection)
    faultScope.hasResponseRules = plan.mayInject(at: .response)
    if responseUntilShutdown != nil || faultScope.hasResponseRules || plan.hasRules(at: .request) {
      faultScope.pushes = .all
    } else {
      faultScope.pushes = plan.mayInject(at: .request) ? .magicTokens : .none
    }
  }

  /// The rules, with the known apps, and the keys that the pushes of one read are evaluated by. Passed as a separate
  /// value, because reading them from properties would retain them for each push.
  struct BatchPolicy {
    let rulebook: Rulebook
    let deviceRate: SharedDeviceRateLimiter?
    let keys: TrustedKeySet
    /// Whether all pushes are refused, because the store of the inbox fails.
    let refusesPushes: Bool
  }

  /// Reads the clocks, the policy, the keys and the apps once for all requests of one read.
  @discardableResult
  func beginBatch() -> BatchPolicy {
    readers.keys.refresh()
    readers.apps.refresh()
    if readers.policy.refresh() {
      activePolicy = readers.policy.value
      responses = ResponseTemplates(environment: connection.environment, settings: activePolicy.settings)
      streamLimit.apply(activePolicy.settings)
    }
    batch.serverTime = state.clock.now
    // Read after the policy, so that no rule is applied before its activation time.
    batch.arrivedAt = MachineTime.nanoseconds
    var rulebook = activePolicy.rulebooks[connection.environment]
    rulebook.apps = readers.apps.value
    rulebook.clockOffset = state.clock.machineOffset
    return BatchPolicy(
      rulebook: rulebook, deviceRate: activePolicy.deviceRate, keys: readers.keys.value,
      refusesPushes: state.inbox.writer?.answers.refusesPushes ?? false)
  }

  /// Validates a request, submits its response and buffers a record for `commit`.
  func process(
    _ stream: RequestStream, under policy: borrowing BatchPolicy, _ processed: ProcessedStreams,
    session: HTTP2ServerSession
  ) {
    requestCount += 1
    let request = stream.takeRequest()
    if policy.refusesPushes {
      refuse(request, of: stream, session)
      return stream.putBack(request)
    }
    var verdict = Verdict()
    policy.rulebook.validate(
      request, authentication: &authentication, keys: policy.keys, now: batch.serverTime,
      isRegistered: { state.devices.match($0, now: 0) != nil },
      findChannel: { bundleID, id in
        state.channels.storagePolicy(of: ChannelName(bundleID: bundleID, environment: connection.environment, id: id))
      }, into: &verdict)
    device = nil
    if let request = verdict.channelRequest { channelExchange = beginExchange(request, &verdict) }
    if verdict.isAccepted, !state.devices.isEmpty || policy.rulebook.requiresRegisteredDevices {
      findDevice(of: request, under: policy.rulebook, verdict: &verdict)
    }
    if let rate = policy.deviceRate, verdict.isAccepted { applyRateLimit(rate, to: &verdict, of: request) }
    let identity = identity(of: request, verdict.facts)
    resumePartial(request, verdict.facts, identity)
    attempts.prefetch(identity.attemptKey.push)
    var attempt: Int32?
    if mayBeAffectedByFaults(request, verdict),
      applyFaults(request, of: stream, verdict, identity, attempt: &attempt, processed, session)
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

  /// Notes that a rule ends the connection, or sends a GOAWAY, so that it affects other pushes. The first rule counts.
  ///
  /// - Parameter push: The push for which the rule fired; nil if it fired for the connection.
  func setCause(_ injection: Injection, push: EndCause.Push?) {
    if cause == nil { cause = EndCause(injection: injection, push: push) }
  }

  /// Returns what is known of the end of a push that another one's rule may have caused.
  ///
  /// - Parameters:
  ///   - own: The injections for the push itself.
  ///   - index: The index of its record in the batch; nil if the record is in the inbox.
  private func details(
    of ending: Ending, own: Injections, index: Int?, reset: HTTP2ErrorCode? = nil,
    violation: WireDetails.ProtocolViolation? = nil
  ) -> WireDetails? {
    var injections = own
    var by: WireDetails.Causer?
    let isCaused = ending == .refused && reset == nil || ending == .incomplete || ending == .disconnected
    if let cause, isCaused {
      injections = Injections([cause.injection] + own)
      switch (cause.push, index) {
      case (.inBatch(let cause)?, let index?) where cause < index: by = .before(index - cause)
      case (.recorded(let seq)?, _): by = .seq(seq)
      default: break
      }
    }
    let details = WireDetails(
      injections: injections, reset: reset?.name, goAway: isCaused ? goAway : nil,
      violation: violation, by: by, endedAt: MachineTime.nanoseconds)
    return details
  }

  /// Ends the attempt of a push without a complete response: it was dropped because of a GOAWAY or because the client reset the
  /// stream, or was never made.
  ///
  /// - Parameter reset: The code with which the server reset the stream; nil if it did not.
  func endWithoutResponse(on stream: RequestStream, _ ending: Ending, reset: HTTP2ErrorCode? = nil) {
    guard let index = batch.records.lastIndex(where: { $0.stream == stream.id }),
      batch.records[index].end.ending == .response
    else { return endAttempt(on: stream.id, ending, reset: reset) }
    let record = batch.records[index]
    if ending == .refused {
      batch.deliveries.removeAll { $0.position == index }
      batch.broadcasts.removeAll { $0.index == index }
    }
    if record.accepted {
      // The client does not learn that the push was accepted, so the same push again is its next attempt.
      attempts.resume(attemptKey(of: stream), after: record.attempt, now: batch.arrivedAt)
    }
    batch.records[index].finish(
      with: Record.Result(
        record.end.decision, ending,
        wireDetails: details(of: ending, own: record.wireDetails?.injections ?? [], index: index, reset: reset),
        finishedAt: batch.serverTime))
  }

  /// Ends the attempt of a push whose response is not written completely, or that is delayed.
  ///
  /// - Parameter reset: The code with which the server reset the stream; nil if it did not.
  func endAttempt(on id: Int32, _ ending: Ending, reset: HTTP2ErrorCode? = nil) {
    if let push = delayedPushes[id], push.remainingParts == 0 || ending != .response {
      endDelayedPush(on: id, ending, reset)
    }
    guard var push = unfinished.removeValue(forKey: id) else { return }
    let decision = push.result.end.decision
    let now = MachineTime.nanoseconds
    var sentResponse = push.result.sentResponse
    if ending == .response { sentResponse.latencyNanoseconds = now &- push.arrivedAt }
    let own = push.result.wireDetails
    let hasResponse = ending == .response
    push.result = Record.Result(
      decision, ending, sentResponse: sentResponse,
      wireDetails: hasResponse
        ? own
        : own?.merging(details(of: ending, own: own?.injections ?? [], index: nil, reset: reset))
          ?? details(of: ending, own: [], index: nil, reset: reset),
      finishedAt: batch.serverTime)
    if !hasResponse, decision == .accepted {
      attempts.resume(push.attemptKey, after: push.attempt, now: batch.arrivedAt)
    }
    if let seq = push.seq {
      hasCompletedRecord = true
      state.inbox.finish(seq, with: push.result)
    } else if let index = batch.unfinished.first(where: { $0.stream == id })?.index {
      batch.unfinished.removeAll { $0.stream == id }
      batch.records[index].finish(with: push.result)
    }
  }

  /// Ends all attempts that have not ended, because the connection has.
  ///
  /// - Parameter last: The last stream of the GOAWAY that was sent; `Int32.max` without one.
  func endAttempts(excludedAfter last: Int32) {
    for id in Set(delayedPushes.keys).union(unfinished.keys).sorted() {
      endAttempt(on: id, id > last ? .refused : .disconnected)
    }
  }

  /// Makes the records of this read visible in the inbox. Must be called before the responses are sent: a push
  /// is readable once its client has the response.
  ///
  /// - Returns: Whether there were records, or records of delayed pushes were completed.
  func commit(_ session: HTTP2ServerSession) -> Bool {
    if !batch.completed.isEmpty { completeRecords(session) }
    guard !batch.records.isEmpty else {
      defer { hasCompletedRecord = false }
      return hasCompletedRecord
    }
    hasCompletedRecord = false
    resources.knownTokens.learn(from: authentication)
    if session.hasPendingResponses { keepUnfinished(session) }
    if batch.deliveries.isEmpty || !batch.broadcasts.isEmpty {
      // One clock reading for all records, because their responses leave together.
      let now = MachineTime.nanoseconds
      for index in batch.records.indices { batch.records[index].setLatency(respondedAt: now) }
      for index in batch.broadcasts.indices {
        batch.broadcasts[index].broadcast.acceptedAt = batch.records[batch.broadcasts[index].index].acceptedAt
      }
    }
    log.count(pushes: batch.records.count)
    let first =
      batch.deliveries.isEmpty
      ? state.inbox.append(&batch.records)
      : state.deliveryControl.deliver(
        &batch.deliveries, appending: &batch.records, now: batch.serverTime, settings: activePolicy.settings)
    if isUnverified {
      isUnverified = false
      state.inbox.addFinding(.trustedAnything, seq: first)
    }
    for (stream, index) in batch.delayed { delayedPushes[stream]?.seq = first + index }
    batch.delayed.removeAll(keepingCapacity: true)
    for (stream, index) in batch.unfinished { unfinished[stream]?.seq = first + index }
    batch.unfinished.removeAll(keepingCapacity: true)
    if case .inBatch(let index) = cause?.push { cause?.push = .recorded(first + index) }
    for (broadcast, index) in batch.broadcasts {
      state.deliveryControl.deliver(Broadcast(broadcast, seq: first + index, time: batch.serverTime))
    }
    batch.broadcasts.removeAll(keepingCapacity: true)
    return true
  }

  /// Keeps the attempts pending whose response is not written completely.
  private func keepUnfinished(_ session: HTTP2ServerSession) {
    for index in batch.records.indices where batch.records[index].end.ending == .response {
      let record = batch.records[index]
      guard session.reportsEnd(on: record.stream), let stream = session.stream(withID: record.stream) else { continue }
      let result = Record.Result(
        record.end.decision, .pending, sentResponse: record.sentResponse, wireDetails: record.wireDetails,
        finishedAt: nil)
      keepUnfinished(on: stream.id, result, attemptKey(of: stream), attempt: record.attempt, index: index)
      batch.records[index].finish(with: result)
    }
  }

  /// Keeps the attempt of a push pending whose record is in the batch.
  func keepUnfinished(
    on stream: Int32, _ result: Record.Result, _ attemptKey: AttemptKey, attempt: Int32, index: Int
  ) {
    unfinished[stream] = UnfinishedPush(
      result: result, attempt: attempt, attemptKey: attemptKey, arrivedAt: batch.arrivedAt)
    batch.unfinished.append((stream, index))
  }

  /// Completes the records of delayed pushes that have a response now.
  private func completeRecords(_ session: HTTP2ServerSession) {
    for (push, result) in batch.completed {
      var result = result
      if result.end.ending == .response, let seq = push.seq, session.reportsEnd(on: push.stream.id) {
        result = Record.Result(
          result.end.decision, .pending, sentResponse: result.sentResponse, wireDetails: result.wireDetails,
          finishedAt: nil)
        unfinished[push.stream.id] = UnfinishedPush(
          result: result, seq: seq, attempt: push.attempt,
          attemptKey: push.attemptKey ?? attemptKey(of: push.stream), arrivedAt: push.arrivedAt)
      }
      completeRecord(of: push, with: result)
    }
    batch.completed.removeAll()
  }

  /// Completes the record of a delayed push, in the inbox or still in the batch.
  private func completeRecord(of push: DelayedPush, with result: Record.Result) {
    let delivery = result.accepted ? push.delivery : nil
    var broadcast = push.channelExchange.flatMap { finish($0, isAccepted: result.accepted) }
    if let delivery { state.devices.markRemovalDetected(delivery.target, now: batch.serverTime) }
    if let seq = push.seq {
      hasCompletedRecord = true
      if let delivery {
        state.deliveryControl.complete(
          delivery, arrivedAt: push.arrivedAt, seq: seq, with: result, now: batch.serverTime,
          settings: activePolicy.settings)
      } else {
        let record = state.inbox.finish(seq, with: result)
        broadcast?.acceptedAt = record?.acceptedAt ?? MachineTime.nanoseconds
      }
      if let broadcast { state.deliveryControl.deliver(Broadcast(broadcast, seq: seq, time: batch.serverTime)) }
    } else if let index = batch.delayed.first(where: { $0.stream == push.stream.id })?.index {
      batch.records[index].finish(with: result)
      if let delivery { batch.deliveries.append(delivery.at(index)) }
      if let broadcast { batch.broadcasts.append((broadcast, index)) }
    }
  }

  /// Buffers the end of a delayed push, whose record `commit` completes.
  func complete(_ push: DelayedPush, with result: Record.Result) { batch.completed.append((push, result)) }

  /// Returns what is known of the end of a delayed push whose record is in the inbox.
  func detailsOfDelayed(_ ending: Ending, _ injections: Injections, reset: HTTP2ErrorCode?) -> WireDetails? {
    details(of: ending, own: injections, index: nil, reset: reset)
  }

  /// Buffers a record of a request that was not received completely, or that was refused before it was processed.
  func recordUnfinished(_ stream: RequestStream, _ ending: Ending, reset: HTTP2ErrorCode? = nil) {
    var violation = stream.violationText.map { WireDetails.ProtocolViolation.malformed($0) }
    if let excess, excess.stream == stream.id { violation = .excessStreams(limit: excess.limit) }
    let verdict = Verdict(factsOnly: stream.request)
    let isComplete = stream.isComplete && ending != .malformed
    let attempt: Int32
    if isComplete {
      let identity = identity(of: stream.request, verdict.facts)
      resumePartial(stream.request, verdict.facts, identity)
      attempt = attempts.countUnprocessed(identity.attemptKey, now: batch.arrivedAt)
    } else {
      attempt = countPartial(stream.request, verdict.facts)
    }
    record(
      stream.request, verdict, hasVerdict: false, isRequestComplete: isComplete, generatedID: [], attempt: attempt,
      Record.Result(
        .notProcessed, ending,
        wireDetails: details(of: ending, own: [], index: batch.records.count, reset: reset, violation: violation),
        finishedAt: batch.serverTime))
  }

  /// Continues the count of a push after an attempt that did not become complete.
  private func resumePartial(_ request: HTTPRequest, _ facts: PushFacts, _ identity: Identity) {
    guard attempts.hasPartialAttempts else { return }
    request.headers.bytes.withUnsafeBytes {
      attempts.resume(
        identity.attemptKey.push, headers: $0, facts, defaultTopic: connection.defaultTopic(facts), now: batch.arrivedAt
      )
    }
  }

  private func countPartial(_ request: HTTPRequest, _ facts: PushFacts) -> Int32 {
    request.headers.bytes.withUnsafeBytes {
      attempts.countPartial(headers: $0, facts, defaultTopic: connection.defaultTopic(facts), now: batch.arrivedAt)
    }
  }

  // MARK: - Responses

  /// Announces the stream limit, if it changes, in SETTINGS that leave before the response to `stream`. When the
  /// limit is reduced because of a rejection, refuses the other open streams.
  func announceStreamLimit(before status: Int?, on stream: RequestStream, _ session: HTTP2ServerSession) {
    let wasThrottled = streamLimit.isThrottled
    guard let limit = streamLimit.change(before: status, isTrusted: authentication.providerTokenAccepted) else {
      return
    }
    session.announce(maxConcurrentStreams: limit)
    log.add(.settings, "max_concurrent_streams=\(limit)", at: batch.serverTime)
    guard streamLimit.isThrottled, !wasThrottled else { return }
    for refused in session.refuseStreams(except: stream) {
      endAttempt(on: refused.id, .refused, reset: .refusedStream)
      log.add(.reset, "stream=\(refused.id) \(HTTP2ErrorCode.refusedStream.name)", at: batch.serverTime)
    }
  }

  private func accept(
    _ request: HTTPRequest, of stream: RequestStream, _ verdict: borrowing Verdict, _ identity: Identity,
    attempt: Int32?, _ session: HTTP2ServerSession
  ) {
    if let channelExchange {
      return accept(channelExchange, request, of: stream, verdict, identity, attempt: attempt, session)
    }
    announceStreamLimit(before: 200, on: stream, session)
    fillTemplate(status: 200, for: request, verdict.facts)
    session.respond(to: stream, headers: responses.accepted.headers)
    // Count after responding: the attempt table's cache line may still be loading.
    let attempt = countAttempt(of: identity, accepted: true, next: attempt)
    record(
      request, verdict, generatedID: responses.accepted.generatedID(of: verdict.facts), key: identity.key,
      attempt: attempt,
      Record.Result(
        .accepted, .response, sentResponse: Record.SentResponse(status: 200), finishedAt: batch.serverTime))
  }

  private func reject(
    _ request: HTTPRequest, of stream: RequestStream, _ verdict: borrowing Verdict, _ identity: Identity,
    attempt: Int32?, _ session: HTTP2ServerSession
  ) {
    guard verdict.reason == nil else {
      return respond(
        request, of: stream, verdict, identity, attempt: attempt, status: verdict.status, reason: verdict.reason,
        body: verdict.body, session)
    }
    announceStreamLimit(before: verdict.status, on: stream, session)
    countRejection(verdict.status)
    session.respond(to: stream, headers: responses.headersTooLarge)
    record(
      request, verdict, generatedID: [], key: identity.key,
      attempt: countAttempt(of: identity, accepted: false, next: attempt),
      Record.Result(
        .rejected, .response, sentResponse: Record.SentResponse(status: verdict.status), finishedAt: batch.serverTime))
  }

  /// Responds with an error: the standard header fields, a status and a body.
  ///
  /// - Parameter injection: The fault that injects the response; nil for APNs' own.
  func respond(
    _ request: HTTPRequest, of stream: RequestStream, _ verdict: borrowing Verdict, _ identity: Identity,
    attempt: Int32?, status: Int, reason: Reason?, body: [UInt8], injection: Injection? = nil,
    _ session: HTTP2ServerSession
  ) {
    announceStreamLimit(before: status, on: stream, session)
    countRejection(status)
    let template = filledTemplate(status: status, for: request, verdict.facts)
    session.respond(to: stream, headers: template.headers, body: isHEAD(request, verdict) ? [] : body)
    let isAccepted = HTTPStatus.isSuccess(status)
    record(
      request, verdict, generatedID: template.generatedID(of: verdict.facts), key: identity.key,
      attempt: countAttempt(of: identity, accepted: isAccepted, next: attempt),
      Record.Result(
        isAccepted ? .accepted : .rejected, .response,
        sentResponse: Record.SentResponse(status: status, reason: reason),
        wireDetails: injection.map { WireDetails(injections: Injections($0)) }, finishedAt: batch.serverTime))
  }

  /// Answers a push with 503 `ServiceUnavailable` without recording it, because the store of the inbox fails.
  private func refuse(_ request: HTTPRequest, of stream: RequestStream, _ session: HTTP2ServerSession) {
    state.inbox.writer?.countRefused()
    let reason = Reason.serviceUnavailable
    let facts = Verdict(factsOnly: request).facts
    let template = filledTemplate(status: reason.status, for: request, facts)
    session.respond(to: stream, headers: template.headers, body: reason.body(timestamp: nil))
  }

  /// Returns whether the response must have no body (RFC 9110 section 9.3.2). APNs accepts only POST and rejects
  /// HEAD with 405.
  func isHEAD(_ request: HTTPRequest, _ verdict: borrowing Verdict) -> Bool {
    verdict.status == 405 && verdict.facts.method.map { request.headers.string($0) } == "HEAD"
  }

  /// Counts a rejection toward the setting `errors_before_goaway`.
  func countRejection(_ status: Int) {
    if rejections.endsConnection(after: status, limit: activePolicy.settings.errorsBeforeGoaway) {
      connectionActions.append(.sendGoAwayAndClose(.tooManyErrors))
    }
  }

  /// Returns the header fields of a response with a status and the ids for a request.
  func filledTemplate(status: Int, for request: HTTPRequest, _ facts: PushFacts) -> ResponseTemplates.Template {
    let kind = request.headers.bytes.withUnsafeBytes { facts.kind(in: $0) }
    guard kind == .push else {
      var template = channelTemplate(status: status, kind)
      fillIdentifiers(of: &template, for: request, facts, style: .lowerCase)
      return template
    }
    fillTemplate(status: status, for: request, facts)
    return status == 200 ? responses.accepted : responses.rejected
  }

  /// Fills the response template for a status with the ids for a push.
  private func fillTemplate(status: Int, for request: HTTPRequest, _ facts: PushFacts) {
    if status == 200 { return fillIdentifiers(of: &responses.accepted, for: request, facts) }
    responses.rejected.set(status: status)
    fillIdentifiers(of: &responses.rejected, for: request, facts)
  }

  /// Writes the client's `apns-id` byte for byte if it is a UUID, otherwise a generated one (Protocol.md, section
  /// 7.3).
  private func fillIdentifiers(
    of template: inout ResponseTemplates.Template, for request: HTTPRequest, _ facts: PushFacts,
    style: IdentifierSource.Style = .upperCase
  ) {
    if let given = facts.apnsID, facts.apnsIDIsUUID {
      request.headers.bytes.withUnsafeBufferPointer { bytes in
        template.headers.withMutableValue(template.apnsID) {
          _ = $0.update(fromContentsOf: UnsafeBufferPointer(rebasing: bytes[given.indices]))
        }
      }
    } else {
      template.headers.withMutableValue(template.apnsID) { ids.write(style, over: $0) }
    }
    if let uniqueID = template.uniqueID {
      var ids = IdentifierSource(seed: state.seed, connection: log.number, stream: request.stream)
      template.headers.withMutableValue(uniqueID) { ids.write(.lowerCase, over: $0) }
    }
  }

  // MARK: - Records

  /// The connection's properties that rules can match.
  var connectionTraffic: Traffic.Connection {
    Traffic.Connection(
      number: log.number, client: log.clientAddress, listener: connection.listener,
      environment: connection.environment, serverName: connection.sni,
      certificateUID: connection.certificate?.subjectUID, streamsOpened: requestCount)
  }

  /// The time in nanoseconds after a GOAWAY within which a new stream is not reported as a client error: it may have
  /// crossed the GOAWAY on the wire, or the client had not read the frame yet. Half a second, for machines under
  /// load.
  private static let goAwayGracePeriod: Int64 = 500_000_000

  /// Buffers a record of a complete request that is not processed: a GOAWAY excluded its stream, or the connection was
  /// ended before it.
  func recordUnprocessed(_ stream: RequestStream, _ processed: ProcessedStreams) {
    requestCount += 1
    let isExcluded = stream.id > processed.lastAccepted
    let delay = batch.arrivedAt - processed.loweredAt
    var violation: WireDetails.ProtocolViolation? =
      !isExcluded || delay < Self.goAwayGracePeriod
      ? nil : .afterGoAway(lastStream: processed.lastAccepted, nanoseconds: delay)
    if let excess, excess.stream == stream.id { violation = .excessStreams(limit: excess.limit) }
    let verdict = Verdict(factsOnly: stream.request)
    let identity = identity(of: stream.request, verdict.facts)
    resumePartial(stream.request, verdict.facts, identity)
    let ending: Ending = isExcluded ? .refused : .disconnected
    record(
      stream.request, verdict, hasVerdict: false, generatedID: [], key: identity.key,
      // The client must send an unprocessed push again; that is its next attempt.
      attempt: attempts.countUnprocessed(identity.attemptKey, now: batch.arrivedAt),
      Record.Result(
        .notProcessed, ending,
        wireDetails: details(of: ending, own: [], index: batch.records.count, violation: violation),
        finishedAt: batch.serverTime))
  }

  /// Buffers a push's record for `commit`.
  ///
  /// - Parameters:
  ///   - hasVerdict: Whether the push was evaluated. If false, the request was incomplete or not processed, and only
  ///     the verdict's facts are meaningful.
  ///   - isRequestComplete: Whether the request was received completely.
  ///   - generatedID: The `apns-id` that the server generated; empty if the client sent one, or there was no
  ///     response.
  ///   - key: The push's identity; nil to compute it.
  ///   - isPending: Whether the push is delayed, so that its record is completed later.
  func record(
    _ request: HTTPRequest, _ verdict: borrowing Verdict, hasVerdict: Bool = true, isRequestComplete: Bool = true,
    generatedID: ArraySlice<UInt8>, key: PushKey? = nil, attempt: Int32 = 1, isPending: Bool = false,
    _ result: consuming Record.Result
  ) {
    if isPending { batch.delayed.append((request.stream, batch.records.count)) }
    if let device, result.accepted, !isPending {
      if device.isRemovalUndetected { state.devices.markRemovalDetected(device.reference, now: batch.serverTime) }
      batch.deliveries.append(acceptedPush(request, verdict.facts, to: device).at(batch.records.count))
    }
    if let exchange = channelExchange, !isPending {
      channelExchange = nil
      let broadcast = finish(exchange, isAccepted: result.accepted)
      if let broadcast { batch.broadcasts.append((broadcast, batch.records.count)) }
    }
    batch.records.append(
      Record(
        request: request, verdict: verdict, hasVerdict: hasVerdict, isRequestComplete: isRequestComplete,
        generatedID: generatedID, connection: connection,
        attempt: attempt, receivedAt: batch.serverTime, arrivedAt: batch.arrivedAt, result: consume result,
        pushKey: key,
        in: resources.recordArena))
  }

  // MARK: - Devices

  /// Looks up the push's device token and rejects the push if the device does not allow it.
  private func findDevice(of request: HTTPRequest, under rulebook: Rulebook, verdict: inout Verdict) {
    guard let token = verdict.facts.deviceToken else { return }
    let match = request.headers.bytes.withUnsafeBytes { packed in
      state.devices.match(
        UnsafeRawBufferPointer(rebasing: packed[token.indices]), now: batch.serverTime,
        unregisteredDelay: rulebook.unregisteredDelay)
    }
    guard match != nil || rulebook.requiresRegisteredDevices else { return }
    device = match
    rulebook.checkDevice(
      match?.token, of: request, certificate: authentication.certificate, now: batch.serverTime, verdict: &verdict)
  }

  /// Returns the properties of an accepted push that its delivery depends on.
  func acceptedPush(_ request: HTTPRequest, _ facts: PushFacts, to device: DeviceRegistry.Match) -> AcceptedPush {
    request.headers.bytes.withUnsafeBytes { headers in
      request.body.withUnsafeBytes {
        AcceptedPush(facts, headers: headers, body: $0, to: device, at: batch.serverTime)
      }
    }
  }

  /// A push's identity.
  struct Identity {
    /// The key in the push's record.
    let key: PushKey
    /// The keys by which attempts are counted. The push differs from `key` if the profile identifies pushes by `apns-id`.
    let attemptKey: AttemptKey
  }

  /// Returns the keys by which the attempts of an unprocessed request are counted.
  func attemptKey(of stream: RequestStream) -> AttemptKey {
    identity(of: stream.request, Verdict(factsOnly: stream.request).facts).attemptKey
  }

  func identity(of request: HTTPRequest, _ facts: PushFacts) -> Identity {
    let defaultTopic = connection.defaultTopic(facts)
    let key = PushKey(request, facts, defaultTopic: defaultTopic)
    guard facts.apnsID != nil else { return Identity(key: key, attemptKey: AttemptKey(push: key)) }
    let id = PushKey(request, facts, defaultTopic: defaultTopic, usesID: true)
    let isIdentifiedByID = activePolicy.plan.profile.pushIdentity == .apnsID
    return Identity(key: key, attemptKey: AttemptKey(push: isIdentifiedByID ? id : key, id: id))
  }

  /// Counts a push's attempt and returns its number.
  ///
  /// - Parameter number: The attempt's number, if it was already looked up.
  func countAttempt(of identity: Identity, accepted: Bool, next number: Int32?) -> Int32 {
    if accepted, number == 1 { return 1 }
    return attempts.count(identity.attemptKey, accepted: accepted, now: batch.arrivedAt)
  }

  private func applyRateLimit(_ rate: SharedDeviceRateLimiter, to verdict: inout Verdict, of request: HTTPRequest) {
    guard let token = verdict.facts.deviceToken else { return }
    let admitted = request.headers.bytes.withUnsafeBytes { bytes in
      rate.admit(UnsafeRawBufferPointer(rebasing: bytes[token.indices]))
    }
    if !admitted { verdict.reject(over: rate.rate) }
  }
}
