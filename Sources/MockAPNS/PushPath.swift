import APNSRules
import Faults
import HTTP2Session
import HTTPMessage
import Inbox

/// The way of a push through the server, from the request to its answer: judged by the rules of APNs, met by the faults in
/// force, recorded, answered. One for each connection, used on its event loop only.
///
/// What a fault does to a push is in `PushPath+Faults.swift`; here is what happens to all others.
///
/// A class only because it is large: as a value it would be copied for most calls of its methods, several times a push.
final class PushPath {
  // Unchecked at run time for overlapping access: everything here runs on the connection's event loop, and no method holds
  // one of these properties while it calls another that changes it.

  /// What has to happen to the connection: the handler takes it after each push and does it.
  @exclusivity(unchecked) var effects: [ConnectionEffect] = []

  let state: ServerState
  let attempts: Attempts
  let connection: ConnectionFacts
  let log: ConnectionLog
  @exclusivity(unchecked) var standing: ConnectionStanding
  @exclusivity(unchecked) var answers: AnswerTemplates
  @exclusivity(unchecked) var streams: AnnouncedStreams
  /// Pushes that wait for something, by their streams.
  @exclusivity(unchecked) var held: [Int32: HeldPush] = [:]
  /// A GOAWAY told the client that no stream after this one is served.
  @exclusivity(unchecked) private(set) var lastServedStream = Int32.max
  /// When it did, in monotonic nanoseconds.
  @exclusivity(unchecked) private(set) var farewellAt: Int64 = 0
  /// The first stream that was one too many, and the limit.
  @exclusivity(unchecked) var excess: (stream: Int32, limit: UInt32)?
  /// The highest stream whose push was judged.
  @exclusivity(unchecked) private(set) var highestTaken: Int32 = 0
  /// What every push is answered while the connection is drained.
  @exclusivity(unchecked) var draining: Injection? { didSet { noteFaults() } }
  @exclusivity(unchecked) private(set) var behaviour: Behaviour { didSet { noteFaults() } }
  /// Whether a device token may stand for a fault.
  @exclusivity(unchecked) private(set) var takesMagicTokens = false
  /// Which pushes faults may have to do with.
  @exclusivity(unchecked) private(set) var faultReach = FaultReach.none
  /// Whether there are rules for the moment `response`.
  @exclusivity(unchecked) private(set) var hasResponseRules = false
  /// Whether there are rules for the moment `connection`.
  @exclusivity(unchecked) private(set) var hasConnectionRules = false
  @exclusivity(unchecked) private(set) var now: Int64 = 0
  /// Machine time of this read.
  @exclusivity(unchecked) private(set) var batchBegan: Int64 = 0
  /// How many requests came whole.
  @exclusivity(unchecked) private(set) var streamsTaken = 0

  /// Worked out when the rules change: a push asks for nothing else.
  enum FaultReach {
    case none
    /// Those to magic device tokens.
    case magicTokens
    case all
  }

  @exclusivity(unchecked) private var behaviours: SnapshotReader<Behaviour>
  @exclusivity(unchecked) private var keys: SnapshotReader<KeyRing>
  @exclusivity(unchecked) private var devices: SnapshotReader<DeviceTable>
  @exclusivity(unchecked) private var ids: IdentifierSource
  /// The event loop's.
  private let scratch = LoopScratch.current
  @exclusivity(unchecked) private var rejections = 0
  @exclusivity(unchecked) private var batch: [Record] = []
  /// Streams of the pushes in `batch` that are held, and where their records stand in it.
  @exclusivity(unchecked) private var batchHeld: [(stream: Int32, index: Int)] = []

  init(
    state: ServerState, facts: ConnectionFacts, log: ConnectionLog, certificate: ProviderCertificate?
  ) {
    self.state = state
    attempts = state.inbox.attempts
    self.log = log
    connection = facts
    keys = SnapshotReader(state.keys)
    devices = SnapshotReader(state.devices)
    behaviours = SnapshotReader(state.behaviour)
    behaviour = behaviours.value
    standing = ConnectionStanding(certificate: certificate, known: scratch.knownTokens)
    answers = AnswerTemplates(environment: state.configuration.environment, settings: behaviour.settings)
    streams = AnnouncedStreams(isWidened: certificate != nil, settings: behaviour.settings)
    ids = IdentifierSource(seed: state.seed, connection: log.number)
    noteFaults()
  }

  private func noteFaults() {
    let plan = behaviour.plan
    hasConnectionRules = plan.isActive(at: .connection)
    hasResponseRules = plan.isActive(at: .response)
    takesMagicTokens = plan.takesMagicTokens
    if draining != nil || hasResponseRules || plan.concerns(deviceToken: nil) {
      faultReach = .all
    } else {
      faultReach = plan.isActive(at: .request) ? .magicTokens : .none
    }
  }

  /// What the pushes of one read are judged by. A value beside the path, because each of them would hold it otherwise, in
  /// case that it is changed meanwhile.
  struct Terms {
    let behaviour: Behaviour
    let keys: KeyRing
    let devices: DeviceTable
  }

  /// Reads the clocks, and what is in force, once for all requests of one read.
  @discardableResult
  func beginBatch() -> Terms {
    keys.refresh()
    devices.refresh()
    if behaviours.refresh() {
      behaviour = behaviours.value
      answers = AnswerTemplates(environment: state.configuration.environment, settings: behaviour.settings)
      streams.follow(behaviour.settings)
    }
    now = state.clock.now
    // After that, so that no rule is in force before its time.
    batchBegan = MachineTime.nanoseconds
    return Terms(behaviour: behaviour, keys: keys.value, devices: devices.value)
  }

  /// Judges a request, submits its answer and keeps a record for `commit`.
  func take(_ stream: RequestStream, on terms: borrowing Terms, session: HTTP2ServerSession) {
    streamsTaken += 1
    if stream.id > lastServedStream { return ignore(stream) }
    highestTaken = max(highestTaken, stream.id)
    let request = stream.takeRequest()
    var verdict = Verdict()
    terms.behaviour.rulebook.judge(
      request, standing: &standing, keys: terms.keys, devices: terms.devices, now: now, into: &verdict)
    if let rate = terms.behaviour.deviceRate, verdict.isAccepted { limit(&verdict, of: request, to: rate) }
    let identity = identity(of: request, verdict.facts)
    attempts.expect(identity.countKey)
    var attempt: Int32?
    if isConcernedByFaults(request, verdict),
      letFaultsDecide(request, of: stream, verdict, identity, attempt: &attempt, session)
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

  /// The answer to a push that is not committed yet does not leave, because of a GOAWAY. What APNs decided stays.
  func answerWasDropped(on stream: RequestStream, by goAway: GoAway?) {
    guard let index = batch.lastIndex(where: { $0.stream == stream.id }) else { return }
    let told = goAway.map {
      Aftermath.GoAway(code: HTTP2ErrorCode.name(of: $0.errorCode), lastStream: $0.lastStream, debugData: $0.text)
    }
    let aftermath = Aftermath(
      injections: batch[index].aftermath?.injections ?? [], goAway: told, endedAt: MachineTime.nanoseconds)
    if batch[index].outcome == .accepted {
      // The client does not learn that the push was accepted, so the same push again is its next attempt.
      attempts.resume(countKey(of: stream), after: batch[index].attempt, now: batchBegan)
    }
    batch[index].end(
      Record.End(
        outcome: .aborted, accepted: batch[index].accepted, served: Record.Served(), aftermath: aftermath,
        finishedAt: now))
  }

  /// Keeps a record of a complete request that is not processed, because the connection ended before it in the same read.
  ///
  /// - Parameter isCutByFault: whether a fault ended the connection.
  func recordUnprocessed(_ stream: RequestStream, isCutByFault: Bool) {
    if isCutByFault || stream.id > lastServedStream { return ignore(stream) }
    let attempt = attempts.countUnprocessed(countKey(of: stream), now: batchBegan)
    recordUnfinished(stream, attempt: attempt)
  }

  /// Makes the records of this read visible. To be called before the answers leave: a push that was answered is readable.
  func commit() {
    guard !batch.isEmpty else { return }
    scratch.knownTokens.learn(from: standing)
    // One look at the clock for all of them: their answers leave together.
    let present = MachineTime.nanoseconds
    for index in batch.indices { batch[index].wasAnswered(at: present) }
    log.count(pushes: batch.count)
    let first = state.inbox.append(&batch)
    for (stream, index) in batchHeld { held[stream]?.seq = first + index }
    batchHeld.removeAll(keepingCapacity: true)
  }

  /// Keeps a record of a request that was not whole when its stream ended: the client went away, or the server reset the
  /// stream because the request is not valid HTTP/2.
  func recordUnfinished(_ stream: RequestStream, reset: HTTP2ErrorCode? = nil, attempt: Int32 = 1) {
    var breach: Aftermath.Breach?
    if let excess, excess.stream == stream.id { breach = .excessStreams(limit: excess.limit) }
    record(
      stream.request, Verdict(of: stream.request), isJudged: false, generatedID: [], attempt: attempt,
      Record.End(
        outcome: reset == nil ? .aborted : .rejected, accepted: false, served: Record.Served(),
        aftermath: reset == nil && breach == nil ? nil : Aftermath(reset: reset?.name, breach: breach),
        finishedAt: now))
  }

  /// A GOAWAY has left that names this stream as the last. Later ones never name a higher one.
  func serveNoMore(after stream: Int32) {
    guard stream < lastServedStream else { return }
    lastServedStream = stream
    farewellAt = MachineTime.nanoseconds
  }

  // MARK: - Answers

  /// Announces the stream limit, if it changes, in SETTINGS that leave before the response to `stream`. When the limit is
  /// cut because of a rejection, refuses the other open streams.
  func announceStreams(before status: Int?, on stream: RequestStream, _ session: HTTP2ServerSession) {
    let wasThrottled = streams.isThrottled
    guard let limit = streams.change(before: status, isTrusted: standing.providerTokenAccepted) else { return }
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
    // After the answer: what is known of the push may still be on its way from memory.
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

  /// Answers with an error: the same header fields as with all others, a status and a body.
  ///
  /// - Parameter injection: whose it is; nil if it is APNs' own.
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
        aftermath: injection.map { Aftermath(injections: Injections($0)) }, finishedAt: now))
  }

  /// Whether the answer must have no body (RFC 9110 section 9.3.2). APNs knows no other method than POST.
  func isHEAD(_ request: HTTPRequest, _ verdict: borrowing Verdict) -> Bool {
    verdict.status == 405 && verdict.facts.method.map { request.headers.string($0) } == "HEAD"
  }

  /// 410 tells of the device, not of the provider, and never counts (APNS.md section 7.2, documented).
  func countRejection(_ status: Int) {
    guard let limit = behaviour.settings.errorsBeforeGoaway, status != 200, status != 410, status != 431 else { return }
    rejections += 1
    if rejections >= limit { effects.append(.leave(.tooManyErrors)) }
  }

  /// Makes the template for a status the answer to a request: puts its ids in.
  func fillTemplate(status: Int, for request: HTTPRequest, _ facts: PushFacts) {
    if status == 200 { return fillIdentifiers(of: &answers.accepted, for: request, facts) }
    answers.rejected.set(status: status)
    fillIdentifiers(of: &answers.rejected, for: request, facts)
  }

  /// Echoes the client's `apns-id` byte for byte if it is a UUID, else makes one (APNS.md section 7.3).
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

  /// Keeps a record of a push for `commit`.
  ///
  /// - Parameters:
  ///   - isJudged: false for a request that did not come whole, of whose verdict only the facts mean something.
  ///   - generatedID: the `apns-id` that the server made; empty if the client gave one, or there was no answer.
  ///   - key: of the push; nil to make it.
  ///   - isHeld: the push waits for something, so its record will be brought to its end later.
  func record(
    _ request: HTTPRequest, _ verdict: borrowing Verdict, isJudged: Bool = true, generatedID: ArraySlice<UInt8>,
    key: PushKey? = nil, attempt: Int32 = 1, isHeld: Bool = false, _ end: consuming Record.End
  ) {
    if isHeld { batchHeld.append((request.stream, batch.count)) }
    batch.append(
      Record(
        request: request, verdict: verdict, isJudged: isJudged, generatedID: generatedID, connection: connection,
        attempt: attempt, receivedAt: now, arrivedAt: batchBegan, end: consume end, pushKey: key, in: scratch.records))
  }

  /// What tells a push from others.
  struct Identity {
    /// In its record.
    let key: PushKey
    /// While its attempts are counted: another one where a profile goes by `apns-id`.
    let countKey: PushKey
  }

  /// Returns the key by which the attempts of an unjudged request are counted.
  private func countKey(of stream: RequestStream) -> PushKey {
    identity(of: stream.request, Verdict(of: stream.request).facts).countKey
  }

  func identity(of request: HTTPRequest, _ facts: PushFacts) -> Identity {
    let defaultTopic = connection.defaultTopic(facts)
    let key = PushKey(request, facts, defaultTopic: defaultTopic)
    guard behaviour.plan.profile.pushIdentity == .apnsID, facts.apnsID != nil else {
      return Identity(key: key, countKey: key)
    }
    return Identity(key: key, countKey: PushKey(request, facts, defaultTopic: defaultTopic, usesID: true))
  }

  /// The number of this attempt of a push.
  ///
  /// - Parameter number: what it will be, where somebody has asked.
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
