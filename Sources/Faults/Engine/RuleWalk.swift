/// What a rule says to some traffic when nothing is counted: why it may fire, or why it does not.
public struct RuleStep: Sendable, Equatable {
  /// How far it got.
  public enum Result: Sendable, Equatable {
    /// It was put in force later.
    case notYet
    /// APNs itself rejects the push, and the rule is not for such pushes.
    case rejectedByAPNs
    /// A test of its condition does not hold: what was looked at, what it must be, what it was.
    case missed(test: String, wanted: String, seen: String?)
    /// An exception of its condition holds.
    case excepted
    /// Its condition holds; this part of its trigger does not.
    case stopped(part: String)
    /// Its condition holds, and what was drawn is not below the probability.
    case notDrawn(draw: Double?, probability: Double)
    /// It may fire, as far as can be said without counting.
    case mayFire(draw: Double?, probability: Double?)
  }

  /// The rule's name.
  public let rule: String
  /// The profile it is of; nil for an ad-hoc rule.
  public let profile: String?
  /// When it looks.
  public let moment: Moment
  /// How far it got.
  public let result: Result
}

extension FaultPlan {
  /// What each rule of a moment says to some traffic, in the order they are looked at. Nothing is counted and nothing is
  /// done, so counters and rate limits are left out.
  ///
  /// - Parameter now: monotonic nanoseconds, of when it happened.
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
