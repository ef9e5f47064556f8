/// A rule that fired, with the action to carry out.
package struct Injection: Sendable, Equatable {
  /// The effect of a rule. A class, because the inbox keeps injections: those from the quick evaluation of a rule
  /// share one instance.
  final class RuleEffect: Sendable, Equatable {
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

    static func == (one: RuleEffect, other: RuleEffect) -> Bool {
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

  let effect: RuleEffect
  let chance: Chance

  init(_ effect: RuleEffect, _ chance: Chance) {
    self.effect = effect
    self.chance = chance
  }

  package init(
    profile: String? = nil, rule: String, action: Action, followedBy: Action? = nil, continues: Bool,
    draw: Double? = nil, probability: Double? = nil, ordinal: Int = 0
  ) {
    self.init(
      RuleEffect(profile: profile, rule: rule, action: action, followedBy: followedBy, continues: continues, slot: nil),
      Chance(draw: draw, probability: probability, ordinal: ordinal))
  }

  /// The profile that the rule belongs to; nil for ad-hoc rules and magic device tokens.
  package var profile: String? { effect.profile }
  /// The rule's name; for a magic device token, `magic-` and its code.
  package var rule: String { effect.rule }
  /// The resolved action: never `choose` or `sequence`; delays have a fixed length within the profile's limits.
  package var action: Action { effect.action }
  /// The action that follows immediately: the GOAWAY after a 503 `Shutdown` of a magic device token.
  package var followedBy: Action? { effect.followedBy }
  /// Whether evaluation continued with later rules.
  package var continues: Bool { effect.continues }
  /// The number drawn, at least 0 and below `probability`; nil if nothing was drawn.
  package var draw: Double? { chance.draw }
  /// The probability; nil for a rule without one.
  package var probability: Double? { chance.probability }
  /// The ordinal of the draw: the attempt number, or 0.
  package var ordinal: Int { chance.ordinal }
  /// The key of the rule's counters, for `RuleCounters.release`.
  var slot: Int? { effect.slot }

  /// Returns the same injection with another action, for the pushes on a connection that is draining.
  package func doing(_ action: Action) -> Injection {
    Injection(
      profile: profile, rule: rule, action: action, continues: false, draw: draw, probability: probability,
      ordinal: ordinal)
  }

  /// Whether the injection holds the push, so that it counts towards `max_active` until `RuleCounters.release`.
  package var holds: Bool { action.holds }
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
package struct Decision: Sendable, Equatable {
  /// Changes that are applied to any outcome, in the order of the rules.
  package var additions: [Injection] = []
  /// The injection that replaces what APNs would do; nil for none. With the action `pass`, a rule asked for what
  /// APNs would do.
  package var outcome: Injection?

  /// Creates a decision without additions.
  ///
  /// - Parameter outcome: the injection that replaces what APNs would do; nil for none.
  package init(outcome: Injection? = nil) { self.outcome = outcome }

  /// Whether the decision changes nothing.
  package var isEmpty: Bool { additions.isEmpty && outcome == nil }
}

/// The injections for one push, beginning with the one that decided the outcome, if any. A single injection, the
/// usual case, needs no array.
package struct Injections: Sendable, Equatable, RandomAccessCollection, ExpressibleByArrayLiteral {
  // Stored in parts, because the runtime copies an optional of the whole far more slowly.
  private var effect: Injection.RuleEffect?
  private var chance = Injection.Chance()
  private var others: [Injection] = []

  private var one: Injection? { effect.map { Injection($0, chance) } }

  /// Creates a collection of one injection.
  package init(_ injection: Injection) { begin(with: injection) }

  /// Creates a collection with the injections in the given order.
  package init(_ injections: some Sequence<Injection>) {
    for injection in injections { append(injection) }
  }

  /// Creates a collection with the injections in the given order.
  package init(arrayLiteral injections: Injection...) { self.init(injections) }

  /// 0.
  package var startIndex: Int { 0 }
  /// The number of injections.
  package var endIndex: Int { effect == nil ? 0 : others.count + 1 }

  /// The injection at `position`, from 0.
  package subscript(position: Int) -> Injection {
    if position == 0, let one { return one }
    return others[position - 1]
  }

  /// Appends an injection.
  package mutating func append(_ injection: Injection) {
    if effect == nil { begin(with: injection) } else { others.append(injection) }
  }

  /// Inserts the deciding injection at the front.
  package mutating func prepend(_ injection: Injection) {
    if let one { others.insert(one, at: 0) }
    begin(with: injection)
  }

  private mutating func begin(with injection: Injection) {
    effect = injection.effect
    chance = injection.chance
  }
}

/// The number of injections per rule and action since the server started. Resets and changes of rules do not affect
/// it.
struct InjectionCounts: Sendable {
  /// A rule and the action it carried out.
  struct Key: Hashable, Sendable {
    var rule: String
    var action: Action.Name
  }

  /// The maximum number of keys counted separately; further ones are counted under the rule name `other`.
  static let limit = 200

  private var places: [Key: Int] = [:]
  private var counts: [(key: Key, count: Int)] = []

  /// All counts, unordered.
  var all: [(key: Key, count: Int)] { counts }

  /// Counts an injection.
  ///
  /// - Returns: the index of its count, for `add(at:)`.
  mutating func add(_ injection: Injection) -> Int {
    var key = Key(rule: injection.rule, action: injection.action.name)
    if counts.count >= Self.limit, places[key] == nil { key.rule = "other" }
    if let place = places[key] {
      counts[place].count += 1
      return place
    }
    places[key] = counts.count
    counts.append((key, 1))
    return counts.count - 1
  }

  /// Counts another injection of the same rule and action.
  mutating func add(at place: Int) { counts[place].count += 1 }
}

/// An injection as records store it: without a strong reference, so that it can be copied and discarded as plain
/// bytes.
///
/// The owner must keep `referent` alive for as long as the value is used.
package struct PackedInjection: Sendable {
  private let effect: Unmanaged<Injection.RuleEffect>
  private let chance: Injection.Chance

  /// Packs an injection.
  package init(_ injection: borrowing Injection) {
    effect = .passUnretained(injection.effect)
    chance = injection.chance
  }

  /// The injection.
  package var injection: Injection { Injection(effect.takeUnretainedValue(), chance) }

  /// The object that the owner must keep alive.
  package var referent: Unmanaged<AnyObject> { .fromOpaque(effect.toOpaque()) }
}
