/// One thing that is wrong in what was expected, and where.
public struct VerificationProblem: Sendable, Equatable, CustomStringConvertible {
  /// The JSON pointer of the value that is wrong; empty for the whole document.
  public let pointer: String
  /// What is wrong.
  public let message: String
  /// How to repair it.
  public let hint: String

  /// All of it in one line.
  public var description: String { (pointer.isEmpty ? "" : pointer + ": ") + message + ". " + hint }
}

/// Why a document cannot be used: everything that is wrong with it, found in one pass.
public struct VerificationFailure: Error, Sendable, Equatable, CustomStringConvertible {
  /// At least one, in the order of the document.
  public let problems: [VerificationProblem]

  /// A line for each.
  public var description: String { problems.map(\.description).joined(separator: "\n") }
}
