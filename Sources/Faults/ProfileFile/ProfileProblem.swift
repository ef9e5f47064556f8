import FaultModel
package import Notation

/// An error or a warning in a profile or a rule, with its position.
package struct ProfileProblem: Sendable, Equatable, Decodable, CustomStringConvertible {
  /// Whether the profile can run despite the problem.
  package enum Severity: String, CaseIterable, Sendable, Decodable {
    /// The profile cannot run.
    case error
    /// The profile can run, but probably does not do what is intended.
    case warning
  }

  /// The severity.
  package let severity: Severity
  /// The path of the value, for example `rules[0].trigger.probability`; empty for the whole file.
  package let path: String
  /// The file, or the name of an uploaded profile, or `rule` for a rule.
  package var file: String
  /// The line, from 1; nil if there is no text to refer to.
  package let line: Int?
  /// The column, from 1, counted in Unicode scalars; nil if `line` is nil.
  package let column: Int?
  /// A description of the problem.
  package let message: String
  /// A suggestion for fixing the problem, if there is one.
  package let hint: String?

  init(
    _ severity: Severity = .error, file: String, at position: TextPosition? = nil, path: String = "",
    _ message: String, hint: String? = nil
  ) {
    self.severity = severity
    self.file = file
    line = position?.line
    column = position?.column
    self.path = path
    self.message = message
    self.hint = hint
  }

  /// The problem on one line, in the format of compilers: `file:12:7: rules[0].trigger.probabilty: unknown, did you
  /// mean …`.
  package var description: String { withoutHint + (hint.map { ", " + $0 } ?? "") }

  /// The description without the hint.
  package var withoutHint: String {
    var text = file
    if let line { text += ":\(line)" }
    if let column { text += ":\(column)" }
    if !text.isEmpty { text += ": " }
    if severity == .warning { text += "warning: " }
    if !path.isEmpty { text += path + ": " }
    return text + message
  }

  /// Writes the problem as an object with the members `severity`, `file`, `line`, `column`, `path`, `message` and
  /// `hint`.
  package func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("severity", severity.rawValue)
      writer.member("file", file)
      writer.member("line", line)
      writer.member("column", column)
      writer.member("path", path)
      writer.member("message", message)
      writer.member("hint", hint)
    }
  }
}

extension [ProfileProblem] {
  /// Writes the problems as the elements of an array.
  package func write(to writer: inout JSONWriter) {
    for problem in self { problem.write(to: &writer) }
  }
}

/// The reasons why a profile or a rule cannot be loaded: all problems, found in one pass.
package struct ProfileFailure: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kind of failure.
  package enum Kind: Sendable, Equatable {
    /// There is no profile with this name.
    case unknownName
    /// The file or text has errors, or values of parameters are invalid.
    case faulty
    /// A change that is not allowed, such as removing a built-in profile.
    case notAllowed
  }

  /// The kind of failure.
  package let kind: Kind
  /// At least one error, and warnings, in the order of the file.
  package let problems: [ProfileProblem]

  init(_ kind: Kind = .faulty, _ problems: [ProfileProblem]) {
    self.kind = kind
    self.problems = problems
  }

  /// The problems, one per line.
  package var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// Collects problems. Bounded, so that a file with many mistakes cannot exhaust memory.
final class ProblemList {
  /// The maximum number of problems of each severity.
  static let limit = 100

  private(set) var problems: [ProfileProblem] = []
  private var counts: [ProfileProblem.Severity: Int] = [:]

  /// Whether there is an error.
  var hasErrors: Bool { counts[.error] != nil }

  /// Whether further errors are dropped, so that their messages need not be computed.
  var isFull: Bool { counts[.error, default: 0] >= Self.limit }

  func add(_ problem: ProfileProblem) {
    let count = counts[problem.severity, default: 0] + 1
    counts[problem.severity] = count
    if count <= Self.limit { problems.append(problem) }
    if count == Self.limit + 1 {
      problems.append(
        ProfileProblem(
          problem.severity, file: problem.file, "more than \(Self.limit) problems, the others are omitted"))
    }
  }

  func add(_ error: YAMLError, file: String, path: String = "") {
    add(ProfileProblem(file: file, at: error.position, path: path, error.message, hint: error.hint))
  }

  /// All problems by file and position. Problems without a position come first.
  var inOrder: [ProfileProblem] {
    let files = problems.reduce(into: [String: Int]()) { $0[$1.file] = $0[$1.file] ?? $0.count }
    return problems.enumerated().sorted { one, other in
      let left = (files[one.element.file] ?? 0, one.element.line ?? 0, one.element.column ?? 0, one.offset)
      return left < (files[other.element.file] ?? 0, other.element.line ?? 0, other.element.column ?? 0, other.offset)
    }.map(\.element)
  }
}
