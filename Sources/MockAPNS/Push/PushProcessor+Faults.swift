import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTP2Session
import APNSMockHTTPMessage
import APNSMockInbox

/// Application of fault decisions to single pushes: responses, delays, stream resets, silence.
extension PushProcessor {
  /// Returns whether a rule could affect this push. On a server without rules this check is the only cost of faults.
  func mayBeAffectedByFaults(_ request: HTTPRequest, _ verdict: borrowing Verdict) -> Bool {
    switch faultScope.pushes {
    case .none: return false
    case .all: return true
    case .magicTokens: return MagicToken.isMarked(request, verdict)
    }
  }

  /// Applies the active faults to a push.
  ///
  /// - Parameter attempt: The push's attempt number, if a rule looked it up.
  /// - Returns: Whether a fault decided about the push, which is then recorded and gets a response, now or later. If
  ///   false, the APNs rules determine the response.
  func applyFaults(
    _ request: HTTPRequest, of stream: RequestStream, _ verdict: borrowing Verdict, _ identity: Identity,
    attempt: inout Int32?, _ processed: ProcessedStreams, _ session: HTTP2ServerSession
  ) -> Bool {
    if let responseUntilShutdown {
      var exchange = FaultedExchange(verdict, acceptedBody: channelExchange?.body ?? [])
      exchange.apply(responseUntilShutdown, at: .request, serverTime: batch.serverTime)
      perform(exchange, request, on: stream, verdict, identity, attempt: nil, processed, session)
      return true
    }
    let plan = activePolicy.plan
    let summary = Traffic.PushSummary(
      key: identity.key, isAccepted: verdict.isAccepted,
      kind: request.headers.bytes.withUnsafeBytes { verdict.facts.kind(in: $0) },
      hasMagicToken: plan.areMagicTokensActive && verdict.isAccepted && MagicToken.isMarked(request, verdict))
    /// Returns the attempt number by which rules are evaluated, and looks it up at most once.
    func attemptNumber() -> Int {
      let number = attempt ?? attempts.peek(identity.attemptKey.push, now: batch.arrivedAt)
      attempt = number
      // First attempts are the usual case and need no lookup.
      return number == 1 ? 1 : max(1, Int(number - attempts.unprocessedAttempts(of: identity.attemptKey.push)))
    }
    func traffic(_ response: Traffic.Response? = nil) -> Traffic {
      Traffic(
        connection: connectionTraffic,
        push: Traffic.Push(
          request: request, verdict: copy verdict, key: identity.key,
          defaultTopic: connection.defaultTopic(verdict.facts), attempt: attemptNumber(), receivedAt: batch.serverTime),
        response: response)
    }
    let decision = plan.decide(
      at: .request, about: summary, now: batch.arrivedAt, attempt: attemptNumber, traffic: { traffic() })
    if !faultScope.hasResponseRules {
      // Nearly all pushes return here.
      if decision.isEmpty { return false }
      if let fault = decision.constantResponse {
        // An accepted provider token raises the stream limit before any response but a 403.
        if fault.response.status != 403 { announceStreamLimit(before: nil, on: stream, session) }
        respond(
          request, of: stream, verdict, identity, attempt: attempt, status: fault.response.status,
          reason: fault.response.reason, body: fault.response.body, injection: fault.injection, session)
        return true
      }
    }
    var exchange = FaultedExchange(verdict, acceptedBody: channelExchange?.body ?? [])
    exchange.apply(decision, at: .request, serverTime: batch.serverTime)
    if faultScope.hasResponseRules, exchange.sendsResponse {
      let decision = plan.decide(
        at: .response, about: summary, now: batch.arrivedAt, additionsOnly: exchange.isFaulted, attempt: attemptNumber,
        traffic: { traffic(exchange.response.traffic) })
      exchange.apply(decision, at: .response, serverTime: batch.serverTime)
    }
    if exchange.injections.isEmpty { return false }
    perform(exchange, request, on: stream, verdict, identity, attempt: attempt, processed, session)
    return true
  }

  // MARK: - Execution

  /// Performs the decided exchange, or schedules its end if it takes time.
  private func perform(
    _ exchange: consuming FaultedExchange, _ request: HTTPRequest, on stream: RequestStream,
    _ verdict: borrowing Verdict, _ identity: Identity, attempt: Int32?, _ processed: ProcessedStreams,
    _ session: HTTP2ServerSession
  ) {
    if !(exchange.sendsResponse && exchange.response.status == 403) {
      announceStreamLimit(before: nil, on: stream, session)
    }
    if exchange.blocksTokenUpdates { authentication.blockTokenUpdates(now: batch.serverTime) }
    if !exchange.connectionActions.isEmpty { connectionActions += exchange.connectionActions }
    if isHEAD(request, verdict) { exchange.removeBody() }

    let hasTemplate = verdict.reason != nil || verdict.isAccepted || exchange.isFaulted
    let template = hasTemplate ? template(for: exchange.response, to: request, verdict.facts) : nil
    let forwarded = exchange.forwardsPush ? upstreamPush(for: request, of: stream, verdict) : nil
    let isComplete = !exchange.takesTime && forwarded == nil
    let result =
      isComplete
      ? recordResult(of: exchange, on: stream.id, processed)
      : Record.Result(
        .pending, .pending, wireDetails: WireDetails(injections: exchange.injections), finishedAt: nil)
    // If the client does not learn that the push was accepted, its next request is a retry.
    let number = countAttempt(
      of: identity, accepted: result.outcome == .accepted, next: attempt)
    let index = batch.records.count
    record(
      request, verdict, generatedID: template?.generatedID(of: verdict.facts) ?? [],
      key: identity.key, attempt: number, isPending: !isComplete, result)
    if isComplete {
      if result.end.ending == .pending {
        keepUnfinished(on: stream.id, result, identity.attemptKey, attempt: number, index: index)
      }
      if exchange.mayEndConnection, let injection = exchange.injections.first {
        setCause(injection, push: .inBatch(index))
      }
      complete(exchange, template, on: stream, processed, session)
    } else {
      if let forwarded {
        forwards.append(forwarded)
      } else {
        connectionActions.append(.continuePush(stream: stream.id, after: exchange.delay))
      }
      delayedPushes[stream.id] = DelayedPush(
        stream: stream, exchange: exchange, template: template, attemptKey: identity.attemptKey, attempt: number,
        arrivedAt: batch.arrivedAt,
        delivery: device.map { acceptedPush(request, verdict.facts, to: $0) }, channelExchange: channelExchange,
        forwarded: forwarded)
      channelExchange = nil
    }
  }

  /// Continues a delayed push when its time has come.
  func continueDelayedPush(on id: Int32, _ processed: ProcessedStreams, session: HTTP2ServerSession) {
    guard var push = delayedPushes.removeValue(forKey: id) else { return }
    if push.remainingParts > 0 {
      session.releasePart(of: push.stream)
      push.remainingParts -= 1
      if push.remainingParts > 0, let interval = push.exchange.mutation.interval {
        delayedPushes[id] = push
        connectionActions.append(.continuePush(stream: id, after: interval))
      }
      return
    }
    beginBatch()
    if case .hang(_, .nothing) = push.exchange.decidingAction {
      // Nothing is said: the attempt ends when the client gives up.
      release(push.exchange)
      push.isAbandoned = true
      delayedPushes[id] = push
      return
    }
    let result = recordResult(of: push.exchange, on: id, processed, latency: MachineTime.nanoseconds - push.arrivedAt)
    if result.end.ending == .pending, let key = push.attemptKey {
      unfinished[id] = UnfinishedPush(
        result: result, seq: push.seq, attempt: push.attempt, attemptKey: key, arrivedAt: push.arrivedAt)
    }
    if result.outcome == .accepted, let key = push.attemptKey { attempts.accept(key.push) }
    if push.exchange.mayEndConnection, let injection = push.exchange.injections.first, let seq = push.seq {
      setCause(injection, push: .recorded(seq))
    }
    complete(push, with: result)
    complete(push.exchange, push.template, on: push.stream, processed, session)
  }

  /// Ends the attempt of a delayed push: the client reset the stream, the connection ended, or the server refused the
  /// stream. One whose response was begun has ended otherwise.
  ///
  /// - Parameter reset: The code with which the server reset the stream; nil if it did not.
  func endDelayedPush(on id: Int32, _ ending: Ending, _ reset: HTTP2ErrorCode?) {
    guard let push = delayedPushes.removeValue(forKey: id), push.remainingParts == 0 else { return }
    if !push.isAbandoned { release(push.exchange) }
    let decision: Decision =
      if let forwarded = push.forwarded {
        upstream?.cancel(forwarded) == true ? .notProcessed : .unknown
      } else {
        push.exchange.isDelayedBeforeAcceptance ? .notProcessed : push.exchange.decision
      }
    complete(
      push,
      with: Record.Result(
        decision, ending,
        wireDetails: detailsOfDelayed(ending, push.exchange.injections, reset: reset), finishedAt: batch.serverTime))
  }

  /// Returns the header fields of a response, with its ids.
  private func template(
    for response: FaultedExchange.Response, to request: HTTPRequest, _ facts: PushFacts
  ) -> ResponseTemplates.Template {
    // The bytes are copied only if the template is modified, or refilled while this copy is still in use.
    var template = filledTemplate(status: response.status, for: request, facts)
    for field in response.headers { template.headers.append(name: field.name, value: field.value) }
    return template
  }

  /// Ends an exchange as decided: sends the response, resets the stream or acts on the connection.
  private func complete(
    _ exchange: borrowing FaultedExchange, _ template: ResponseTemplates.Template?, on stream: RequestStream,
    _ processed: ProcessedStreams, _ session: HTTP2ServerSession
  ) {
    release(exchange)
    if exchange.sendsResponse { sendResponse(of: exchange, template, on: stream, session) }
    if let code = exchange.resetCode(on: stream.id, processed) { session.reset(stream, rawCode: code) }
    connectionActions += exchange.endingActions(on: stream.id, processed)
  }

  /// Releases the rules that were delaying the push.
  func release(_ exchange: borrowing FaultedExchange) {
    guard exchange.isDelayedByRule else { return }
    for injection in exchange.injections where injection.delaysPush {
      activePolicy.plan.ruleCounters.release(injection)
    }
  }

  private func sendResponse(
    of exchange: borrowing FaultedExchange, _ template: ResponseTemplates.Template?, on stream: RequestStream,
    _ session: HTTP2ServerSession
  ) {
    let response = exchange.response
    let mutation = exchange.mutation
    announceStreamLimit(before: response.status, on: stream, session)
    countRejection(response.status)
    guard let template else { return session.respond(to: stream, headers: responses.headersTooLarge) }
    guard !mutation.isEmpty else {
      return session.respond(to: stream, headers: template.headers, body: response.body)
    }
    let parts = mutation.parts(of: response.body, status: response.status)
    session.respond(
      to: stream, headers: mutation.headers(template.headers), parts: parts, waitsForRelease: mutation.interval != nil)
    guard let interval = mutation.interval else { return }
    connectionActions.append(.continuePush(stream: stream.id, after: interval))
    // Without a body, the end of the stream is still delayed.
    delayedPushes[stream.id] = DelayedPush(
      stream: stream, exchange: copy exchange, template: template, attemptKey: nil, attempt: 0,
      arrivedAt: batch.arrivedAt, delivery: nil, channelExchange: nil, remainingParts: max(1, parts.count))
  }

  // MARK: - Records

  /// Returns the result for the push's record.
  ///
  /// - Parameter latency: The response's latency in nanoseconds; nil for a response that leaves with the others of
  ///   this read.
  private func recordResult(
    of exchange: borrowing FaultedExchange, on stream: Int32, _ processed: ProcessedStreams, latency: Int64? = nil
  ) -> Record.Result {
    var response = Record.SentResponse()
    if exchange.sendsResponse {
      response = Record.SentResponse(
        status: exchange.response.status, reason: exchange.response.reason, latencyNanoseconds: latency)
    }
    let goAway = exchange.goAway.map {
      WireDetails.GoAway(
        code: HTTP2ErrorCode.name(of: $0.code), lastStream: processed.lastStream(of: $0, causedBy: .push(stream)),
        debugData: $0.debugData)
    }
    let wireDetails = WireDetails(
      injections: exchange.injections, unusualReason: exchange.sendsResponse ? exchange.response.unusualReason : nil,
      reset: exchange.resetName(on: stream, processed), goAway: goAway, closed: exchange.closeMethod,
      endedAt: exchange.sendsResponse ? nil : MachineTime.nanoseconds)
    let ending = exchange.ending(on: stream, processed)
    return Record.Result(
      exchange.decision, ending, sentResponse: response,
      wireDetails: exchange.injections.isEmpty ? nil : wireDetails,
      finishedAt: ending == .pending ? nil : batch.serverTime)
  }
}
