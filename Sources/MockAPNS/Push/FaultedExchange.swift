internal import APNSMockNotation
import APNSMockRules
import APNSMockDevices
import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTP2Session
import APNSMockHTTPMessage
import APNSMockInbox

/// What happens to one push after the active fault rules were applied: its response, its delay and its end. Complete
/// before it is performed, immediately or later.
struct FaultedExchange {
  /// The rules that fired, the one that decided the exchange first.
  private(set) var injections: Injections = []
  /// The action that decided the exchange; `pass` for the APNs rules' response.
  private(set) var decidingAction = Action.pass
  /// Whether a rule decided the exchange, rather than the APNs rules.
  private(set) var isFaulted = false
  /// Whether `RuleCounters` counts the push as delayed until `release`.
  private(set) var isDelayedByRule = false
  /// The response, if one is sent.
  private(set) var response: Response
  /// The changes to the response.
  private(set) var mutation = ResponseMutation()
  /// What APNs does with the push when the exchange ends.
  private(set) var decision: Decision
  /// The delay before the exchange ends.
  private(set) var delay = Duration.zero
  /// Whether the delay precedes the acceptance of the push, not only its response.
  private(set) var isDelayedBeforeAcceptance = false
  /// The GOAWAY that is sent, instead of the response or after it.
  private(set) var goAway: Action.GoAwayParameters?
  /// Further actions on the connection.
  private(set) var connectionActions: [ConnectionAction] = []
  /// Whether the connection responds with 429 `TooManyProviderTokenUpdates` until the update interval has passed.
  private(set) var blocksTokenUpdates = false

  /// Creates an exchange that follows the APNs rules' verdict.
  ///
  /// - Parameter acceptedBody: The body of the response if the request is accepted.
  init(_ verdict: borrowing Verdict, acceptedBody: [UInt8]) {
    response = Response(verdict)
    decision = verdict.isAccepted ? .accepted : .rejected
    if isAccepted { response.body = acceptedBody }
  }

  /// Removes the body of the response, for a HEAD request.
  mutating func removeBody() { response.body = [] }

  /// Applies what the rules at an injection point decided.
  ///
  /// - Parameter serverTime: The time by the server's clock, in milliseconds since 1970.
  mutating func apply(_ decision: Injections, at injectionPoint: InjectionPoint, serverTime: ServerTime) {
    for injection in decision { apply(injection, at: injectionPoint, serverTime: serverTime) }
  }

  /// Applies an injection to the exchange.
  ///
  /// - Parameter serverTime: The time by the server's clock, in milliseconds since 1970.
  mutating func apply(_ injection: Injection, at injectionPoint: InjectionPoint, serverTime: ServerTime) {
    if injection.delaysPush { isDelayedByRule = true }
    // A rule may end the evaluation with an action that only adds something: then APNs' verdict decides.
    if injection.continues || injection.action.name.continues == true {
      injections.append(injection)
      return addSideEffect(injection.action, at: injectionPoint)
    }
    injections.prepend(injection)
    setOutcome(injection.action, at: injectionPoint, serverTime: serverTime)
    if case .goAway(let parameters) = injection.followedBy { goAway = goAway ?? parameters }
  }

  /// Adds what an action does besides APNs' response: a delay, a changed response, a stopped window.
  private mutating func addSideEffect(_ action: Action, at injectionPoint: InjectionPoint) {
    switch action {
    case .delay(.fixed(let time)):
      delay += time
      if injectionPoint == .request { isDelayedBeforeAcceptance = true }
    case .starveWindow(let time): connectionActions.append(.starveWindow(for: time))
    default: mutation.add(action)
    }
  }

  /// Replaces APNs' response and decision by those of an action.
  private mutating func setOutcome(_ action: Action, at injectionPoint: InjectionPoint, serverTime: ServerTime) {
    if case .pass = action { return }
    isFaulted = true
    decidingAction = action
    let own = decision
    // At the injection point `response` the verdict is final, whatever the client learns of it.
    if injectionPoint == .request { decision = .notProcessed }
    switch action {
    case .respond(let injected):
      decision = HTTPStatus.isSuccess(injected.status) ? .accepted : .rejected
      response = Response(injected, serverTime: serverTime)
      blocksTokenUpdates = injected.blocksTokenUpdates
    case .hang(let time, let ending):
      delay += time ?? .zero
      if injectionPoint == .request { isDelayedBeforeAcceptance = true }
      if ending == .answer { decision = own }
    case .resetConnection(let afterAccepting): decision = afterAccepting ? own : .notProcessed
    case .goAway(let parameters):
      decision = parameters.lastStream == .beforeThis ? .notProcessed : own
      goAway = parameters
    case .loseResponse: decision = own
    case .resetStream(let code): if code == HTTP2ErrorCode.refusedStream.rawValue { decision = .notProcessed }
    case .close: break
    default:
      decision = own
      mutation.add(action)
    }
  }
}

extension FaultedExchange {
  /// The content of a response.
  struct Response {
    var status: Int
    /// A reason that APNs defines; nil for none.
    var reason: Reason?
    /// A reason that APNs does not define.
    var unusualReason: String?
    var body: [UInt8]
    var headers: [Action.Field] = []

    /// The response as rules see it.
    var traffic: Traffic.Response { Traffic.Response(status: status, reason: reasonText) }

    /// The reason in the body.
    var reasonText: String? { reason?.text ?? unusualReason }

    /// Creates APNs' own response.
    init(_ verdict: borrowing Verdict) {
      status = verdict.status
      reason = verdict.reason
      body = verdict.body
    }

    /// Creates a response that a rule injects.
    ///
    /// - Parameter serverTime: The time by the server's clock, in milliseconds since 1970.
    init(_ injected: Action.Response, serverTime: ServerTime) {
      status = injected.status
      headers = injected.headers(serverTime: serverTime)
      reason = injected.knownReason
      unusualReason = reason == nil ? injected.reason : nil
      body = injected.body(serverTime: serverTime)
    }
  }
}

extension FaultedExchange {
  /// Whether the exchange takes time, so that the push is pending until then.
  var takesTime: Bool {
    if case .hang = decidingAction { return true }
    return delay > .zero
  }

  /// Whether the push is forwarded to upstream, and its answer lost.
  var forwardsPush: Bool {
    if case .loseResponse = decidingAction { injections.first?.effect.forwards ?? false } else { false }
  }

  /// Whether APNs accepts the push.
  var isAccepted: Bool { decision == .accepted }

  /// How the exchange ends for the client; `pending` if the client receives nothing and has to give up.
  func ending(on stream: Int32, _ processed: ProcessedStreams) -> Ending {
    switch decidingAction {
    case .hang(_, .resetStream), .loseResponse(.resetStream): .reset
    case .resetStream(let code): code == HTTP2ErrorCode.refusedStream.rawValue ? .refused : .reset
    case .hang(_, .close), .loseResponse(.close), .close, .resetConnection: .disconnected
    case .hang(_, .nothing), .loseResponse(.nothing): .pending
    default: sendsResponse ? .response : .refused
    }
  }

  /// Whether the exchange ends the connection, or sends a GOAWAY.
  var mayEndConnection: Bool { goAway != nil || closeMethod != nil }

  /// Whether the client receives a response.
  var sendsResponse: Bool {
    switch decidingAction {
    case .hang(_, let ending): ending == .answer
    case .resetStream, .resetConnection, .close, .loseResponse: false
    case .goAway(let parameters): parameters.lastStream != .beforeThis
    default: true
    }
  }

  /// Whether the stream is refused with RST_STREAM, because the GOAWAY cannot exclude it.
  func isRefused(on stream: Int32, _ processed: ProcessedStreams) -> Bool {
    if case .goAway = decidingAction { !sendsResponse && processed.isOvertaken(stream) } else { false }
  }

  /// Returns the name of the RST_STREAM error code that ends the stream; nil without RST_STREAM.
  func resetName(on stream: Int32, _ processed: ProcessedStreams) -> String? {
    resetCode(on: stream, processed).map(HTTP2ErrorCode.name(of:))
  }

  /// The way the connection ends; nil if the push does not end it.
  var closeMethod: WireDetails.CloseMethod? {
    switch decidingAction {
    case .resetConnection: .reset
    case .close, .hang(_, .close), .loseResponse(.close): .fin
    default: nil
    }
  }
}

/// A push whose exchange is not finished: a fault delays it, or sends its response in parts over time.
struct DelayedPush {
  /// The push's stream, which is not reused until it is closed.
  let stream: RequestStream
  /// The decided exchange.
  let exchange: FaultedExchange
  /// The response header fields with their ids; nil for a status alone.
  let template: ResponseTemplates.Template?
  /// The keys by which the push's attempts are counted; nil if they were not counted.
  let attemptKey: AttemptKey?
  /// The number of the attempt.
  let attempt: Int32
  /// When the push arrived, in monotonic nanoseconds.
  let arrivedAt: MonotonicTime
  /// The push for its registered device; nil if its token is not registered.
  let delivery: AcceptedPush?
  /// The accepted broadcast or request of channel management; nil for a push.
  let channelExchange: ChannelExchange?
  /// The request that was forwarded to upstream, whose answer decides; nil for a push that a fault delays.
  var forwarded: UpstreamPush?
  /// The number of the push's record, once it is in the inbox; nil before, and if the record is already complete.
  var seq: Int?
  /// The number of parts of the response body not yet sent.
  var remainingParts = 0
  /// Whether the delay is over and nothing is said, so that the push stays pending until the client gives up.
  var isAbandoned = false
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
