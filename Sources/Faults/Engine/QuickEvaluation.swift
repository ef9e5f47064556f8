internal import APNSMockNotation
import APNSMockFaultModel
package import APNSMockRules
internal import Synchronization

extension Traffic {
  /// The facts about a push that the quick evaluation uses, which does not examine its fields.
  package struct PushSummary: Sendable {
    /// The key that identifies the push by its content.
    package let key: PushKey
    /// Whether APNs would accept the push.
    package let isAccepted: Bool
    /// What the request asks for.
    package let kind: RequestKind

    /// Creates a summary of a push.
    package init(key: PushKey, isAccepted: Bool, kind: RequestKind = .push) {
      self.key = key
      self.isAccepted = isAccepted
      self.kind = kind
    }

    init(_ push: Push) { self.init(key: push.key, isAccepted: push.verdict.isAccepted, kind: push.kind) }
  }
}

/// The reason why the quick evaluation skips a rule.
enum SkipReason {
  /// APNs rejects the push, and the rule applies only to accepted pushes.
  case rejectedByAPNs
  case count
  case probability
}

/// Counters of how often a rule was skipped. Atomic, because event loops update them without a lock for nearly every
/// push.
final class SkipCounters: Sendable {
  private let rejectedByAPNs = Atomic<Int>(0)
  private let count = Atomic<Int>(0)
  private let probability = Atomic<Int>(0)

  func add(_ reason: SkipReason) {
    switch reason {
    case .rejectedByAPNs: rejectedByAPNs.add(1, ordering: .relaxed)
    case .count: count.add(1, ordering: .relaxed)
    case .probability: probability.add(1, ordering: .relaxed)
    }
  }

  func reset() {
    rejectedByAPNs.store(0, ordering: .relaxed)
    count.store(0, ordering: .relaxed)
    probability.store(0, ordering: .relaxed)
  }

  /// Returns `counts` plus these counts.
  func added(to counts: RuleCounter.Count) -> RuleCounter.Count {
    var counts = counts
    let rejectedByAPNs = rejectedByAPNs.load(ordering: .relaxed)
    counts.rejectedByAPNs += rejectedByAPNs
    counts.evaluations += rejectedByAPNs
    for (part, number) in [
      (TriggerPart.count, count.load(ordering: .relaxed)), (.probability, probability.load(ordering: .relaxed)),
    ] {
      counts.stops[part.rawValue] += number
      counts.evaluations += number
    }
    return counts
  }
}

extension PreparedRule {
  /// The result of a rule's quick evaluation.
  enum QuickEvaluation {
    case skipped(SkipReason)
    /// The rule fires and ends the evaluation.
    case fires(Injection.DrawResult)
    /// The rule needs full evaluation.
    case unclear
  }

  /// Returns whether the quick evaluation can skip the rule: it has no condition, and no part of its trigger before
  /// the probability needs more than the push key and the attempt.
  static func supportsQuickEvaluation(_ rule: Rule) -> Bool {
    let trigger = rule.trigger
    return (rule.injectionPoint == .request || rule.injectionPoint == .response) && rule.condition == Condition()
      && trigger.afterStreams == nil && trigger.window == nil && trigger.overLimit == nil
      && (!trigger.isCounting || trigger.countKey == .push)
  }

  /// Runs the quick evaluation of the rule.
  ///
  /// - Parameter attempt: The attempt number of the push, from 1.
  func quickEvaluation(
    _ summary: Traffic.PushSummary, attempt: () -> Int, _ identity: Profile.PushIdentity, now: MonotonicTime
  ) -> QuickEvaluation {
    guard supportsQuickEvaluation else { return .unclear }
    if !summary.isAccepted, requiresAcceptance { return .skipped(.rejectedByAPNs) }
    let probability = rule.trigger.probability?.value(at: now &- activatedAt)
    var (draw, ordinal) = (Double?.none, 0)
    if let probability, probability > 0, probability < 1 {
      guard let key = rule.trigger.drawKey.ofContent(summary.key, identity) else { return .unclear }
      ordinal = rule.trigger.drawKey == .attempt ? attempt() : 0
      draw = Draw(drawSource, key: key, ordinal: ordinal).number
    }
    if let probability, draw ?? 0 >= probability { return .skipped(.probability) }
    if rule.trigger.isCounting, !rule.trigger.allows(attempt()) { return .skipped(.count) }
    return isQuickEvaluationConclusive
      ? .fires(Injection.DrawResult(draw: draw, probability: probability, ordinal: ordinal)) : .unclear
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

/// The result of the quick evaluation of the rules at an injection point: the rules that it did not skip, and whether the
/// first of them fires. It holds no references, because it is created for every push.
package struct QuickResult: Sendable {
  /// The index of the first remaining rule in the plan.
  var first = 0
  /// The number of remaining rules.
  var count = 0
  /// The draw with which the first remaining rule fires, if the quick evaluation was conclusive.
  var drawResult: Injection.DrawResult?

  /// Whether no rule does anything.
  package var isEmpty: Bool { count == 0 }
}
