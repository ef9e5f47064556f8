internal import APNSMockNotation
import APNSMockFaultModel
internal import APNSMockRules
internal import Synchronization

/// A rule prepared for evaluation. A class, because decisions pass it on and copying a reference is cheap.
final class PreparedRule: Sendable {
  let rule: Rule
  let condition: PreparedCondition
  /// Whether the rule applies only to pushes and not to other requests, because its condition does not name a kind.
  let isForPushesOnly: Bool
  /// The profile that the rule belongs to; nil for an added rule.
  let profile: String?
  /// The key of the rule's counters in `RuleCounters`.
  let counterID: Int
  /// The counters of pushes that the rule was evaluated for without their requests.
  let skipCounters: SkipCounters
  /// The time of activation, in monotonic nanoseconds.
  let activatedAt: MonotonicTime
  /// Whether evaluation continues with later rules whichever action is chosen.
  let alwaysContinues: Bool
  /// Whether evaluation ends whichever action is chosen.
  let alwaysStops: Bool
  /// The source of the rule's draws.
  let drawSource: Draw.Source
  /// Whether the action may need a draw.
  let drawsForAction: Bool
  /// Whether the result for given traffic is independent of earlier evaluations.
  let isStateless: Bool
  /// Whether the rule cannot be evaluated from the push key, the verdict and the attempt number alone.
  let needsTraffic: Bool
  /// Whether the rule, if these allow it to fire, has the same effect on every push and ends the evaluation.
  let isConstant: Bool
  /// That effect.
  let effect: Injection.RuleEffect

  init(
    _ rule: Rule, profile: String?, counterID: Int, skipCounters: SkipCounters, activatedAt: MonotonicTime, seed: UInt64
  ) {
    self.rule = rule
    self.profile = profile
    self.counterID = counterID
    self.skipCounters = skipCounters
    self.activatedAt = activatedAt
    condition = PreparedCondition(rule.condition)
    isForPushesOnly = !rule.condition.namesKind
    alwaysContinues = rule.continues ?? rule.action.leaves.allSatisfy { $0.name.continues == true }
    alwaysStops = rule.continues.map { !$0 } ?? rule.action.leaves.allSatisfy { $0.name.continues != true }
    drawSource = Draw.Source(seed: seed, profile: profile ?? "", rule: rule.name)
    drawsForAction = rule.action.draws
    effect = Injection.RuleEffect(rule, profile: profile, doing: rule.action, counterID: counterID)
    let trigger = rule.trigger
    needsTraffic =
      rule.injectionPoint != .request && rule.injectionPoint != .response || rule.condition != Condition()
      || trigger.afterStreams != nil || trigger.window != nil || trigger.overLimit != nil
      || trigger.isCounting && trigger.countKey != .push
    isConstant = !needsTraffic && alwaysStops && trigger.times == nil && rule.action.isResolved
    isStateless =
      rule.injectionPoint != .connection && !trigger.isCounting && trigger.overLimit == nil && trigger.times == nil
      && rule.action.isStateless
  }

  /// Returns whether the rule applies to requests of a kind.
  ///
  /// - Parameter kind: Nil without a request, at the injection points of connections.
  func applies(to kind: RequestKind?) -> Bool { !isForPushesOnly || kind == nil || kind == .push }

  /// Whether the rule applies only to pushes that APNs accepts. Rejections stay as they are: a fault never hides a
  /// malformed push. Actions that only change how a response is sent apply to any push.
  var requiresAcceptance: Bool {
    rule.stage == .afterValidation && (rule.injectionPoint == .request || !alwaysContinues)
  }
}

extension Action {
  /// Whether the action depends neither on the position in a sequence nor on the number of delayed pushes.
  fileprivate var isStateless: Bool { sequenceKeys.isEmpty && !leaves.contains(where: \.delaysPush) }

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

/// Counters of evaluations without a lock, of which event loops make one for nearly every push.
final class SkipCounters: Sendable {
  private let rejectedByAPNs = Atomic<Int>(0)
  private let count = Atomic<Int>(0)
  private let probability = Atomic<Int>(0)

  /// Counts a rule that did not fire.
  func add(_ evaluation: RuleEvaluation) {
    switch evaluation {
    case .rejectedByAPNs: rejectedByAPNs.add(1, ordering: .relaxed)
    case .stopped(.count): count.add(1, ordering: .relaxed)
    case .stopped(.probability): probability.add(1, ordering: .relaxed)
    case .stopped, .missed, .matched: break
    }
  }

  func reset() {
    rejectedByAPNs.store(0, ordering: .relaxed)
    count.store(0, ordering: .relaxed)
    probability.store(0, ordering: .relaxed)
  }

  /// Returns `counts` plus these counts.
  func added(to counts: RuleCounter.Count) -> RuleCounter.Count {
    var counts = counts
    let rejectedByAPNs = rejectedByAPNs.load(ordering: .relaxed)
    counts.rejectedByAPNs += rejectedByAPNs
    counts.evaluations += rejectedByAPNs
    for (part, number) in [
      (TriggerPart.count, count.load(ordering: .relaxed)), (.probability, probability.load(ordering: .relaxed)),
    ] {
      counts.stops[part.rawValue] += number
      counts.evaluations += number
    }
    return counts
  }
}
