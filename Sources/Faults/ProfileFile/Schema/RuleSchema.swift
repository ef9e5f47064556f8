package import APNSMockFaultModel
package import APNSMockNotation

/// A parsed rule with its position in the file, for checks that compare several rules.
struct LocatedRule {
  var rule: Rule
  /// The time until the rule is removed, for rules that are not part of a file.
  let ttl: Duration?
  /// What such a rule is bound to.
  let scope: String?
  let run: String?
  /// Whether the rule has a name; otherwise it has the default name.
  let isNamed: Bool
  let file: String
  let position: TextPosition
  let path: String
}

/// The keys of a rule.
struct RuleValues: Sendable {
  /// The rule without its defaults that depend on its place in a list.
  var rule = Rule(name: "", action: .pass)
  var ttl: Duration?
  var scope: String?
  var run: String?

  static let schema: MapSchema<RuleValues> = MapSchema(
    "rule", RuleValues(),
    .defaulted(
      "name", \.rule.name, .name, default: "`rule-` and the rule's number",
      "The name of the rule, unique within the profile."),
    .defaulted("at", \.rule.injectionPoint, .word, "The injection point."),
    .custom(
      "when", \.rule.condition, .condition, default: "all traffic", "The traffic that the rule applies to.",
      parse: { parser, node, values in
        Condition.schema.parse(node, parser).map { values.rule.condition = $0 } != nil
      },
      write: { values, writer in
        guard values.rule.condition != Condition() else { return }
        writer.name("when")
        values.rule.condition.write(to: &writer)
      }),
    .defaulted(
      "trigger", \.rule.trigger, .map(Trigger.schema), default: "always", writing: .unlessDefault,
      "How often the rule fires for this traffic."),
    .required(
      "do", \.rule.action, Schema(form: .action, parse: { $0.parseAction($1) }, write: { $0.write(to: &$1) }),
      "The action."),
    .optional(
      "then", \.rule.then, .word, default: "depends on the action",
      "Whether later rules are evaluated after this rule has fired. `forward`, only with `lose_answer`, ends the evaluation and forwards the push to the service of `--upstream`."
    ),
    .defaulted(
      "stage", \.rule.stage, .word, writing: .unlessDefault,
      "Whether the rule applies only to pushes that pass APNs' checks, or to all pushes."),
    .optional(
      ttl, \.ttl, .positiveDuration, default: "no limit",
      "The time after which the rule is removed; only for a rule added with `rule add`."),
    .custom(
      "scope", \.scope, .text(), default: "all pushes",
      "An inbox query: the rule applies only to pushes that match; only for a rule added with `rule add`.",
      parse: { parser, node, values in
        guard let text = parser.parseText(node), parser.parseQuery(text, node) != nil else { return false }
        values.scope = text
        return true
      }, write: { _, _ in }),
    .optional(
      "run", \.run, .text, default: "none",
      "The id of an open run: the rule applies only to its pushes and is removed at its end; only for a rule added with "
        + "`rule add`."))

  /// The keys that rules in profiles do not have.
  static var ofAddedRules: [PartialKeyPath<RuleValues>] { [\.ttl, \.scope, \.run] }
  static let ttl = "ttl"

  /// The description of a rule in a profile.
  static let inProfiles = ofAddedRules.reduce(schema.description) { $0.removing(schema.name(of: $1)) }
}

extension SchemaParser {
  /// Parses a rule.
  ///
  /// - Parameters:
  ///   - defaultName: The name of a rule without one.
  ///   - isAdded: Whether the rule may have the keys that rules in profiles do not have.
  func parseRule(_ node: SchemaNode, defaultName: String, isAdded: Bool = false) -> LocatedRule? {
    guard let map = RuleValues.schema.parseKeys(node, self, excluding: isAdded ? [] : RuleValues.ofAddedRules) else {
      return nil
    }
    var values = RuleValues()
    values.rule.name = defaultName
    // The other keys depend on the injection point and the stage.
    let context: [PartialKeyPath<RuleValues>] = [\.rule.injectionPoint, \.rule.stage]
    let isPointValid = map.parse(into: &values) { $0 == context[0] }
    let isStageValid = map.parse(into: &values) { $0 == context[1] }
    profile?.injectionPoint = isPointValid ? values.rule.injectionPoint : nil
    profile?.stage = values.rule.stage
    defer { profile?.injectionPoint = nil }
    let isRestValid = map.parse(into: &values) { !context.contains($0) }
    guard isPointValid, isStageValid, isRestValid else { return nil }
    check(values.rule, map)
    return LocatedRule(
      rule: values.rule, ttl: values.ttl, scope: values.scope, run: values.run, isNamed: map.has(\.rule.name),
      file: file, position: node.position,
      path: node.path)
  }

  /// Checks what depends on several keys together.
  private func check(_ rule: Rule, _ map: CheckedMap<RuleValues>) {
    if map.has(\.rule.name), rule.name.hasPrefix("magic-") {
      map.fail(at: \.rule.name, "names that begin with magic- are reserved for magic device tokens")
    }
    if map.has(\.rule.stage), !rule.injectionPoint.hasPush {
      map.warn(at: \.rule.stage, "there is no validation at \(rule.injectionPoint.rawValue)")
    }
    if rule.continues == true, let action = rule.action.leaves.first(where: { $0.name.continues != true }) {
      map.fail(
        at: \.rule.then, "\(action.name.rawValue) determines the outcome of the push, so evaluation ends there",
        hint: "omit it")
    }
    if rule.then == .forward, let action = rule.action.leaves.first(where: { $0.name != .loseResponse }) {
      map.fail(
        at: \.rule.then, "\(action.name.rawValue) is not performed on a push that is forwarded",
        hint: "use it with lose_answer")
    }
    if rule.trigger.maxActive != nil, !rule.action.leaves.contains(where: \.delaysPush) {
      let (position, path) = map.location(of: \.rule.trigger)
      warn(
        at: position, "\(path).\(Trigger.schema.name(of: \.maxActive))", "no push is delayed here",
        hint: "use it with delay or hang")
    }
    if rule.condition.exceptions.contains(where: { rule.condition.implies($0) }) {
      let (position, path) = map.location(of: \.rule.condition)
      fail(
        at: position, "\(path).\(Condition.schema.name(of: \.exceptions))",
        "this can never match: `not` excludes all that `when` matches")
    }
    if let attempts = rule.condition.attempts, rule.trigger.countKey == .push,
      !attempts.overlaps(rule.trigger.attempts)
    {
      map.fail(
        at: \.rule.trigger,
        "this never fires: `when` allows attempts \(attempts.text), the trigger allows \(rule.trigger.attempts.text)",
        hint: "times_per: push counts attempts")
    }
  }
}

extension Trigger {
  /// The counts at which the trigger can fire.
  fileprivate var attempts: ClosedRange<Int> {
    let minimum = (after ?? 0) + 1
    return minimum...(first.map { minimum + $0 - 1 } ?? .max)
  }
}

extension Condition {
  /// The attempts for which the condition can hold; nil if it does not test the attempt.
  fileprivate var attempts: ClosedRange<Int>? {
    guard let match = tests.first(where: { $0.subject == .attempt })?.match else { return nil }
    switch match {
    case .equals(let text): return Int(text).map { $0...$0 }
    case .between(let above, let below):
      let minimum = above.map { Int($0.rounded(.down)) + 1 } ?? 1
      return minimum...max(minimum, below.map { Int($0.rounded(.up)) - 1 } ?? .max)
    default: return nil
    }
  }
}

extension ClosedRange<Int> {
  fileprivate var text: String {
    if upperBound == .max { return "from \(lowerBound)" }
    return lowerBound == upperBound ? "\(lowerBound) alone" : "\(lowerBound) to \(upperBound)"
  }
}

extension Rule {
  /// Writes the rule as an object with the keys of a profile file, without those that have their default value.
  package func write(to writer: inout JSONWriter) {
    write(to: &writer) { _ in }
  }

  /// Writes the rule as an object, with additional members at its end.
  package func write(to writer: inout JSONWriter, and members: (inout JSONWriter) -> Void) {
    writer.object { writer in
      RuleValues.schema.writeMembers(of: RuleValues(rule: self), to: &writer)
      members(&writer)
    }
  }
}
