import FaultModel
internal import Notation

/// A rule and its position in the file, for checks that compare several rules.
struct PlacedRule {
  var rule: Rule
  let file: String
  let position: TextPosition
  let path: String
}

extension ProfileParser {
  /// Parses an element of `rules`.
  ///
  /// - Parameters:
  ///   - defaultName: The name of a rule without one.
  ///   - ttl: Parses the field `ttl`, which rules in files do not have.
  func rule(_ place: Located, defaultName: String, ttl: ((Located) -> Void)? = nil) -> PlacedRule? {
    guard let map = map(place, RuleKey.self, without: ttl == nil ? [.ttl] : []) else { return nil }
    if let value = map[.ttl] { ttl?(value) }
    let injectionPoint = map[.at].map { word($0, of: InjectionPoint.self) } ?? .request
    let stage = map[.stage].map { word($0, of: Rule.Stage.self) } ?? .afterValidation
    let name = map[.name].map { self.name($0) } ?? defaultName
    if let name, name.hasPrefix("magic-"), map.has(.name) {
      fail(
        at: map.position(of: .name), map.path(of: .name),
        "names that begin with magic- are reserved for magic device tokens")
    }
    if map.has(.stage), let injectionPoint, !injectionPoint.hasPush {
      warn(at: map.position(of: .stage), map.path(of: .stage), "there is no validation at \(injectionPoint.rawValue)")
    }
    let condition =
      map[.when].map { self.condition($0, at: injectionPoint, stage: stage ?? .afterValidation) } ?? Condition()
    let trigger = map[.trigger].map { self.trigger($0, at: injectionPoint) } ?? Trigger()
    let action = map[.action].flatMap { self.action($0, at: injectionPoint) }
    let continuation = map[.then].map { word($0, of: Continuation.self) }
    if let action, continuation == .some(.continueEvaluation),
      let part = action.leaves.first(where: { $0.name.continues != true })
    {
      fail(
        at: map.position(of: .then), map.path(of: .then),
        "\(part.name.rawValue) settles what becomes of the push, so the walk ends there",
        hint: "omit it")
    }
    guard let name, let injectionPoint, let stage, let condition, let action else { return nil }
    let rule = Rule(
      name: name, injectionPoint: injectionPoint, condition: condition, trigger: trigger, action: action,
      continues: continuation.flatMap { $0 }.map { $0 == .continueEvaluation }, stage: stage)
    check(rule, map)
    return PlacedRule(rule: rule, file: file, position: place.node.position, path: place.path)
  }

  /// Checks what depends on several fields together.
  private func check(_ rule: Rule, _ map: Map<RuleKey>) {
    if rule.trigger.maxActive != nil, !rule.action.leaves.contains(where: \.delaysPush) {
      warn(
        at: map.position(of: .trigger), map.path(of: .trigger) + ".max_active", "no push is delayed here",
        hint: "it belongs to delay and hang")
    }
    if rule.condition.exceptions.contains(where: { rule.condition.implies($0) }) {
      fail(
        at: map.position(of: .when), map.path(of: .when) + ".not",
        "this can never match: what the rule is for is excluded as well")
    }
    if let attempts = rule.condition.attempts, rule.trigger.countKey == .push,
      !attempts.overlaps(rule.trigger.attempts)
    {
      fail(
        at: map.position(of: .trigger), map.path(of: .trigger),
        "this never fires: attempts by when are \(attempts.spoken), by the trigger \(rule.trigger.attempts.spoken)",
        hint: "times_per: push counts attempts")
    }
  }
}

extension Trigger {
  /// The counts at which the trigger can fire.
  fileprivate var attempts: ClosedRange<Int> {
    let least = (after ?? 0) + 1
    return least...(first.map { least + $0 - 1 } ?? .max)
  }
}

extension Condition {
  /// The attempts for which the condition can hold; nil if it does not test the attempt.
  fileprivate var attempts: ClosedRange<Int>? {
    guard let match = tests.first(where: { $0.subject == .attempt })?.match else { return nil }
    switch match {
    case .equals(let text): return Int(text).map { $0...$0 }
    case .between(let above, let below):
      let least = above.map { Int($0.rounded(.down)) + 1 } ?? 1
      return least...max(least, below.map { Int($0.rounded(.up)) - 1 } ?? .max)
    default: return nil
    }
  }
}

extension ClosedRange<Int> {
  fileprivate var spoken: String {
    if upperBound == .max { return "from \(lowerBound)" }
    return lowerBound == upperBound ? "\(lowerBound) alone" : "\(lowerBound) to \(upperBound)"
  }
}

extension Action {
  /// All actions that this action can result in: for `choose` and `sequence`, those of their parts, otherwise the
  /// action itself.
  var leaves: [Action] {
    switch self {
    case .choose(let choices): choices.flatMap(\.action.leaves)
    case .sequence(_, let steps, _): steps.flatMap(\.leaves)
    default: [self]
    }
  }
}
