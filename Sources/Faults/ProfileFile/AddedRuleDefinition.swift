package import APNSMockFaultModel
internal import APNSMockNotation

/// A rule to add to the active ones, in YAML or JSON: the keys of a profile's rule, `ttl`, `scope` and `run`.
package struct AddedRuleDefinition: Sendable, Equatable {
  /// The rule.
  package let rule: Rule
  /// Whether the text names the rule; otherwise `rule` has the default name.
  package let isNamed: Bool
  /// The time until the rule is removed; nil for no limit.
  package let ttl: Duration?
  /// A query: the rule applies only to the pushes that match; nil for all.
  package let scope: String?
  /// The `id` of a run: the rule applies only to its pushes; nil for all.
  package let run: String?
  /// The warnings, in the order of the text.
  package let warnings: [ProfileProblem]

  /// Parses a rule.
  ///
  /// - Parameters:
  ///   - file: The name of the text in problems.
  ///   - defaultName: The name of a rule without one.
  /// - Throws: `ProfileFailure` with all problems.
  package static func parse(
    _ text: String, file: String = "rule", defaultName: String = "rule-1"
  ) throws(ProfileFailure) -> AddedRuleDefinition {
    let problems = ProblemList()
    let parser = ProfileContext.parser(
      file: file, problems: problems, parameters: ParameterSet(absence: "only profiles have parameters"))
    guard let root = ProfileFileReader.root(of: text, file: file, problems: problems),
      let parsed = parser.parseRule(SchemaNode(root: root), defaultName: defaultName, isAdded: true),
      !problems.hasErrors
    else { throw ProfileFailure(.faulty, problems.inOrder) }
    return AddedRuleDefinition(
      rule: parsed.rule, isNamed: parsed.isNamed, ttl: parsed.ttl, scope: parsed.scope, run: parsed.run,
      warnings: problems.inOrder)
  }
}
