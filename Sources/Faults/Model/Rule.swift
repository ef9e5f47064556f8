/// One fault: its injection point, the traffic it applies to, how often it fires, its action, and whether evaluation
/// continues with later rules.
public struct Rule: Sendable, Equatable {
  /// Whether a rule applies before or after APNs' own validation.
  public enum Stage: String, CaseIterable, Sendable {
    /// The rule applies only to pushes that APNs would accept: a fault never hides a malformed push.
    case afterValidation = "after_validation"
    /// The rule applies to every push, as in an outage.
    case beforeValidation = "before_validation"
  }

  /// The name, unique within a profile.
  public var name: String
  /// The injection point: `at` in a profile file.
  public var moment: Moment
  /// The traffic that the rule applies to: `when` in a profile file. An empty condition holds for all traffic.
  public var condition: Condition
  /// How often the rule fires: `trigger` in a profile file. An empty trigger always fires.
  public var trigger: Trigger
  /// The action: `do` in a profile file.
  public var action: Action
  /// Whether evaluation continues with later rules after this rule fired: `then` in a profile file. Nil for the
  /// action's default.
  public var continues: Bool?
  /// Whether the rule also applies to pushes that APNs would reject: `stage` in a profile file.
  public var stage: Stage

  /// Creates a rule.
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
