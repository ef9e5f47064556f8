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
/// `PushProcessor+Records.swift` records pushes and the ends of their attempts, `PushProcessor+Faults.swift` handles those
/// that a fault affects.
///
/// A class because it is large: a value would be copied for most calls of its methods, several times per push.
final class PushProcessor {
  /// The pending actions on the connection; the handler performs and removes them after each push.
  var connectionActions: [ConnectionAction] = []

  /// The pushes to forward after their records are in the inbox.
  var forwards: [UpstreamPush] = []

  let state: ServerState
  let attempts: Attempts
  let connection: ConnectionFacts
  let log: ConnectionLog
  /// The connections to upstream; nil if pushes are not forwarded.
  let upstream: UpstreamPool?
  /// The receiver of upstream's answers, which the handler sets.
  var upstreamReceiver: UpstreamReceiver?
  /// Buffers shared by all connections of the event loop.
  let resources = EventLoopResources.current
  var authentication: ConnectionAuthentication
  var responses: ResponseTemplates
  var streamLimit: StreamLimitPolicy
  /// The pushes that are delayed, or whose response is sent in parts over time, by stream.
  var delayedPushes: [Int32: DelayedPush] = [:]
  /// The pushes with a decision whose response is not written completely, or never sent, by stream.
  var unfinished: [Int32: UnfinishedPush] = [:]
  /// The rule that ended the connection, or sent a GOAWAY.
  var cause: EndCause?
  /// The last GOAWAY that was sent, except for one of nghttp2.
  var goAway: WireDetails.GoAway?
  /// The first stream beyond the acknowledged stream limit, and that limit.
  var excess: (stream: Int32, limit: UInt32)?
  /// The injected response to every push until the connection is shut down, because of the fault `drain`.
  var responseUntilShutdown: Injection? { didSet { updateFaultScope() } }
  private(set) var activePolicy: ActivePolicy { didSet { updateFaultScope() } }
  private(set) var faultScope = FaultScope()
  var batch = Batch()
  private var readers: Readers
  private var ids: IdentifierSource
  /// The registered device of the push that is being processed; nil if its token is not registered.
  var device: DeviceRegistry.Match?
  /// The accepted broadcast or request of channel management that is being processed; nil once it is recorded.
  var channelExchange: ChannelExchange?
  var requestCount = 0
  private var rejections = RejectionCounter()
  /// Whether the record of a delayed push was completed in the inbox since the last `commit`.
  var hasCompletedRecord = false
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
    upstream = state.upstream
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
    if upstream != nil, forward(request, of: stream, verdict, identity, attempt: attempt, session) {
      return stream.putBack(request)
    }
    if verdict.isAccepted {
      accept(request, of: stream, verdict, identity, attempt: attempt, session)
    } else {
      reject(request, of: stream, verdict, identity, attempt: attempt, session)
    }
    stream.putBack(request)
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

  // MARK: - Facts for rules

  /// The connection's properties that rules can match.
  var connectionTraffic: Traffic.Connection {
    Traffic.Connection(
      number: log.number, client: log.clientAddress, listener: connection.listener,
      environment: connection.environment, serverName: connection.sni,
      certificateUID: connection.certificate?.subjectUID, streamsOpened: requestCount)
  }

  // MARK: - Devices

  /// Looks up the push's device token and rejects the push if the device does not allow it.
  private func findDevice(of request: HTTPRequest, under rulebook: Rulebook, verdict: inout Verdict) {
    guard let token = verdict.facts.deviceToken else { return }
    let match = request.headers.bytes.withUnsafeBytes { packed in
      state.devices.match(packed[token], now: batch.serverTime, unregisteredDelay: rulebook.unregisteredDelay)
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
    if !request.headers.bytes.withUnsafeBytes({ rate.admit($0[token]) }) { verdict.reject(over: rate.rate) }
  }
}
