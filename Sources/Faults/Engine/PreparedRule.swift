/// A rule as decisions look at it. An object, because decisions hand it on, and that should cost little.
final class PreparedRule: Sendable {
  let rule: Rule
  let condition: PreparedCondition
  /// The profile it is of; nil for an ad-hoc rule.
  let profile: String?
  /// Its counters.
  let slot: Int
  /// The counters of what a glance is enough for.
  let dismissals: Dismissals
  /// In monotonic nanoseconds.
  let activatedAt: Int64
  /// Whether the walk goes on whatever it does.
  let alwaysContinues: Bool
  /// Whether the walk ends whatever it does.
  let alwaysStops: Bool
  /// Of its draws.
  let draws: Draw.Source
  /// Whether what it does may need a draw.
  let drawsForAction: Bool
  /// Whether it fires for the same traffic in the same way, however often it is asked.
  let isStateless: Bool
  /// Whether a glance at a push may be enough to dismiss it.
  let isPlain: Bool
  /// Whether a glance that does not dismiss it says all: it then fires, does always the same, and ends the walk.
  let firesPlainly: Bool
  /// What it does then.
  let deed: Injection.Deed

  init(
    _ rule: Rule, profile: String?, slot: Int, dismissals: Dismissals, activatedAt: Int64, seed: UInt64
  ) {
    self.rule = rule
    self.profile = profile
    self.slot = slot
    self.dismissals = dismissals
    isPlain = Self.isPlain(rule)
    self.activatedAt = activatedAt
    condition = PreparedCondition(rule.condition)
    alwaysContinues = rule.continues ?? rule.action.leaves.allSatisfy { $0.name.continues == true }
    alwaysStops = rule.continues.map { !$0 } ?? rule.action.leaves.allSatisfy { $0.name.continues != true }
    draws = Draw.Source(seed: seed, profile: profile ?? "", rule: rule.name)
    drawsForAction = rule.action.draws
    deed = Injection.Deed(rule, profile: profile, doing: rule.action, slot: slot)
    let trigger = rule.trigger
    firesPlainly = isPlain && alwaysStops && trigger.times == nil && rule.action.isResolved
    isStateless =
      rule.moment != .connection && !trigger.counts && trigger.overLimit == nil && trigger.times == nil
      && rule.action.isStateless
  }

  /// Whether it is not for pushes that APNs rejects, and this is one. Those rejections stay as they are: a fault never
  /// hides a malformed push. What only changes how an answer leaves may be done to any.
  func refuses(isAccepted: Bool) -> Bool {
    !isAccepted && rule.stage == .afterValidation && (rule.moment == .request || !alwaysContinues)
  }
}

extension Trigger {
  /// Whether anything is counted but injections.
  var counts: Bool { first != nil || after != nil || every != nil }

  /// Whether it fires as far as the count is concerned.
  func lets(_ number: Int) -> Bool {
    let after = number - (after ?? 0)
    return after > 0 && after <= first ?? .max && after % max(every ?? 1, 1) == 0
  }
}

extension Action {
  /// Neither a position nor a held push depends on it.
  fileprivate var isStateless: Bool { sequenceKeys.isEmpty && !leaves.contains(where: \.holds) }

  fileprivate var draws: Bool {
    switch self {
    case .choose, .delay(.uniform), .delay(.lognormal): true
    case .sequence(_, let steps, _): steps.contains(where: \.draws)
    default: false
    }
  }

  fileprivate var sequenceKeys: [Trigger.Key] {
    switch self {
    case .choose(let choices): choices.flatMap(\.action.sequenceKeys)
    case .sequence(let key, let steps, _): [key] + steps.flatMap(\.sequenceKeys)
    default: []
    }
  }
}
