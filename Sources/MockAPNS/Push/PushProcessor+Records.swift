import APNSMockRules
import APNSMockDevices
import APNSMockFaultModel
import APNSMockHTTP2Session
import APNSMockHTTPMessage
import APNSMockInbox

/// Records of pushes, and of the ends of their attempts.
extension PushProcessor {
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

  // MARK: - Ends of attempts

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
    let first = appendRecords()
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

  /// Appends the batch's records to the inbox, with the deliveries to devices.
  ///
  /// - Returns: The number of the first record.
  private func appendRecords() -> Int {
    guard !batch.deliveries.isEmpty else { return state.inbox.append(&batch.records) }
    var deliveries: [AcceptedPush] = []
    swap(&deliveries, &batch.deliveries)
    defer { swap(&deliveries, &batch.deliveries) }
    return state.deliveryControl.deliver(
      &deliveries, appending: &batch.records, now: batch.serverTime, settings: activePolicy.settings)
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
  func resumePartial(_ request: HTTPRequest, _ facts: PushFacts, _ identity: Identity) {
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
}
