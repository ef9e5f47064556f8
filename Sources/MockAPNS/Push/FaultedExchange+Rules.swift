import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTP2Session
import APNSMockHTTPMessage
internal import APNSMockNotation

/// The decision of the active rules about one push, for the server and for simulations.
extension FaultedExchange {
  /// The rules that the quick evaluation left for a push.
  struct CandidateRules {
    let request: QuickResult
    /// Nil if they are evaluated after the rules at `request`.
    let response: QuickResult?
  }

  /// Runs the quick evaluation; returns nil if no rule affects the push. Nearly all pushes return here, before anything
  /// is allocated.
  ///
  /// - Parameters:
  ///   - hasResponseRules: Whether the plan has rules at `response`.
  ///   - attempt: Returns the attempt number of the push, from 1; called only if a rule depends on it.
  ///   - now: Monotonic nanoseconds.
  static func candidateRules(
    for summary: Traffic.PushSummary, _ request: HTTPRequest, _ verdict: borrowing Verdict, in plan: FaultPlan,
    hasResponseRules: Bool, attempt: () -> Int, now: MonotonicTime
  ) -> CandidateRules? {
    let remaining = plan.quickResult(at: .request, for: summary, attempt: attempt, now: now)
    guard remaining.isEmpty, !(plan.areMagicTokensActive && verdict.isAccepted && hasMagicToken(request, verdict))
    else {
      return CandidateRules(request: remaining, response: nil)
    }
    guard hasResponseRules else { return nil }
    let response = plan.quickResult(at: .response, for: summary, attempt: attempt, now: now)
    return response.isEmpty ? nil : CandidateRules(request: remaining, response: response)
  }

  /// Returns whether the device token may be a magic one.
  static func hasMagicToken(_ request: HTTPRequest, _ verdict: borrowing Verdict) -> Bool {
    guard let token = verdict.facts.deviceToken else { return false }
    return request.headers.bytes.withUnsafeBytes { packed in
      MagicToken.isMarked(UnsafeRawBufferPointer(rebasing: packed[token.indices]))
    }
  }

  /// A push and the time at which rules are evaluated for it.
  struct EvaluatedPush {
    let request: HTTPRequest
    let summary: Traffic.PushSummary
    /// Monotonic nanoseconds.
    let now: MonotonicTime
    /// Milliseconds since 1970.
    let serverTime: ServerTime
  }

  /// Evaluates the rules that the quick evaluation left and merges their actions into the exchange.
  ///
  /// - Parameters:
  ///   - hasResponseRules: Whether the plan has rules at `response`.
  ///   - connection: Returns the connection; called only for rules that need it.
  ///   - defaultTopic: Returns the topic of a push without `apns-topic`.
  ///   - attempt: Returns the attempt number of the push, from 1.
  mutating func apply(
    _ candidates: CandidateRules, in plan: FaultPlan, hasResponseRules: Bool, to push: EvaluatedPush,
    _ verdict: borrowing Verdict, connection: () -> Traffic.Connection,
    defaultTopic: (borrowing PushFacts) -> String?, attempt: () -> Int
  ) {
    if candidates.response == nil {
      evaluate(
        candidates.request, at: .request, in: plan, for: push, verdict, connection, defaultTopic, attempt)
    }
    guard hasResponseRules, sendsResponse else { return }
    let remaining =
      candidates.response
      ?? plan.quickResult(
        at: .response, for: push.summary, attempt: attempt, now: push.now, additionsOnly: isFaulted)
    if !remaining.isEmpty {
      evaluate(remaining, at: .response, in: plan, for: push, verdict, connection, defaultTopic, attempt)
    }
  }

  /// Evaluates the remaining rules of an injection point.
  private mutating func evaluate(
    _ remaining: QuickResult, at injectionPoint: InjectionPoint, in plan: FaultPlan, for push: EvaluatedPush,
    _ verdict: borrowing Verdict, _ connection: () -> Traffic.Connection,
    _ defaultTopic: (borrowing PushFacts) -> String?, _ attempt: () -> Int
  ) {
    if let injection = plan.fire(remaining) {
      return apply(injection, at: injectionPoint, serverTime: push.serverTime)
    }
    var traffic = Traffic(
      connection: connection(),
      push: Traffic.Push(
        request: push.request, verdict: copy verdict, key: push.summary.key,
        defaultTopic: defaultTopic(verdict.facts), attempt: attempt(), receivedAt: push.serverTime))
    if injectionPoint == .response {
      traffic.response = Traffic.Response(status: response.status, reason: response.reasonText)
    }
    let injections = plan.decide(
      traffic, at: injectionPoint, now: push.now, additionsOnly: isFaulted, among: remaining)
    for injection in injections { apply(injection, at: injectionPoint, serverTime: push.serverTime) }
  }
}

/// The end of an exchange, after its delay.
extension FaultedExchange {
  /// Returns the error code of the RST_STREAM that ends the stream; nil without one.
  func resetCode(on stream: Int32, _ processed: ProcessedStreams) -> UInt32? {
    switch decidingAction {
    case .resetStream(let code): code
    case .hang(_, .resetStream), .loseResponse(.resetStream): HTTP2ErrorCode.internalError.rawValue
    default: isRefused(on: stream, processed) ? HTTP2ErrorCode.refusedStream.rawValue : nil
    }
  }

  /// Returns the actions on the connection that follow the response or replace it.
  func endingActions(on stream: Int32, _ processed: ProcessedStreams) -> [ConnectionAction] {
    var actions: [ConnectionAction] = []
    switch decidingAction {
    case .hang(_, .close), .loseResponse(.close), .close: actions.append(.close)
    case .resetConnection: actions.append(.reset)
    default: break
    }
    if let goAway {
      actions.append(.goAway(goAway, lastStream: processed.lastStream(of: goAway, causedBy: .push(stream))))
    }
    return actions
  }
}

/// Counts the rejections on a connection toward the setting `errors_before_goaway`.
struct RejectionCounter {
  private var count = 0

  /// Counts a response and returns whether the connection ends because of it. 410 concerns the device, not the
  /// provider, and does not count (Protocol.md, section 7.2, documented); 431 does not count either.
  mutating func endsConnection(after status: Int, limit: Int?) -> Bool {
    guard let limit, !HTTPStatus.isSuccess(status), status != 410, status != 431 else { return false }
    count += 1
    return count >= limit
  }
}
