package import APNSMockFaultModel
package import APNSMockNotation

/// What limits an added rule to some pushes, so that test suites which share a server do not disturb each other.
package struct RuleBinding: Sendable, Equatable {
  /// The query that selects the pushes; nil for all.
  package let scope: String?
  /// The `id` of the run at whose end the rule is removed; nil for none.
  package let run: String?
  /// The tests of the scope and of the run's scope, all of which must hold.
  let tests: [Condition.Test]

  /// Creates a binding.
  ///
  /// - Parameter runScope: The query that selects the pushes of the run; nil for all pushes.
  /// - Throws: `FilterError` for an invalid or empty query.
  package init(scope: String? = nil, run: String? = nil, runScope: String? = nil) throws(FilterError) {
    (self.scope, self.run) = (scope, run)
    var tests: [Condition.Test] = []
    for query in [scope, runScope].compactMap(\.self) {
      let found = try Condition.tests(query: query)
      guard !found.isEmpty else {
        throw FilterError(
          field: "scope", value: query, hint: "Use a query such as topic:com.example.app, or omit it for all pushes.")
      }
      tests += found
    }
    self.tests = tests
  }

  /// The binding of a rule that applies to all pushes.
  package static let all = RuleBinding()

  private init() { (scope, run, tests) = (nil, nil, []) }

  /// Returns a rule that applies only to the pushes of the binding.
  package func applied(to rule: Rule) -> Rule {
    var rule = rule
    rule.condition.tests += tests
    return rule
  }

  /// Checks that the pushes of the binding are known where a rule is evaluated.
  ///
  /// - Throws: `FilterError` if they are not.
  package func check(_ rule: Rule) throws(FilterError) {
    guard let test = tests.first(where: { !$0.subject.isKnown(at: rule.injectionPoint) }) else { return }
    throw FilterError(
      field: "scope", value: scope ?? run ?? "",
      hint:
        "The rule \(rule.name) acts at \(rule.injectionPoint.rawValue), where \(test.name) is not known: a connection "
        + "may have pushes of others. Bind only rules at request or response.")
  }
}
