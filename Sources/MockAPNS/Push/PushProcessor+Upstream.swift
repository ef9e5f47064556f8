import APNSMockRules
import APNSMockDevices
import APNSMockFaultModel
import APNSMockHTTP2Session
import APNSMockHTTPMessage
import APNSMockInbox
import NIOCore

/// Forwarding of pushes to upstream, whose answer goes to the provider.
extension PushProcessor {
  /// Whether a push was forwarded and has no answer, so that a shutdown waits for it.
  var awaitsUpstream: Bool { upstream != nil && delayedPushes.values.contains { $0.forwarded != nil } }

  /// Forwards a push that no fault affects. It is recorded as pending, like one that a fault delays.
  ///
  /// - Returns: Whether the push is forwarded. If false, the APNs rules determine the response.
  func forward(
    _ request: HTTPRequest, of stream: RequestStream, _ verdict: borrowing Verdict, _ identity: Identity,
    attempt: Int32?, _ session: HTTP2ServerSession
  ) -> Bool {
    guard let push = upstreamPush(for: request, of: stream, verdict) else { return false }
    announceStreamLimit(before: nil, on: stream, session)
    let number = countAttempt(of: identity, accepted: false, next: attempt)
    record(
      request, verdict, generatedID: [], key: identity.key, attempt: number, isPending: true,
      Record.Result(.pending, .pending, finishedAt: nil))
    delayedPushes[stream.id] = DelayedPush(
      stream: stream, exchange: FaultedExchange(verdict, acceptedBody: []), template: nil,
      attemptKey: identity.attemptKey, attempt: number, arrivedAt: batch.arrivedAt,
      delivery: device.map { acceptedPush(request, verdict.facts, to: $0) }, channelExchange: nil, forwarded: push)
    forwards.append(push)
    return true
  }

  /// Returns the request to forward. Nil without upstream, for broadcasts and channel management, for a push that may not
  /// leave the machine, and for one whose content was not kept completely.
  func upstreamPush(
    for request: HTTPRequest, of stream: RequestStream, _ verdict: borrowing Verdict
  ) -> UpstreamPush? {
    guard let upstream, let receiver = upstreamReceiver, verdict.isAccepted || verdict.reason != nil,
      request.bodySize == request.body.count
    else { return nil }
    let facts = verdict.facts
    let defaultTopic = connection.defaultTopic(facts).map { Array($0.utf8) }
    let headers = request.headers.bytes.withUnsafeBytes { packed -> HeaderList? in
      func part(_ range: ByteRange?) -> UnsafeRawBufferPointer? {
        range.map { UnsafeRawBufferPointer(rebasing: packed[$0.indices]) }
      }
      guard facts.kind(in: packed) == .push else { return nil }
      let isAllowed =
        if let topic = part(facts.topic) {
          upstream.settings.allows(topic: topic, deviceToken: part(facts.deviceToken))
        } else {
          (defaultTopic ?? []).withUnsafeBytes {
            upstream.settings.allows(topic: defaultTopic == nil ? nil : $0, deviceToken: part(facts.deviceToken))
          }
        }
      return isAllowed ? upstream.settings.headers(from: packed) : nil
    }
    return headers.map {
      UpstreamPush(
        headers: $0, body: request.body, team: verdict.token?.teamID, stream: stream.id, receiver: receiver)
    }
  }

  /// Gives the provider upstream's answer, unless it has given up.
  func completeForwarded(
    on id: Int32, _ answer: UpstreamAnswer, _ processed: ProcessedStreams, session: HTTP2ServerSession
  ) {
    guard let push = delayedPushes[id], push.forwarded != nil else { return }
    delayedPushes[id] = nil
    if push.exchange.isFaulted { return lose(answer, to: push, processed, session) }
    let stream = push.stream
    let latency = MachineTime.nanoseconds - push.arrivedAt
    func wireDetails(unusualReason: String? = nil, reset: HTTP2ErrorCode? = nil) -> WireDetails {
      WireDetails(
        unusualReason: unusualReason, reset: reset?.name, endedAt: reset == nil ? nil : MachineTime.nanoseconds,
        upstream: answer.recorded)
    }
    let result: Record.Result
    switch answer.result {
    case .response(let response):
      let reason = answer.reason
      let known = reason.flatMap { Reason(text: $0) }
      let status = answer.status ?? 0
      let isAccepted = HTTPStatus.isSuccess(status)
      // Upstream knows the key better: a provider token that it accepts raises the stream limit.
      if isAccepted { authentication.providerTokenAccepted = true }
      announceStreamLimit(before: status, on: stream, session)
      countRejection(status)
      session.respond(to: stream, headers: response.headers, body: response.body)
      result = Record.Result(
        isAccepted ? .accepted : .rejected, .response,
        sentResponse: Record.SentResponse(status: status, reason: known, latencyNanoseconds: latency),
        wireDetails: wireDetails(unusualReason: known == nil ? reason : nil), finishedAt: batch.serverTime)
      if isAccepted, let key = push.attemptKey { attempts.accept(key.push) }
      if let known, upstream?.settings.learnsTokens == true { learn(known, at: answer.timestamp, of: stream.request) }
    case .excluded:
      session.reset(stream, rawCode: HTTP2ErrorCode.refusedStream.rawValue)
      result = Record.Result(
        .notProcessed, .refused, wireDetails: wireDetails(reset: .refusedStream), finishedAt: batch.serverTime)
    case .refused:
      let reason = Reason.serviceUnavailable
      countRejection(reason.status)
      let template = filledTemplate(
        status: reason.status, for: stream.request, Verdict(factsOnly: stream.request).facts)
      session.respond(to: stream, headers: template.headers, body: reason.body(timestamp: nil))
      result = Record.Result(
        .rejected, .response,
        sentResponse: Record.SentResponse(status: reason.status, reason: reason, latencyNanoseconds: latency),
        wireDetails: wireDetails(), finishedAt: batch.serverTime)
    case .unknown:
      // A 503 would make the provider send the push again, and the device may have it already.
      session.reset(stream, rawCode: HTTP2ErrorCode.internalError.rawValue)
      result = Record.Result(
        .unknown, .reset, wireDetails: wireDetails(reset: .internalError), finishedAt: batch.serverTime)
    }
    complete(push, with: result)
  }

  /// Ends a push whose rule loses upstream's answer.
  private func lose(
    _ answer: UpstreamAnswer, to push: DelayedPush, _ processed: ProcessedStreams, _ session: HTTP2ServerSession
  ) {
    release(push.exchange)
    let id = push.stream.id
    let decision: Decision =
      switch answer.result {
      case .response: HTTPStatus.isSuccess(answer.status ?? 0) ? .accepted : .rejected
      case .excluded, .refused: .notProcessed
      case .unknown: .unknown
      }
    let ending = push.exchange.ending(on: id, processed)
    let result = Record.Result(
      decision, ending,
      wireDetails: WireDetails(
        injections: push.exchange.injections, reset: push.exchange.resetName(on: id, processed),
        endedAt: MachineTime.nanoseconds, upstream: answer.recorded),
      finishedAt: ending == .pending ? nil : batch.serverTime)
    if ending == .pending, let key = push.attemptKey {
      unfinished[id] = UnfinishedPush(
        result: result, seq: push.seq, attempt: push.attempt, attemptKey: key, arrivedAt: push.arrivedAt)
    }
    complete(push, with: result)
    if let code = push.exchange.resetCode(on: id, processed) { session.reset(push.stream, rawCode: code) }
  }

  /// Registers a device token with the state that follows from upstream's reason.
  ///
  /// - Parameter timestamp: The time of a 410, in milliseconds since 1970.
  private func learn(_ reason: Reason, at timestamp: Int64?, of request: HTTPRequest) {
    let facts = Verdict(factsOnly: request).facts
    guard let range = facts.deviceToken, reason.teachesDeviceToken,
      request.headers.bytes.withUnsafeBytes({
        DeviceToken.isWellFormed(UnsafeRawBufferPointer(rebasing: $0[range.indices]))
      })
    else { return }
    let topic = facts.topic.map { request.headers.string($0) } ?? connection.defaultTopic(facts)
    let environment = connection.environment
    var token = SingleToken(token: request.headers.string(range), since: batch.serverTime, isFromUpstream: true)
    switch reason {
    case .unregistered:
      token.topic = topic
      token.environment = environment
      token.state = .unregistered
      token.since = timestamp ?? token.since
    // Usually a token of the other environment (Protocol.md, section 11).
    case .badDeviceToken: token.environment = environment == .sandbox ? .production : .sandbox
    // The topic it belongs to is unknown: any but this one.
    default: token.topic = "not.\(topic ?? "")"
    }
    // Malformed tokens, and those beyond the limit, are not registered.
    _ = try? state.devices.set(token)
  }
}

extension Reason {
  /// Whether the reason says something lasting about a device token.
  fileprivate var teachesDeviceToken: Bool {
    switch self {
    case .badDeviceToken, .unregistered, .deviceTokenNotForTopic: true
    default: false
    }
  }
}

extension ConnectionHandler {
  /// Passes the recorded pushes to upstream.
  func forwardPushes(of processor: PushProcessor, _ context: ChannelHandlerContext) {
    processor.upstream?.forward(processor.forwards)
    processor.forwards.removeAll(keepingCapacity: true)
  }

  /// Returns the receiver of upstream's answers.
  func makeUpstreamReceiver(_ context: ChannelHandlerContext) -> UpstreamReceiver? {
    guard state.upstream != nil else { return nil }
    // Handler and context belong to this event loop and answers arrive on it; `NIOLoopBound` checks this.
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    return UpstreamReceiver(on: context.eventLoop) { answers in
      let (handler, context) = bound.value
      guard handler.stateMachine.isOpen, let session = handler.session, let processor = handler.processor else {
        return
      }
      processor.beginBatch()
      let processed = handler.stateMachine.processedStreams
      for (stream, answer) in answers { processor.completeForwarded(on: stream, answer, processed, session: session) }
      handler.performPendingActions(context)
      handler.writeFrames(context)
    }
  }
}
