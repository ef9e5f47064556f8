public import APNSRules
internal import Synchronization

extension Traffic {
  /// What is known of every push before anybody looks into it.
  public struct Glance: Sendable {
    /// What tells it from other pushes by its content.
    public let key: PushKey
    /// How often it came until now, from 1.
    public let attempt: Int
    /// Whether APNs would take it.
    public let isAccepted: Bool

    /// A glance at a push.
    public init(key: PushKey, attempt: Int, isAccepted: Bool) {
      self.key = key
      self.attempt = attempt
      self.isAccepted = isAccepted
    }

    init(_ push: Push) { self.init(key: push.key, attempt: push.attempt, isAccepted: push.verdict.isAccepted) }
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
  /// Whether a glance at a push may be enough to dismiss the rule: it has no condition, and nothing that is asked before
  /// its probability needs more.
  static func isPlain(_ rule: Rule) -> Bool {
    let trigger = rule.trigger
    return (rule.moment == .request || rule.moment == .response) && rule.condition == Condition()
      && trigger.afterStreams == nil && trigger.window == nil && trigger.overLimit == nil
      && (!trigger.counts || trigger.countKey == .push)
  }

  /// Why the rule does nothing to a push; nil if it takes more than a glance to say that, or if it does something.
  func dismissal(_ glance: Traffic.Glance, _ identity: Profile.PushIdentity, now: Int64) -> Dismissal? {
    guard isPlain else { return nil }
    if refuses(isAccepted: glance.isAccepted) { return .refused }
    if rule.trigger.counts, !rule.trigger.lets(glance.attempt) { return .count }
    guard let probability = rule.trigger.probability?.value(at: now &- activatedAt) else { return nil }
    guard probability > 0, probability < 1 else { return probability > 0 ? nil : .probability }
    let key: Draw.Key
    switch rule.trigger.drawKey {
    case .rule: key = .text("")
    case .attempt where identity == .content, .push where identity == .content: key = .push(glance.key)
    default: return nil
    }
    let draw = Draw(draws, "", key: key, ordinal: rule.trigger.drawKey == .attempt ? glance.attempt : 0)
    return draw.number < probability ? nil : .probability
  }
}

extension FaultPlan {
  /// How many rules of a moment are left to ask about a push when a glance at it has dismissed those before them. What
  /// is dismissed is counted, so `decide` has to be told of it.
  public func rulesLeft(
    at moment: Moment, for glance: Traffic.Glance, now: Int64, excludingOutcomes: Bool = false
  ) -> Int {
    let rules = rules(at: moment)
    for (index, rule) in rules.enumerated() where !excludingOutcomes || rule.alwaysContinues {
      guard let dismissal = rule.dismissal(glance, profile.pushIdentity, now: now) else { return rules.count - index }
      rule.dismissals.add(dismissal)
    }
    return 0
  }
}
