public import Notation

/// One thing that is wrong in a profile or a rule, and where.
public struct ProfileProblem: Sendable, Equatable, Decodable, CustomStringConvertible {
  /// Whether the profile can run all the same.
  public enum Severity: String, CaseIterable, Sendable, Decodable {
    /// It cannot.
    case error
    /// It can, but somebody should look.
    case warning
  }

  /// How bad it is.
  public let severity: Severity
  /// Which value it is about, as a way through the file: `rules[0].trigger.probability`; empty for the whole file.
  public let path: String
  /// The file, or what stands for it: the name of a profile that was sent, `rule` for a rule.
  public var file: String
  /// The line, from 1; nil where there is no text to point into.
  public let line: Int?
  /// The column, from 1, counted in Unicode scalars; nil together with `line`.
  public let column: Int?
  /// What is wrong.
  public let message: String
  /// How to repair it, if that can be said.
  public let hint: String?

  init(
    _ severity: Severity = .error, file: String, at position: FilePosition? = nil, path: String = "",
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

  /// All of it in one line, as compilers do: `file:12:7: rules[0].trigger.probabilty: unknown, did you mean …`.
  public var description: String { withoutHint + (hint.map { ", " + $0 } ?? "") }

  /// The same without how to repair it.
  public var withoutHint: String {
    var text = file
    if let line { text += ":\(line)" }
    if let column { text += ":\(column)" }
    if !text.isEmpty { text += ": " }
    if severity == .warning { text += "warning: " }
    if !path.isEmpty { text += path + ": " }
    return text + message
  }

  /// Writes it as an object with the members `severity`, `file`, `line`, `column`, `path`, `message` and `hint`.
  public func write(to writer: inout JSONWriter) {
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
  /// Writes them as the elements of an array.
  public func write(to writer: inout JSONWriter) {
    for problem in self { problem.write(to: &writer) }
  }
}

/// Why there is no profile, or no rule: everything that is wrong, found in one pass.
public struct ProfileFailure: Error, Sendable, Equatable, CustomStringConvertible {
  /// What was asked for.
  public enum Kind: Sendable, Equatable {
    /// A profile whose name nobody knows.
    case unknownName
    /// A file or text with errors in it, or knobs that cannot have their values.
    case faulty
    /// A change that is not allowed, such as removing a built-in profile.
    case notAllowed
  }

  /// What went wrong.
  public let kind: Kind
  /// Errors, at least one, and warnings, in the order of the file.
  public let problems: [ProfileProblem]

  init(_ kind: Kind = .faulty, _ problems: [ProfileProblem]) {
    self.kind = kind
    self.problems = problems
  }

  /// Each problem in a line.
  public var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// Collects problems. Bounded: a file of nothing but mistakes shall not fill the memory.
final class ProblemList {
  /// How many of each severity are kept.
  static let limit = 100

  private(set) var problems: [ProfileProblem] = []
  private var counts: [ProfileProblem.Severity: Int] = [:]

  /// Whether there is an error.
  var hasErrors: Bool { counts[.error] != nil }

  /// Whether further errors are dropped, so that nobody need think about their words.
  var isFull: Bool { counts[.error, default: 0] >= Self.limit }

  func add(_ problem: ProfileProblem) {
    let count = counts[problem.severity, default: 0] + 1
    counts[problem.severity] = count
    if count <= Self.limit { problems.append(problem) }
    if count == Self.limit + 1 {
      problems.append(
        ProfileProblem(
          problem.severity, file: problem.file, "more than \(Self.limit) problems, the others are left out"))
    }
  }

  /// All of them, by file and position. What has no position stands first.
  var inOrder: [ProfileProblem] {
    let files = problems.reduce(into: [String: Int]()) { $0[$1.file] = $0[$1.file] ?? $0.count }
    return problems.enumerated().sorted { one, other in
      let left = (files[one.element.file] ?? 0, one.element.line ?? 0, one.element.column ?? 0, one.offset)
      return left < (files[other.element.file] ?? 0, other.element.line ?? 0, other.element.column ?? 0, other.offset)
    }.map(\.element)
  }
}
