import APNSMockFaults
import APNSMockNotation

/// An error of starting a server, or of an operation on a running one.
public struct MockServerError: Error, Sendable, CustomStringConvertible {
  /// The kinds of errors.
  public enum Kind: Sendable {
    /// The server cannot listen on an address of its configuration.
    case addressUnavailable
    /// The folder of certificates, or a file of client authorities, cannot be used.
    case invalidCertificates
    /// A query, rule, profile, device token, key, verification or fixture is invalid.
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
  /// The path of the source file and the line of the wait or verification that failed; nil for other errors.
  public private(set) var location: (file: String, line: Int)?

  init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = Self.withoutFlags(description)
  }

  init(_ error: FilterError) { self.init(.invalidInput, error.description) }

  init(_ error: ProfileFailure) { self.init(.invalidInput, error.description) }

  /// Creates the error of a server that cannot start.
  init(ofStart error: any Error) {
    switch error {
    case let error as MockServerError: self = error
    case is ListenError: self.init(.addressUnavailable, "\(error)")
    case is FileFailure: self.init(.invalidInput, "\(error)")
    default: self.init(.invalidCertificates, "\(error)")
    }
  }

  /// Returns the same error with the call that failed.
  func at(_ file: String, _ line: Int) -> MockServerError {
    var error = self
    error.location = (file, line)
    return error
  }

  /// The flags in the texts that the library shares with the program, and what has the same effect in the library.
  private static let flags = [
    ("--max-bytes or --retain, or use --record all", "MockServer.Configuration.maxBytes"),
    ("--max-records, or use --record all", "MockServer.Configuration.maxRecords"),
    ("--max-records", "MockServer.Configuration.maxRecords"), ("--max-devices", "MockServer.Configuration.maxDevices"),
    ("--devices known", "MockServer.Configuration.requiresRegisteredDevices"),
    ("--topics known", "MockServer.Configuration.requiresKnownTopics"),
    ("--apns-plain", "MockServer.Configuration.apnsPlain"), ("--apns", "MockServer.Configuration.apns"),
    ("--proxy", "MockServer.Configuration.proxy"), ("--san", "MockServer.Configuration.certificateNames"),
    ("--client-ca", "MockServer.Configuration.clientAuthorities"),
    ("--certs", "MockServer.Configuration.certificates"), (" HOST:PORT", ""), (": apns-mock reset", " by reset()"),
  ]

  /// Returns a text of the program in the terms of the library.
  static func withoutFlags(_ text: String) -> String {
    guard text.contains("--") || text.contains("apns-mock reset") else { return text }
    return flags.reduce(text) { $0.replacing($1.0, with: $1.1) }
  }
}
