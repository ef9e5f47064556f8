internal import Notation

/// A rule that comes by itself, as YAML or JSON: the fields of a rule in a profile, and `ttl`.
public struct RuleFile: Sendable, Equatable {
  /// The rule.
  public let rule: Rule
  /// Whether it says how it is called; if not, the rule has the name it was given for that case.
  public let isNamed: Bool
  /// How long it is to stay; nil for until it is removed.
  public let ttl: Duration?
  /// What is odd about it, in the order of the text.
  public let warnings: [ProfileProblem]

  /// Reads a rule.
  ///
  /// - Parameters:
  ///   - file: what the problems call the text.
  ///   - usualName: the name of a rule that has none.
  /// - Throws: `ProfileFailure` with everything that is wrong.
  public static func parse(
    _ text: String, file: String = "rule", usualName: String = "rule-1"
  ) throws(ProfileFailure) -> RuleFile {
    let problems = ProblemList()
    let reading = ProfileReading(
      file: file, problems: problems, knobs: Knobs(absence: "knobs are those of a profile, a rule by itself has none"))
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
