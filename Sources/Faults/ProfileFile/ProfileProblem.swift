package import APNSMockNotation

/// An error or a warning in a profile or a rule.
package typealias ProfileProblem = FileProblem

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
