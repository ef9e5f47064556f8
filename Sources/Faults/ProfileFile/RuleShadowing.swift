internal import APNSMockFaultModel

// Comparisons that find rules which can never fire. They are conservative: false may mean "unknown".

extension Rule {
  /// Returns whether `later`, a rule further down in the list, can never fire because this rule always fires first
  /// and ends the evaluation.
  func shadows(_ later: Rule) -> Bool {
    // At `connection`, a rule fires once per connection and then no longer blocks later rules.
    guard injectionPoint == later.injectionPoint, injectionPoint != .connection, trigger.alwaysFires, endsEvaluation,
      stage == .beforeValidation || later.stage == .afterValidation || !injectionPoint.hasPush
    else { return false }
    return later.condition.implies(condition)
  }

  /// Whether evaluation ends after the rule, whichever part of its action is chosen.
  private var endsEvaluation: Bool {
    if action.canStopFiring { return false }
    if let continues { return !continues }
    return action.leaves.allSatisfy { $0.name.continues == false }
  }
}

extension Action {
  /// Whether the action is, or contains, a sequence that stops firing after its last step.
  fileprivate var canStopFiring: Bool {
    switch self {
    case .sequence(_, let steps, let onEnd): onEnd == .pass || steps.contains(where: \.canStopFiring)
    case .choose(let choices): choices.contains(where: \.action.canStopFiring)
    default: false
    }
  }
}

extension Trigger {
  /// Whether the trigger fires for all traffic that meets the condition.
  fileprivate var alwaysFires: Bool {
    (probability == nil || probability == .fixed(1)) && first == nil && (after ?? 0) == 0 && (every ?? 1) == 1
      && times == nil && overLimit == nil && window == nil && afterStreams == nil && maxActive == nil
  }
}

extension Condition {
  /// Returns whether `other` holds for everything that this condition holds for.
  func implies(_ other: Condition) -> Bool {
    other.tests.allSatisfy { wanted in tests.contains { $0.implies(wanted) } }
      && other.exceptions.allSatisfy { excluded in exceptions.contains { excluded.implies($0) } }
  }
}

extension Condition.Test {
  fileprivate func implies(_ other: Condition.Test) -> Bool {
    subject == other.subject && match.implies(other.match, foldsCase: subject.foldsCase)
  }
}

extension Condition.Match {
  /// Returns whether `other` matches every value that this match does. Queries are only compared for equality.
  fileprivate func implies(_ other: Condition.Match, foldsCase: Bool) -> Bool {
    if self == other { return true }
    switch (self, other) {
    case (.present(let one), .present(let two)): return one == two
    case (.present, _): return false
    case (.query, _), (_, .query): return false
    case (_, .present(let isPresent)): return isPresent
    case (.equals(let text), _): return other.holds(for: .number(text))
    case (.oneOf(let texts), _): return texts.allSatisfy { other.holds(for: .number($0)) }
    case (.prefix(let long), .prefix(let short)): return long.hasPrefix(short)
    case (.between(let above, let below), .between(let otherAbove, let otherBelow)):
      return (otherAbove.map { wanted in above.map { $0 >= wanted } ?? false } ?? true)
        && (otherBelow.map { wanted in below.map { $0 <= wanted } ?? false } ?? true)
    default: return false
    }
  }
}
