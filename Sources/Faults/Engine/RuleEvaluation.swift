internal import APNSMockNotation
import APNSMockFaultModel
import APNSMockRules

/// The parts of a trigger that can keep a rule from firing after its condition holds, in the order they are checked.
enum TriggerPart: Int, CaseIterable, Error {
  case afterStreams, window
  /// At `connection`, a rule can fire once per connection, or once per opening of its window.
  case once
  case count, overLimit, probability, times
  /// The sequence is complete and ends with `pass`.
  case sequence
  case maxActive
  /// The profile's limit.
  case profileMaxActive

  /// The key or keys in a profile file.
  var name: String {
    switch self {
    case .afterStreams: Trigger.schema.name(of: \.afterStreams)
    case .window: Trigger.schema.name(of: \.window)
    case .once: "once per connection"
    case .count: [\Trigger.first, \.after, \.every].map(Trigger.schema.name).joined(separator: ", ")
    case .overLimit: Trigger.schema.name(of: \.overLimit)
    case .probability: Trigger.schema.name(of: \.probability)
    case .times: Trigger.schema.name(of: \.times)
    case .sequence: Action.Name.sequence.rawValue
    case .maxActive: Trigger.schema.name(of: \.maxActive)
    case .profileMaxActive: "limits.\(Trigger.schema.name(of: \.maxActive))"
    }
  }
}

/// The result of evaluating a rule for a push or a connection, before anything is counted.
enum RuleEvaluation {
  /// APNs rejects the push, and the rule applies only to accepted pushes.
  case rejectedByAPNs
  case missed(PreparedCondition.Miss)
  case stopped(TriggerPart)
  case matched(MatchedRule)
}

/// A rule whose condition holds, with everything needed to check the rest of its trigger.
struct MatchedRule {
  /// The time at which the window opened, in monotonic nanoseconds; without a window, the time of activation.
  let opening: MonotonicTime
  var countKey = 0
  var rateKey = 0
  /// Nil without a probability.
  let probability: Double?
  /// Nil if nothing was drawn.
  var draw: Double?
  var drawKey = Draw.Key.text("")
  var ordinal = 0
  let now: MonotonicTime

  init(opening: MonotonicTime, probability: Double?, now: MonotonicTime) {
    self.opening = opening
    self.probability = probability
    self.now = now
  }

  /// Whether firing depends on a draw.
  var isDrawn: Bool { probability.map { $0 > 0 && $0 < 1 } ?? false }

  /// Whether the probability allows firing.
  var passesDraw: Bool {
    guard let probability else { return true }
    return draw.map { $0 < probability } ?? (probability > 0)
  }

  /// The draw as an injection has it.
  var drawResult: Injection.DrawResult {
    Injection.DrawResult(draw: draw, probability: probability, ordinal: ordinal)
  }
}

extension PreparedRule {
  /// Evaluates the rule for a push whose request is not examined; returns nil if that is not enough. Nearly all pushes
  /// that a rule with a probability does not affect are evaluated here, without a lock and without an allocation.
  ///
  /// - Parameter attempt: Returns the attempt number of the push, from 1; called only if the rule depends on it.
  func evaluate(
    _ push: Traffic.PushSummary, _ identity: Profile.PushIdentity, attempt: () -> Int, now: MonotonicTime
  ) -> RuleEvaluation? {
    guard !needsTraffic else { return nil }
    if !push.isAccepted, requiresAcceptance { return .rejectedByAPNs }
    let trigger = rule.trigger
    var match = MatchedRule(
      opening: activatedAt, probability: trigger.probability?.value(at: now &- activatedAt), now: now)
    if match.isDrawn {
      guard let key = trigger.drawKey.ofContent(push.key, identity) else { return nil }
      match.ordinal = trigger.drawKey == .attempt ? attempt() : 0
      match.draw = Draw(drawSource, key: key, ordinal: match.ordinal).number
    }
    if !match.passesDraw { return .stopped(.probability) }
    if trigger.isCounting, !trigger.allows(attempt()) { return .stopped(.count) }
    return isConstant ? .matched(match) : nil
  }

  /// Evaluates the rule for a push or a connection.
  func evaluate(_ context: inout EvaluationContext, now: MonotonicTime) -> RuleEvaluation {
    if let push = context.traffic.push, !push.verdict.isAccepted, requiresAcceptance { return .rejectedByAPNs }
    if let miss = condition.firstFailure(&context) { return .missed(miss) }
    let trigger = rule.trigger
    if let streams = trigger.afterStreams, context.traffic.connection.streamsOpened < streams {
      return .stopped(.afterStreams)
    }
    var opening: MonotonicTime = 0
    let elapsed = now &- activatedAt
    if let window = trigger.window {
      guard let begin = window.opening(at: elapsed) else { return .stopped(.window) }
      opening = begin
    }
    var match = MatchedRule(
      opening: activatedAt &+ opening, probability: trigger.probability?.value(at: elapsed), now: now)
    if trigger.isCounting || trigger.times != nil { match.countKey = context.hash(of: trigger.countKey) }
    if let key = trigger.overLimit?.key { match.rateKey = context.hash(of: key) }
    guard match.isDrawn || drawsForAction else { return .matched(match) }
    match.drawKey = context.drawKey(of: trigger.drawKey)
    if trigger.drawKey == .attempt {
      // Without a push, each opening of the window counts as an attempt.
      match.ordinal = context.traffic.push?.attempt ?? trigger.window?.ordinal(of: opening) ?? 0
    }
    if match.isDrawn { match.draw = Draw(drawSource, key: match.drawKey, ordinal: match.ordinal).number }
    return .matched(match)
  }
}

extension Trigger.Key {
  /// Returns the key of a draw if it follows from the push key alone; otherwise nil.
  func ofContent(_ push: PushKey, _ identity: Profile.PushIdentity) -> Draw.Key? {
    switch self {
    case .rule: .text("")
    case .attempt where identity == .content, .push where identity == .content: .push(push)
    default: nil
    }
  }
}
