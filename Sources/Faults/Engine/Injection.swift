/// A rule that fired, with the action to carry out.
public struct Injection: Sendable, Equatable {
  /// The effect of a rule. A class, because the inbox keeps injections: those from the quick evaluation of a rule
  /// share one instance.
  final class Deed: Sendable, Equatable {
    let profile: String?
    let rule: String
    let action: Action
    let followedBy: Action?
    let continues: Bool
    let slot: Int?
    /// The response, if the effect is nothing else.
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

    /// - Parameter action: the resolved action.
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

  /// The draw that made the rule fire.
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

  /// The profile that the rule belongs to; nil for ad-hoc rules and magic device tokens.
  public var profile: String? { deed.profile }
  /// The rule's name; for a magic device token, `magic-` and its code.
  public var rule: String { deed.rule }
  /// The resolved action: never `choose` or `sequence`; delays have a fixed length within the profile's limits.
  public var action: Action { deed.action }
  /// The action that follows immediately: the GOAWAY after a 503 `Shutdown` of a magic device token.
  public var followedBy: Action? { deed.followedBy }
  /// Whether evaluation continued with later rules.
  public var continues: Bool { deed.continues }
  /// The number drawn, at least 0 and below `probability`; nil if nothing was drawn.
  public var draw: Double? { chance.draw }
  /// The probability; nil for a rule without one.
  public var probability: Double? { chance.probability }
  /// The ordinal of the draw: the attempt number, or 0.
  public var ordinal: Int { chance.ordinal }
  /// The key of the rule's counters, for `Tallies.release`.
  var slot: Int? { deed.slot }

  /// Returns the same injection with another action, for the pushes on a connection that is draining.
  public func doing(_ action: Action) -> Injection {
    Injection(
      profile: profile, rule: rule, action: action, continues: false, draw: draw, probability: probability,
      ordinal: ordinal)
  }

  /// Whether the injection holds the push, so that it counts towards `max_active` until `Tallies.release`.
  public var holds: Bool { action.holds }
}

extension Action {
  /// Whether the action holds a push for a time.
  var holds: Bool {
    switch self {
    case .delay, .hang: true
    default: false
    }
  }
}

/// The injections at one injection point.
public struct Decision: Sendable, Equatable {
  /// Changes that are applied to any outcome, in the order of the rules.
  public var additions: [Injection] = []
  /// The injection that replaces what APNs would do; nil for none. With the action `pass`, a rule asked for what
  /// APNs would do.
  public var outcome: Injection?

  /// Creates a decision without additions.
  ///
  /// - Parameter outcome: the injection that replaces what APNs would do; nil for none.
  public init(outcome: Injection? = nil) { self.outcome = outcome }

  /// Whether the decision changes nothing.
  public var isEmpty: Bool { additions.isEmpty && outcome == nil }
}
