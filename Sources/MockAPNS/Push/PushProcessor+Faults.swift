import APNSRules
import FaultModel
import Faults
import HTTP2Session
import HTTPMessage
import Inbox

/// Application of fault decisions to single pushes: responses, delays, stream resets, silence.
extension PushProcessor {
  /// Returns whether a rule could affect this push. On a server without rules this check is the only cost of faults.
  func mayBeAffectedByFaults(_ request: HTTPRequest, _ verdict: borrowing Verdict) -> Bool {
    switch faultScope {
    case .none: return false
    case .all: return true
    case .magicTokens: return isMagic(request, verdict)
    }
  }

  private func isMagic(_ request: HTTPRequest, _ verdict: borrowing Verdict) -> Bool {
    guard areMagicTokensActive, let token = verdict.facts.deviceToken else { return false }
    return request.headers.bytes.withUnsafeBytes { packed in
      MagicToken.isMarked(UnsafeRawBufferPointer(rebasing: packed[token.indices]))
    }
  }

  /// Applies the active faults to a push.
  ///
  /// - Parameter attempt: The push's attempt number, if a rule looked it up.
  /// - Returns: Whether a fault decided about the push, which is then recorded and answered or delayed. If false,
  ///   the APNs rules determine the response.
  func applyFaults(
    _ request: HTTPRequest, of stream: RequestStream, _ verdict: borrowing Verdict, _ identity: Identity,
    attempt: inout Int32?, _ session: HTTP2ServerSession
  ) -> Bool {
    if let draining {
      let exchange = FaultedExchange(verdict)
      exchange.follow(Decision(outcome: draining), at: .request, now: now)
      follow(exchange, request, on: stream, verdict, identity, attempt: nil, session)
      return true
    }
    let plan = activePolicy.plan
    let summary = Traffic.PushSummary(key: identity.key, isAccepted: verdict.isAccepted)
    func number() -> Int {
      let number = attempt ?? attempts.peek(identity.countKey, now: batchBegan)
      attempt = number
      // First attempts are the usual case and need no look-up.
      return number == 1 ? 1 : max(1, Int(number - attempts.unprocessedAttempts(of: identity.countKey)))
    }
    let atRequest = plan.candidateRules(at: .request, for: summary, attempt: number, now: batchBegan)
    var atResponse: CandidateRules?
    if atRequest.isEmpty, !(verdict.isAccepted && isMagic(request, verdict)) {
      // Nearly all pushes return here, before anything is allocated.
      if !hasResponseRules { return false }
      let left = plan.candidateRules(at: .response, for: summary, attempt: number, now: batchBegan)
      if left.isEmpty { return false }
      atResponse = left
    }
    attempts.prefetchForRejected(identity.countKey)
    if !hasResponseRules, let fault = plan.fireConstantResponse(atRequest) {
      // An accepted provider token raises the stream limit before any response but a 403.
      if fault.answer.status != 403 { announceStreams(before: nil, on: stream, session) }
      answer(
        request, of: stream, verdict, identity, attempt: attempt, status: fault.answer.status,
        reason: fault.answer.reason, body: fault.answer.body, by: fault.by, session)
      return true
    }
    let exchange = FaultedExchange(verdict)
    if atResponse == nil { extend(exchange, at: .request, atRequest, request, verdict, identity.key, attempt: number) }
    if hasResponseRules, exchange.isAnswered {
      let left =
        atResponse
        ?? plan.candidateRules(
          at: .response, for: summary, attempt: number, now: batchBegan, excludingOutcomes: exchange.isFaulted)
      if !left.isEmpty { extend(exchange, at: .response, left, request, verdict, identity.key, attempt: number) }
    }
    if exchange.injections.isEmpty { return false }
    follow(exchange, request, on: stream, verdict, identity, attempt: attempt, session)
    return true
  }

  /// Performs the decided action, or schedules it if it takes time.
  private func follow(
    _ exchange: FaultedExchange, _ request: HTTPRequest, on stream: RequestStream, _ verdict: borrowing Verdict,
    _ identity: Identity, attempt: Int32?, _ session: HTTP2ServerSession
  ) {
    if !(exchange.isAnswered && exchange.answer.status == 403) { announceStreams(before: nil, on: stream, session) }
    if exchange.repeatsUntilUpdateInterval { authentication.latchTokenUpdates(now: now) }
    if !exchange.connectionActions.isEmpty { connectionActions += exchange.connectionActions }
    if isHEAD(request, verdict) { exchange.leaveOutBody() }

    let hasTemplate = verdict.reason != nil || verdict.isAccepted || exchange.isFaulted
    let answer = hasTemplate ? template(for: exchange.answer, to: request, verdict.facts) : nil
    let isDone = !exchange.takesTime
    // If the client does not learn that the push was accepted, its next request is a retry.
    let number = countAttempt(
      of: identity, accepted: isDone && exchange.isAccepted && exchange.isAnswered, next: attempt)
    record(
      request, verdict, generatedID: answer?.generatedID(of: verdict.facts) ?? [],
      key: identity.key, attempt: number, isHeld: !isDone, isDone ? ending(of: exchange, on: stream) : pending(exchange)
    )
    if isDone {
      perform(exchange, answer, on: stream, session)
    } else {
      held[stream.id] = DelayedPush(
        stream: stream, exchange: exchange, answer: answer, countKey: identity.countKey, began: batchBegan)
      connectionActions.append(.wake(stream: stream.id, after: exchange.delay))
    }
  }

  /// Continues a delayed push when its time has come.
  func wake(_ id: Int32, session: HTTP2ServerSession) {
    guard var push = held[id] else { return }
    if push.piecesLeft > 0 {
      session.releasePart(of: push.stream)
      push.piecesLeft -= 1
      held[id] = push.piecesLeft > 0 ? push : nil
      if push.piecesLeft > 0, let interval = push.exchange.mutation.interval {
        connectionActions.append(.wake(stream: id, after: interval))
      }
      return
    }
    held[id] = nil
    beginBatch()
    finish(push, with: ending(of: push.exchange, on: push.stream, latency: MachineTime.nanoseconds - push.began))
    perform(push.exchange, push.answer, on: push.stream, session)
  }

  /// Completes a delayed push as aborted: the client reset the stream, the connection ended, or the server refused
  /// the stream.
  ///
  /// - Parameter reset: The code with which the server reset the stream; nil if it did not.
  func abandon(_ id: Int32, reset: HTTP2ErrorCode? = nil) {
    // Request and reset arrived in one read: commit first, because only a record in the inbox can be completed
    // there.
    if let push = held[id], push.seq == nil { commit() }
    guard let push = held.removeValue(forKey: id), push.piecesLeft == 0 else { return }
    release(push.exchange)
    finish(
      push,
      with: Record.End(
        outcome: .aborted, accepted: push.exchange.isAccepted && !push.exchange.isDelayedBeforeAcceptance,
        served: Record.Served(),
        wireOutcome: WireOutcome(
          injections: push.exchange.injections, reset: reset?.name, endedAt: MachineTime.nanoseconds),
        finishedAt: now))
  }

  /// Completes all delayed pushes as aborted, because the connection ended.
  func abandonAll() {
    for id in held.keys.sorted() { abandon(id) }
  }

  /// Answers every further push with this injected response.
  func drain(by injection: Injection, _ answer: Action.Answer) {
    draining = injection.doing(.respond(answer))
  }

  /// The time in nanoseconds after a GOAWAY within which a new stream is not reported as a client error: it may have
  /// crossed the GOAWAY on the wire, or the client had not read the frame yet. Half a second, for machines under
  /// load.
  private static let crossing: Int64 = 500_000_000

  /// Buffers a record of a push that arrived after a GOAWAY that excluded its stream.
  func ignore(_ stream: RequestStream) {
    let late = batchBegan - goAwaySentAt
    let breach: WireOutcome.Breach? =
      late < Self.crossing ? nil : .afterGoAway(lastStream: lastServedStream, nanoseconds: late)
    let verdict = Verdict(of: stream.request)
    let identity = identity(of: stream.request, verdict.facts)
    record(
      stream.request, verdict, isJudged: false, generatedID: [], key: identity.key,
      // The client must send an unprocessed push again; that is its next attempt.
      attempt: attempts.countUnprocessed(identity.countKey, now: batchBegan),
      Record.End(
        outcome: .faulted, accepted: false, served: Record.Served(),
        wireOutcome: breach.map { WireOutcome(breach: $0) },
        finishedAt: now))
  }

  // MARK: - Decisions

  /// Evaluates the rules of an injection point and merges their actions into `exchange`.
  private func extend(
    _ exchange: FaultedExchange, at injectionPoint: InjectionPoint, _ left: CandidateRules, _ request: HTTPRequest,
    _ verdict: borrowing Verdict,
    _ key: PushKey, attempt: () -> Int
  ) {
    let plan = activePolicy.plan
    if let injection = plan.fire(left) {
      return exchange.follow(Decision(outcome: injection), at: injectionPoint, now: now)
    }
    let push = Traffic.Push(
      request: request, verdict: copy verdict, key: key, defaultTopic: connection.defaultTopic(verdict.facts),
      attempt: attempt(), now: now)
    var traffic = Traffic(connection: traffic, push: push)
    if injectionPoint == .response {
      traffic.answer = Traffic.Answer(status: exchange.answer.status, reason: exchange.answer.reasonText)
    }
    let decision = plan.decide(
      traffic, at: injectionPoint, now: batchBegan, excludingOutcomes: exchange.isFaulted, among: left)
    exchange.follow(decision, at: injectionPoint, now: now)
  }

  /// The connection's properties that rules can match.
  var traffic: Traffic.Connection {
    Traffic.Connection(
      number: log.number, client: log.clientAddress, listener: connection.listener, serverName: connection.sni,
      certificateUID: connection.certificate?.subjectUID, streamsOpened: completeRequests)
  }

  // MARK: - Execution

  /// Returns the header fields of a response, with its ids.
  private func template(
    for answer: FaultedExchange.Answer, to request: HTTPRequest, _ facts: PushFacts
  ) -> AnswerTemplates.Template {
    fillTemplate(status: answer.status, for: request, facts)
    // The bytes are copied only if the template is modified, or refilled while this copy is still in use.
    var template = answer.status == 200 ? answers.accepted : answers.rejected
    for field in answer.headers { template.headers.append(name: field.name, value: field.value) }
    return template
  }

  private func perform(
    _ exchange: FaultedExchange, _ answer: AnswerTemplates.Template?, on stream: RequestStream,
    _ session: HTTP2ServerSession
  ) {
    let id = stream.id
    release(exchange)
    switch exchange.end {
    case .answer:
      give(answer, of: exchange, on: stream, session)
      if let order = exchange.followedBy {
        connectionActions.append(.goAway(order, lastStream: lastStream(of: order, on: id)))
      }
    case .hang(.answer): give(answer, of: exchange, on: stream, session)
    case .hang(.nothing), .loseResponse(.nothing), .loseResponse(.answer): break
    case .hang(.resetStream), .loseResponse(.resetStream): session.reset(stream, code: .internalError)
    case .hang(.close), .loseResponse(.close), .close: connectionActions.append(.close)
    case .resetStream(let code): session.reset(stream, rawCode: code)
    case .resetConnection: connectionActions.append(.reset)
    case .goAway(let order):
      let last = lastStream(of: order, on: id)
      if order.lastStream != .beforeThis {
        give(answer, of: exchange, on: stream, session)
      } else if isOvertaken(id) {
        session.reset(stream, code: .refusedStream)
      }
      connectionActions.append(.goAway(order, lastStream: last))
    }
  }

  /// Releases the rules that were delaying the push.
  private func release(_ exchange: FaultedExchange) {
    guard exchange.isHolding else { return }
    for injection in exchange.injections where injection.holds { activePolicy.plan.ruleCounters.release(injection) }
  }

  private func give(
    _ answer: AnswerTemplates.Template?, of exchange: FaultedExchange, on stream: RequestStream,
    _ session: HTTP2ServerSession
  ) {
    announceStreams(before: exchange.answer.status, on: stream, session)
    countRejection(exchange.answer.status)
    guard let answer else { return session.respond(to: stream, headers: answers.headersTooLarge) }
    guard !exchange.mutation.isPlain else {
      return session.respond(to: stream, headers: answer.headers, body: exchange.answer.body)
    }
    let parts = exchange.mutation.parts(of: exchange.answer.body, status: exchange.answer.status)
    session.respond(
      to: stream, headers: exchange.mutation.headers(answer.headers), parts: parts,
      isHeld: exchange.mutation.dribble != nil)
    guard let interval = exchange.mutation.interval else { return }
    // Without a body, the end of the stream is still delayed.
    held[stream.id] = DelayedPush(
      stream: stream, exchange: exchange, answer: answer, countKey: nil, began: batchBegan,
      piecesLeft: max(1, parts.count))
    connectionActions.append(.wake(stream: stream.id, after: interval))
  }

  private func lastStream(of order: Action.GoAwayParameters, on id: Int32) -> Int32 {
    let last =
      switch order.lastStream {
      case .beforeThis: isOvertaken(id) ? highestProcessedStream : max(0, id - 2)
      case .this: max(id, highestProcessedStream)
      case .all: Int32.max
      }
    return min(last, lastServedStream)
  }

  /// Returns whether pushes of later streams were evaluated before this one, which can happen when it was delayed.
  /// GOAWAY then has to include those streams too, and this one is refused with its own RST_STREAM.
  private func isOvertaken(_ id: Int32) -> Bool { highestProcessedStream > id }

  // MARK: - Records

  private func pending(_ exchange: FaultedExchange) -> Record.End {
    Record.End(
      outcome: .pending, accepted: false, served: Record.Served(),
      wireOutcome: WireOutcome(injections: exchange.injections), finishedAt: nil)
  }

  /// Returns the end of the push's record.
  ///
  /// - Parameter latency: The response's latency in nanoseconds; nil for a response that leaves with the others of
  ///   this read.
  private func ending(of exchange: FaultedExchange, on stream: RequestStream, latency: Int64? = nil) -> Record.End {
    var served = Record.Served()
    if exchange.isAnswered {
      served = Record.Served(
        status: exchange.answer.status, reason: exchange.answer.reason, latencyNanoseconds: latency)
    }
    let outcome: Record.Outcome = exchange.isFaulted ? .faulted : exchange.isAccepted ? .accepted : .rejected
    var wireOutcome: WireOutcome?
    if !exchange.injections.isEmpty {
      wireOutcome = WireOutcome(
        injections: exchange.injections, unusualReason: exchange.isAnswered ? exchange.answer.unusualReason : nil,
        reset: resetName(of: exchange, on: stream.id),
        goAway: exchange.goAway.map { sentGoAway($0, on: stream.id) },
        closed: exchange.closing, endedAt: exchange.isAnswered ? nil : MachineTime.nanoseconds)
    }
    return Record.End(
      outcome: outcome, accepted: exchange.isAccepted, served: served, wireOutcome: wireOutcome, finishedAt: now)
  }

  private func resetName(of exchange: FaultedExchange, on id: Int32) -> String? {
    if case .goAway(let order) = exchange.end, order.lastStream == .beforeThis, isOvertaken(id) {
      return HTTP2ErrorCode.refusedStream.name
    }
    return exchange.resetName
  }

  private func sentGoAway(_ order: Action.GoAwayParameters, on id: Int32) -> WireOutcome.GoAway {
    WireOutcome.GoAway(
      code: HTTP2ErrorCode.name(of: order.code), lastStream: lastStream(of: order, on: id), debugData: order.debugData)
  }

  private func finish(_ push: DelayedPush, with end: Record.End) {
    if end.accepted, end.served.status == 200, let key = push.countKey {
      attempts.accept(key)
    }
    if let seq = push.seq { state.inbox.finish(seq, with: end) }
  }
}
