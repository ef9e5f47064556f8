/// One fault: at which moment, for which traffic, how often, what is done, and whether later rules are looked at.
public struct Rule: Sendable, Equatable {
  /// Before or after APNs' own verdict.
  public enum Stage: String, CaseIterable, Sendable {
    /// Only pushes that APNs would accept meet the rule: a fault never hides a malformed push.
    case afterValidation = "after_validation"
    /// Every push meets it, as in an outage.
    case beforeValidation = "before_validation"
  }

  /// Its name, the only one of its kind in a profile.
  public var name: String
  /// The word `at`.
  public var moment: Moment
  /// The word `when`; the empty condition holds for everything.
  public var condition: Condition
  /// The word `trigger`; the empty trigger fires each time.
  public var trigger: Trigger
  /// The word `do`.
  public var action: Action
  /// The word `then`: whether the rules after it are looked at when it has fired; nil for as the action has it.
  public var continues: Bool?
  /// The word `stage`.
  public var stage: Stage

  /// A rule.
  public init(
    name: String, moment: Moment = .request, condition: Condition = Condition(), trigger: Trigger = Trigger(),
    action: Action, continues: Bool? = nil, stage: Stage = .afterValidation
  ) {
    self.name = name
    self.moment = moment
    self.condition = condition
    self.trigger = trigger
    self.action = action
    self.continues = continues
    self.stage = stage
  }
}
