/// An error or a warning in a file that users write, such as a fault profile, with its position.
package struct FileProblem: Sendable, Equatable, Decodable, CustomStringConvertible {
  /// Whether the file can be used despite the problem.
  package enum Severity: String, CaseIterable, Sendable, Decodable {
    /// The file cannot be used.
    case error
    /// The file can be used, but probably does not do what is intended.
    case warning
  }

  /// The severity.
  package let severity: Severity
  /// The path of the value, for example `rules[0].trigger.probability`, or a JSON pointer in a verification; empty for
  /// the whole file.
  package let path: String
  /// The file, or the name of an uploaded one.
  package var file: String
  /// The line, from 1; nil if there is no text to refer to.
  package let line: Int?
  /// The column, from 1, counted in Unicode scalars; nil if `line` is nil.
  package let column: Int?
  /// A description of the problem.
  package let message: String
  /// A suggestion for fixing the problem, if there is one.
  package let hint: String?

  /// Creates a problem.
  package init(
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

  /// The hint as a sentence.
  package var advice: String {
    guard let hint else { return "Correct it, or omit it." }
    let text = hint.prefix(1).uppercased() + hint.dropFirst()
    return text.hasSuffix("?") || text.hasSuffix(".") ? text : text + "."
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

extension [FileProblem] {
  /// Writes the problems as the elements of an array.
  package func write(to writer: inout JSONWriter) {
    for problem in self { problem.write(to: &writer) }
  }
}

/// The reasons why a document cannot be used: all problems, found in one pass.
package struct FileFailure: Error, Sendable, Equatable, CustomStringConvertible {
  /// At least one error.
  package let problems: [FileProblem]

  /// Creates a failure with at least one error.
  package init(_ problems: [FileProblem]) { self.problems = problems }

  /// The problems, one per line.
  package var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// Collects problems. Bounded, so that a file with many mistakes cannot exhaust memory.
package final class ProblemList {
  /// The maximum number of problems of each severity.
  package static let limit = 100

  package private(set) var problems: [FileProblem] = []
  private var counts: [FileProblem.Severity: Int] = [:]

  /// Whether there is an error.
  package var hasErrors: Bool { counts[.error] != nil }

  /// Whether further errors are dropped, so that their messages need not be computed.
  package var isFull: Bool { counts[.error, default: 0] >= Self.limit }

  /// Creates an empty list.
  package init() {}

  /// Adds a problem, unless there are too many.
  package func add(_ problem: FileProblem) {
    let count = counts[problem.severity, default: 0] + 1
    counts[problem.severity] = count
    if count <= Self.limit { problems.append(problem) }
    if count == Self.limit + 1 {
      problems.append(
        FileProblem(
          problem.severity, file: problem.file, "more than \(Self.limit) problems, the others are omitted",
          hint: "correct these first"))
    }
  }

  /// Adds an error in the text of a file.
  package func add(_ error: YAMLError, file: String, path: String = "") {
    add(FileProblem(file: file, at: error.position, path: path, error.message, hint: error.hint))
  }

  /// All problems by file and position. Problems without a position come first.
  package var inOrder: [FileProblem] {
    let files = problems.reduce(into: [String: Int]()) { $0[$1.file] = $0[$1.file] ?? $0.count }
    return problems.enumerated().sorted { one, other in
      let left = (files[one.element.file] ?? 0, one.element.line ?? 0, one.element.column ?? 0, one.offset)
      return left < (files[other.element.file] ?? 0, other.element.line ?? 0, other.element.column ?? 0, other.offset)
    }.map(\.element)
  }
}
