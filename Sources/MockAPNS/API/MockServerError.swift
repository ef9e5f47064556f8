import APNSMockFaults
import APNSMockNotation

/// An error of an operation on a running server.
public struct MockServerError: Error, Sendable, CustomStringConvertible {
  /// The kinds of errors.
  public enum Kind: Sendable {
    /// A query, rule, profile, device token, key or verification is invalid.
    case invalidInput
    /// The limit of rules, devices or keys is reached.
    case limitReached
    /// Too few pushes matched within the timeout of a wait.
    case timedOut
    /// A verification failed.
    case verificationFailed
    /// The result is unknown, because pushes were evicted from the full inbox.
    case inconclusive
    /// The task was cancelled during a wait or a verification.
    case cancelled
  }

  /// The kind of the error.
  public let kind: Kind
  /// The problem and its solution.
  public let description: String

  init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }

  init(_ error: FilterError) { self.init(.invalidInput, error.description) }

  init(_ error: ProfileFailure) { self.init(.invalidInput, error.description) }
}
