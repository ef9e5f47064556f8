import APNSRules
import Faults
import HTTP2Session
import Inbox

/// What will happen to one push under the faults in force: decided in one go, done now or later. An object, because it is
/// large and handed on; once decided it does not change.
final class Course {
  /// How it ends for the client.
  enum End {
    /// It gets the answer.
    case answer
    /// It waits for the rest of the time and then this happens.
    case hang(Action.Ending)
    /// RST_STREAM with this error code.
    case resetStream(UInt32)
    /// TCP RST.
    case resetConnection
    /// FIN.
    case close
    /// GOAWAY; the push that triggered it is answered unless the frame says that it was not processed.
    case goAway(Action.GoAwayOrder)
    /// APNs took the push and the client never hears of it.
    case loseAnswer(Action.Ending)
  }

  // Unchecked at run time for overlapping access: no method holds one of these while it calls another.

  /// The rules that fired, the one that decided first.
  @exclusivity(unchecked) private(set) var injections: Injections = []
  /// Whether one of them holds the push back.
  @exclusivity(unchecked) private(set) var isHolding = false
  /// What goes out if an answer does.
  @exclusivity(unchecked) private(set) var answer: Answer
  /// Whether APNs takes the push.
  @exclusivity(unchecked) private(set) var isAccepted: Bool
  /// Whether a rule decided the end, and not APNs' rules.
  @exclusivity(unchecked) private(set) var isFaulted = false
  /// Before anything happens.
  @exclusivity(unchecked) private(set) var delay = Duration.zero
  /// It waits before APNs takes it, and not only before its answer.
  @exclusivity(unchecked) private(set) var waitsToBeTaken = false
  /// How the answer goes out.
  @exclusivity(unchecked) private(set) var shape = AnswerShape()
  @exclusivity(unchecked) private(set) var end = End.answer
  /// A GOAWAY after the answer.
  @exclusivity(unchecked) private(set) var followedBy: Action.GoAwayOrder?
  /// What happens to the connection besides.
  @exclusivity(unchecked) private(set) var effects: [ConnectionEffect] = []
  /// The standing of the connection's provider token is spoilt too.
  @exclusivity(unchecked) private(set) var latches = false

  /// What APNs would do.
  init(_ verdict: borrowing Verdict) {
    answer = Answer(verdict)
    isAccepted = verdict.isAccepted
  }

  /// Whether it takes time, so that the push is pending until then.
  var takesTime: Bool {
    if case .hang = end { return true }
    return delay > .zero
  }

  /// The request does not want to see the body of its answer.
  func leaveOutBody() { answer.body = [] }

  /// Works in what was decided at a moment.
  ///
  /// - Parameter now: the settable clock, in milliseconds since 1970.
  func follow(_ decision: Decision, at moment: Moment, now: Int64) {
    for injection in decision.additions {
      injections.append(injection)
      if injection.holds { isHolding = true }
      add(injection.action, at: moment)
    }
    guard let outcome = decision.outcome else { return }
    if outcome.holds { isHolding = true }
    // A rule may end the walk with something that only adds: then there is no outcome but APNs' own.
    guard outcome.action.name.continues != true else {
      injections.append(outcome)
      return add(outcome.action, at: moment)
    }
    injections.prepend(outcome)
    decide(outcome.action, at: moment, now: now)
    if case .goAway(let order) = outcome.followedBy { followedBy = order }
  }

  private func add(_ action: Action, at moment: Moment) {
    switch action {
    case .delay(.fixed(let time)):
      delay += time
      if moment == .request { waitsToBeTaken = true }
    case .starveWindow(let time): effects.append(.starveWindow(for: time))
    default: shape.add(action)
    }
  }

  private func decide(_ action: Action, at moment: Moment, now: Int64) {
    if case .pass = action { return }
    isFaulted = true
    // At the response APNs has made up its mind, whatever the client learns of it.
    if moment == .request { isAccepted = false }
    switch action {
    case .respond(let injected):
      isAccepted = injected.status == 200 && answer.status == 200
      answer = Answer(injected, now: now)
      latches = injected.latches
    case .hang(let time, let ending):
      delay += time ?? .zero
      if moment == .request { waitsToBeTaken = true }
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
    case .loseAnswer(let ending):
      isAccepted = answer.status == 200
      end = .loseAnswer(ending)
    default: shape.add(action)
    }
  }
}

extension Course {
  /// The content of an answer.
  struct Answer {
    var status: Int
    /// A reason that APNs has; nil for none.
    var reason: Reason?
    /// A reason that APNs has not.
    var unusualReason: String?
    var body: [UInt8]
    var headers: [Action.Field] = []

    /// The reason in its body.
    var reasonText: String? { reason?.text ?? unusualReason }

    /// What APNs answers.
    init(_ verdict: borrowing Verdict) {
      status = verdict.status
      reason = verdict.reason
      body = verdict.body
    }

    /// What a rule answers.
    init(_ injected: Action.Answer, now: Int64) {
      status = injected.status
      headers = injected.headers
      reason = injected.knownReason
      unusualReason = reason == nil ? injected.reason : nil
      body = injected.body(now: now)
    }
  }
}

/// What a record tells of it.
extension Course {
  /// Whether the client gets an answer.
  var isAnswered: Bool {
    switch end {
    case .answer, .hang(.answer): true
    case .goAway(let order): order.lastStream != .beforeThis
    default: false
    }
  }

  /// The name of the error code of the RST_STREAM that ends it.
  var resetName: String? {
    switch end {
    case .resetStream(let code): HTTP2ErrorCode.name(of: code)
    case .hang(.resetStream), .loseAnswer(.resetStream): HTTP2ErrorCode.internalError.name
    default: nil
    }
  }

  /// The GOAWAY that goes out.
  var goAway: Action.GoAwayOrder? {
    if case .goAway(let order) = end { return order }
    return followedBy
  }

  /// How the connection ends.
  var closing: Aftermath.Closing? {
    switch end {
    case .resetConnection: .reset
    case .close, .hang(.close), .loseAnswer(.close): .fin
    default: nil
    }
  }
}
