internal import Notation

/// A standalone rule in YAML or JSON: the fields of a profile's rule, and `ttl`.
public struct RuleFile: Sendable, Equatable {
  /// The rule.
  public let rule: Rule
  /// Whether the text names the rule; otherwise `rule` has the default name.
  public let isNamed: Bool
  /// The time until the rule is removed; nil for no limit.
  public let ttl: Duration?
  /// The warnings, in the order of the text.
  public let warnings: [ProfileProblem]

  /// Parses a rule.
  ///
  /// - Parameters:
  ///   - file: the name of the text in problems.
  ///   - usualName: the name of a rule without one.
  /// - Throws: `ProfileFailure` with all problems.
  public static func parse(
    _ text: String, file: String = "rule", usualName: String = "rule-1"
  ) throws(ProfileFailure) -> RuleFile {
    let problems = ProblemList()
    let reading = ProfileReading(
      file: file, problems: problems, knobs: Knobs(absence: "only profiles have parameters"))
    var ttl: Duration?
    var isNamed = false
    guard let root = ProfileText.read(text, file: file, problems: problems) else {
      throw ProfileFailure(.faulty, problems.inOrder)
    }
    if case .map(let entries) = root.content { isNamed = entries.contains { $0.key == RuleKey.name.rawValue } }
    let place = ProfileReading.Located(node: root, path: "")
    let placed = reading.rule(place, usualName: usualName) { ttl = reading.duration($0, isPositive: true) }
    guard let placed, !problems.hasErrors else { throw ProfileFailure(.faulty, problems.inOrder) }
    return RuleFile(rule: placed.rule, isNamed: isNamed, ttl: ttl, warnings: problems.inOrder)
  }
}
