/// The result of evaluating a rule without counting: why it may fire, or why it does not.
public struct RuleStep: Sendable, Equatable {
  /// The outcome of the evaluation.
  public enum Result: Sendable, Equatable {
    /// The rule was activated later.
    case notYet
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
  public let rule: String
  /// The profile that the rule belongs to; nil for an ad-hoc rule.
  public let profile: String?
  /// The rule's injection point.
  public let moment: Moment
  /// The outcome of the evaluation.
  public let result: Result
}

extension FaultPlan {
  /// Evaluates each rule of an injection point in order, without counting or injecting anything. Counts and rate
  /// limits are not checked.
  ///
  /// - Parameter now: the time of the traffic, in monotonic nanoseconds.
  public func walk(_ traffic: Traffic, at moment: Moment, now: Int64) -> [RuleStep] {
    var reading = Reading(traffic, identity: profile.pushIdentity)
    return rules(at: moment).map { rule in
      let result =
        now < rule.activatedAt ? .notYet : RuleStep.Result(look(at: rule, &reading, now: now), of: rule.rule)
      return RuleStep(rule: rule.rule.name, profile: rule.profile, moment: moment, result: result)
    }
  }
}

extension RuleStep.Result {
  fileprivate init(_ look: RuleLook, of rule: Rule) {
    switch look {
    case .refused: self = .rejectedByAPNs
    case .missed(.exception): self = .excepted
    case .missed(.test(let index, let seen)):
      let test = rule.condition.tests[index]
      self = .missed(test: test.name, wanted: test.wanted, seen: seen?.shown)
    case .stopped(let part): self = .stopped(part: part.name)
    case .met(let candidate):
      if let probability = candidate.probability, !candidate.isDrawn {
        self = .notDrawn(draw: candidate.draw, probability: probability)
      } else {
        self = .mayFire(draw: candidate.draw, probability: candidate.probability)
      }
    }
  }
}
