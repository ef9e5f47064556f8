import APNSRules
import FaultModel
import Faults
import HTTP2Session
import Inbox

/// The result of applying the active fault rules to one push: its response, its delay and its end. It is complete
/// before it is performed, immediately or later, and does not change then. A class because it is large.
final class FaultedExchange {
  /// The end of the exchange for the client.
  enum End {
    /// The response is sent.
    case answer
    /// The push waits, then this ending follows.
    case hang(Action.Ending)
    /// RST_STREAM with this error code.
    case resetStream(UInt32)
    /// TCP RST.
    case resetConnection
    /// FIN.
    case close
    /// GOAWAY. The push that triggered it is answered unless the frame excludes its stream.
    case goAway(Action.GoAwayParameters)
    /// The push is accepted, but the client receives no response.
    case loseResponse(Action.Ending)
  }

  // Exclusivity is unchecked at run time: no method accesses one of these properties while it calls another.

  /// The rules that fired, the one that decided the outcome first.
  @exclusivity(unchecked) private(set) var injections: Injections = []
  /// Whether one of the rules delays the push.
  @exclusivity(unchecked) private(set) var isHolding = false
  /// The response, if one is sent.
  @exclusivity(unchecked) private(set) var answer: Answer
  /// Whether the push is accepted.
  @exclusivity(unchecked) private(set) var isAccepted: Bool
  /// Whether a rule decided the outcome, rather than the APNs rules.
  @exclusivity(unchecked) private(set) var isFaulted = false
  /// The delay before the exchange ends.
  @exclusivity(unchecked) private(set) var delay = Duration.zero
  /// Whether the delay precedes the acceptance of the push, not only its response.
  @exclusivity(unchecked) private(set) var isDelayedBeforeAcceptance = false
  /// The changes to the response.
  @exclusivity(unchecked) private(set) var mutation = ResponseMutation()
  @exclusivity(unchecked) private(set) var end = End.answer
  /// The GOAWAY that follows the response.
  @exclusivity(unchecked) private(set) var followedBy: Action.GoAwayParameters?
  /// Further actions on the connection.
  @exclusivity(unchecked) private(set) var connectionActions: [ConnectionAction] = []
  /// Whether the connection responds with 429 `TooManyProviderTokenUpdates` until the update interval has passed.
  @exclusivity(unchecked) private(set) var repeatsUntilUpdateInterval = false

  /// Creates an exchange that follows the APNs rules' verdict.
  init(_ verdict: borrowing Verdict) {
    answer = Answer(verdict)
    isAccepted = verdict.isAccepted
  }

  /// Whether the exchange takes time, so that the push is pending until then.
  var takesTime: Bool {
    if case .hang = end { return true }
    return delay > .zero
  }

  /// Removes the body of the response, for a HEAD request.
  func leaveOutBody() { answer.body = [] }

  /// Merges the decision of an injection point into the exchange.
  ///
  /// - Parameter now: The server clock, in milliseconds since 1970.
  func follow(_ decision: Decision, at injectionPoint: InjectionPoint, now: Int64) {
    for injection in decision.additions {
      injections.append(injection)
      if injection.holds { isHolding = true }
      add(injection.action, at: injectionPoint)
    }
    guard let outcome = decision.outcome else { return }
    if outcome.holds { isHolding = true }
    // A rule may end the evaluation with an action that only adds something: then APNs' verdict is the outcome.
    guard outcome.action.name.continues != true else {
      injections.append(outcome)
      return add(outcome.action, at: injectionPoint)
    }
    injections.prepend(outcome)
    decide(outcome.action, at: injectionPoint, now: now)
    if case .goAway(let order) = outcome.followedBy { followedBy = order }
  }

  private func add(_ action: Action, at injectionPoint: InjectionPoint) {
    switch action {
    case .delay(.fixed(let time)):
      delay += time
      if injectionPoint == .request { isDelayedBeforeAcceptance = true }
    case .starveWindow(let time): connectionActions.append(.starveWindow(for: time))
    default: mutation.add(action)
    }
  }

  private func decide(_ action: Action, at injectionPoint: InjectionPoint, now: Int64) {
    if case .pass = action { return }
    isFaulted = true
    // At the injection point `response` the verdict is final, whatever the client learns of it.
    if injectionPoint == .request { isAccepted = false }
    switch action {
    case .respond(let injected):
      isAccepted = injected.status == 200 && answer.status == 200
      answer = Answer(injected, now: now)
      repeatsUntilUpdateInterval = injected.repeatsUntilUpdateInterval
    case .hang(let time, let ending):
      delay += time ?? .zero
      if injectionPoint == .request { isDelayedBeforeAcceptance = true }
      if ending == .answer { isAccepted = answer.status == 200 }
      end = .hang(ending)
    case .resetStream(let code): end = .resetStream(code)
    case .resetConnection(let afterAccepting):
      isAccepted = afterAccepting && answer.status == 200
      end = .resetConnection
    case .close: end = .close
    case .goAway(let order):
      isAccepted = answer.status == 200 && order.lastStream != .beforeThis
      end = .goAway(order)
    case .loseResponse(let ending):
      isAccepted = answer.status == 200
      end = .loseResponse(ending)
    default: mutation.add(action)
    }
  }
}

extension FaultedExchange {
  /// The content of a response.
  struct Answer {
    var status: Int
    /// A reason that APNs defines; nil for none.
    var reason: Reason?
    /// A reason that APNs does not define.
    var unusualReason: String?
    var body: [UInt8]
    var headers: [Action.Field] = []

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
    /// - Parameter now: The server clock, in milliseconds since 1970.
    init(_ injected: Action.Answer, now: Int64) {
      status = injected.status
      headers = injected.headers
      reason = injected.knownReason
      unusualReason = reason == nil ? injected.reason : nil
      body = injected.body(now: now)
    }
  }
}

/// Facts for the push's record.
extension FaultedExchange {
  /// Whether the client receives a response.
  var isAnswered: Bool {
    switch end {
    case .answer, .hang(.answer): true
    case .goAway(let order): order.lastStream != .beforeThis
    default: false
    }
  }

  /// The name of the RST_STREAM error code that ends the stream; nil without RST_STREAM.
  var resetName: String? {
    switch end {
    case .resetStream(let code): HTTP2ErrorCode.name(of: code)
    case .hang(.resetStream), .loseResponse(.resetStream): HTTP2ErrorCode.internalError.name
    default: nil
    }
  }

  /// The GOAWAY that is sent; nil for none.
  var goAway: Action.GoAwayParameters? {
    if case .goAway(let order) = end { return order }
    return followedBy
  }

  /// The way the connection ends; nil if the push does not end it.
  var closing: WireOutcome.Closing? {
    switch end {
    case .resetConnection: .reset
    case .close, .hang(.close), .loseResponse(.close): .fin
    default: nil
    }
  }
}

/// An action on a whole connection, caused by a push, a rule or a command over the admin API.
enum ConnectionAction {
  /// Send GOAWAY for this reason, then close.
  case leave(ConnectionCloseReason)
  /// Send GOAWAY with this last stream.
  case goAway(Action.GoAwayParameters, lastStream: Int32)
  /// Send FIN without GOAWAY.
  case close
  /// Reset the TCP connection.
  case reset
  /// Send no WINDOW_UPDATE for a time; nil for ever.
  case starveWindow(for: Duration?)
  /// Do not acknowledge PING frames for a time; nil for ever.
  case ignorePings(for: Duration?)
  /// Process and send nothing for a time, then close; nil for ever.
  case silence(for: Duration?)
  /// Announce other SETTINGS.
  case announce(Action.SettingsParameters)
  /// Answer every push with an injected response for a time, then shut down the connection.
  case drain(Injection, for: Duration)
  /// Continue a delayed push after a time.
  case wake(stream: Int32, after: Duration)
}

/// A push whose exchange is not finished: a fault delays it, or sends its response piece by piece.
struct DelayedPush {
  /// The push's stream, which is not reused until it is closed.
  let stream: RequestStream
  /// The decided exchange.
  let exchange: FaultedExchange
  /// The response header fields with their ids; nil if there is no response.
  let answer: AnswerTemplates.Template?
  /// The key by which the push's attempts are counted; nil if they were not counted.
  let countKey: PushKey?
  /// When the push was received, in monotonic nanoseconds.
  let began: Int64
  /// The number of the push's record, once it is in the inbox; nil before, and if the record is already complete.
  var seq: Int?
  /// The number of pieces of the response body not yet sent.
  var piecesLeft = 0
}
