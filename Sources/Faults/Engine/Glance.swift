public import APNSRules
internal import Synchronization

extension Traffic {
  /// What is known of every push before anybody looks into it.
  public struct Glance: Sendable {
    /// What tells it from other pushes by its content.
    public let key: PushKey
    /// Whether APNs would take it.
    public let isAccepted: Bool

    /// A glance at a push.
    public init(key: PushKey, isAccepted: Bool) {
      self.key = key
      self.isAccepted = isAccepted
    }

    init(_ push: Push) { self.init(key: push.key, isAccepted: push.verdict.isAccepted) }
  }
}

/// Why a rule has nothing to do with a push, where a glance is enough to say so.
enum Dismissal {
  /// APNs itself rejects the push, and the rule is not for such pushes.
  case refused
  case count
  case probability
}

/// How often a rule was dismissed. Event loops count it without a lock: it happens to nearly every push.
final class Dismissals: Sendable {
  private let refused = Atomic<Int>(0)
  private let count = Atomic<Int>(0)
  private let probability = Atomic<Int>(0)

  func add(_ dismissal: Dismissal) {
    switch dismissal {
    case .refused: refused.add(1, ordering: .relaxed)
    case .count: count.add(1, ordering: .relaxed)
    case .probability: probability.add(1, ordering: .relaxed)
    }
  }

  func reset() {
    refused.store(0, ordering: .relaxed)
    count.store(0, ordering: .relaxed)
    probability.store(0, ordering: .relaxed)
  }

  /// What was counted elsewhere with what was counted here.
  func added(to told: RuleTally.Count) -> RuleTally.Count {
    var told = told
    let refused = refused.load(ordering: .relaxed)
    told.refused += refused
    told.looks += refused
    for (part, number) in [
      (TriggerPart.count, count.load(ordering: .relaxed)), (.probability, probability.load(ordering: .relaxed)),
    ] {
      told.stops[part.rawValue] += number
      told.looks += number
    }
    return told
  }
}

extension PreparedRule {
  /// What a glance at a push says of the rule.
  enum Impression {
    case dismissed(Dismissal)
    /// It fires, and what it does is all that happens.
    case fires(Injection.Chance)
    /// It takes more than a glance.
    case unclear
  }

  /// Whether a glance at a push may be enough for the rule: it has no condition, and nothing that is asked before its
  /// probability needs more.
  static func isPlain(_ rule: Rule) -> Bool {
    let trigger = rule.trigger
    return (rule.moment == .request || rule.moment == .response) && rule.condition == Condition()
      && trigger.afterStreams == nil && trigger.window == nil && trigger.overLimit == nil
      && (!trigger.counts || trigger.countKey == .push)
  }

  /// What it says to a push, as far as a glance tells.
  ///
  /// - Parameter attempt: how often the push came until now, from 1.
  func impression(
    _ glance: Traffic.Glance, attempt: () -> Int, _ identity: Profile.PushIdentity, now: Int64
  ) -> Impression {
    guard isPlain else { return .unclear }
    if refuses(isAccepted: glance.isAccepted) { return .dismissed(.refused) }
    let probability = rule.trigger.probability?.value(at: now &- activatedAt)
    var (draw, ordinal) = (Double?.none, 0)
    if let probability, probability > 0, probability < 1 {
      guard let key = rule.trigger.drawKey.ofContent(glance.key, identity) else { return .unclear }
      ordinal = rule.trigger.drawKey == .attempt ? attempt() : 0
      draw = Draw(draws, key: key, ordinal: ordinal).number
    }
    if let probability, draw ?? 0 >= probability { return .dismissed(.probability) }
    if rule.trigger.counts, !rule.trigger.lets(attempt()) { return .dismissed(.count) }
    return firesPlainly
      ? .fires(Injection.Chance(draw: draw, probability: probability, ordinal: ordinal)) : .unclear
  }
}

extension Trigger.Key {
  /// Whose draw it is, where the key of a push says that; else nil.
  func ofContent(_ push: PushKey, _ identity: Profile.PushIdentity) -> Draw.Key? {
    switch self {
    case .rule: .text("")
    case .attempt where identity == .content, .push where identity == .content: .push(push)
    default: nil
    }
  }
}

/// The rules of a moment that are left when a glance at a push has dismissed those before them. It holds on to none of
/// them, because every push makes one.
public struct RulesLeft: Sendable {
  /// Where the first of them stands.
  var first = 0
  /// How many there are: the last ones.
  var count = 0
  /// That the first of them fires, and why, if the glance said that too.
  var chance: Injection.Chance?

  /// Whether no rule does anything.
  public var isEmpty: Bool { count == 0 }
}
