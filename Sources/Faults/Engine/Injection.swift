/// One rule that fired, and what it does.
public struct Injection: Sendable, Equatable {
  /// What a rule does. An object, which all injections of a rule share as far as it does the same each time: the inbox
  /// keeps them.
  final class Deed: Sendable, Equatable {
    let profile: String?
    let rule: String
    let action: Action
    let followedBy: Action?
    let continues: Bool
    let slot: Int?
    /// Its answer, if that is all it does.
    let plainAnswer: PlainAnswer?

    init(profile: String?, rule: String, action: Action, followedBy: Action? = nil, continues: Bool, slot: Int?) {
      self.profile = profile
      self.rule = rule
      self.action = action
      self.followedBy = followedBy
      self.continues = continues
      self.slot = slot
      plainAnswer = continues || followedBy != nil ? nil : action.plainAnswer
    }

    /// - Parameter action: what is left of the rule's action.
    convenience init(_ rule: Rule, profile: String?, doing action: Action, slot: Int) {
      self.init(
        profile: profile, rule: rule.name, action: action,
        continues: rule.continues ?? action.name.continues ?? false, slot: slot)
    }

    static func == (one: Deed, other: Deed) -> Bool {
      one === other
        || one.profile == other.profile && one.rule == other.rule && one.action == other.action
          && one.followedBy == other.followedBy && one.continues == other.continues && one.slot == other.slot
    }
  }

  /// Why it fired.
  struct Chance: Sendable, Equatable {
    var draw: Double?
    var probability: Double?
    var ordinal = 0
  }

  let deed: Deed
  let chance: Chance

  init(_ deed: Deed, _ chance: Chance) {
    self.deed = deed
    self.chance = chance
  }

  package init(
    profile: String? = nil, rule: String, action: Action, followedBy: Action? = nil, continues: Bool,
    draw: Double? = nil, probability: Double? = nil, ordinal: Int = 0
  ) {
    self.init(
      Deed(profile: profile, rule: rule, action: action, followedBy: followedBy, continues: continues, slot: nil),
      Chance(draw: draw, probability: probability, ordinal: ordinal))
  }

  /// The profile it is of; nil for ad-hoc rules and magic device tokens.
  public var profile: String? { deed.profile }
  /// The rule's name; `magic-` and the code for a magic device token.
  public var rule: String { deed.rule }
  /// What is done: never `choose` or `sequence`, delays always of a fixed length, within the profile's limits.
  public var action: Action { deed.action }
  /// What is done right after it: the GOAWAY that follows a 503 `Shutdown` of a magic device token.
  public var followedBy: Action? { deed.followedBy }
  /// Whether the rules after it were looked at.
  public var continues: Bool { deed.continues }
  /// The number that was drawn, at least 0 and below `probability`; nil when nothing was drawn.
  public var draw: Double? { chance.draw }
  /// How likely it was; nil for a rule without a probability.
  public var probability: Double? { chance.probability }
  /// Of the draw: the attempt number, or 0.
  public var ordinal: Int { chance.ordinal }
  /// The rule's counters, to which a held push is given back.
  var slot: Int? { deed.slot }

  /// The same rule doing something else: what a connection that is being drained does to each push.
  public func doing(_ action: Action) -> Injection {
    Injection(
      profile: profile, rule: rule, action: action, continues: false, draw: draw, probability: probability,
      ordinal: ordinal)
  }

  /// Whether it holds the push back, so that it counts against `max_active` until `Tallies.release`.
  public var holds: Bool { action.holds }
}

extension Action {
  /// Whether it holds a push back for a time.
  var holds: Bool {
    switch self {
    case .delay, .hang: true
    default: false
    }
  }
}

/// What the rules do at one moment.
public struct Decision: Sendable, Equatable {
  /// What is added to whatever happens, in the order of the rules.
  public var additions: [Injection] = []
  /// What happens instead; nil for what APNs would do. With the action `pass` a rule asked for just that.
  public var outcome: Injection?

  /// Adds nothing.
  ///
  /// - Parameter outcome: what happens instead; nil for what APNs would do.
  public init(outcome: Injection? = nil) { self.outcome = outcome }

  /// Whether nothing is done.
  public var isEmpty: Bool { additions.isEmpty && outcome == nil }
}
