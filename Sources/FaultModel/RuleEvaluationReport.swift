/// The result of evaluating a rule without counting: why it may fire, or why it does not.
package struct RuleEvaluationReport: Sendable, Equatable {
  /// The outcome of the evaluation.
  package enum Outcome: Sendable, Equatable {
    /// The rule was activated later.
    case activatedLater
    /// APNs rejects the push, and the rule applies only to accepted pushes.
    case rejectedByAPNs
    /// A test of the condition failed: its subject, the required value and the actual value.
    case missed(test: String, wanted: String, seen: String?)
    /// An exception of the condition holds.
    case excepted
    /// The condition holds, but this part of the trigger prevents firing.
    case stopped(part: String)
    /// The condition holds, but the draw is not below the probability.
    case notDrawn(draw: Double?, probability: Double)
    /// The rule may fire; counters were not checked.
    case mayFire(draw: Double?, probability: Double?)
  }

  /// The rule's name.
  package let rule: String
  /// The profile that the rule belongs to; nil for an added rule.
  package let profile: String?
  /// The rule's injection point.
  package let injectionPoint: InjectionPoint
  /// The outcome of the evaluation.
  package let outcome: Outcome

  package init(rule: String, profile: String?, injectionPoint: InjectionPoint, outcome: Outcome) {
    self.rule = rule
    self.profile = profile
    self.injectionPoint = injectionPoint
    self.outcome = outcome
  }
}
