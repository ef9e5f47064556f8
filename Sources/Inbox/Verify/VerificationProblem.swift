/// An error in a verification document, with its position.
public struct VerificationProblem: Sendable, Equatable, CustomStringConvertible {
  /// The JSON pointer to the invalid value; empty for the whole document.
  public let pointer: String
  /// The description of the error.
  public let message: String
  /// The fix.
  public let hint: String

  /// The position, error and fix on one line.
  public var description: String { (pointer.isEmpty ? "" : pointer + ": ") + message + ". " + hint }
}

/// The errors of an invalid verification document, all found in one pass.
public struct VerificationFailure: Error, Sendable, Equatable, CustomStringConvertible {
  /// The errors in the order of the document, at least one.
  public let problems: [VerificationProblem]

  /// One line for each error.
  public var description: String { problems.map(\.description).joined(separator: "\n") }
}
