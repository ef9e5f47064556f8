/// How the program ends, for scripts (CONTRACT.md, "Commands").
enum ExitStatus: Int32, Sendable {
  case done = 0
  /// An unexpected error, or a push that was rejected.
  case failed = 1
  /// A mistake in flags, variables or the config file, or in what lies in the certificate folder.
  case usage = 2
  /// A wait ended without what it waited for.
  case timedOut = 3
  /// No server there, or one that is not ready.
  case unreachable = 4
  /// Another program has the port.
  case portInUse = 6
  /// A second signal came (128 + SIGINT).
  case interrupted = 130
}

/// What a command could not do, in words for people (what, where, how to repair it) and as an exit code for scripts.
struct CommandFailure: Error, CustomStringConvertible {
  let status: ExitStatus
  /// One line, or one for each of several errors.
  let description: String

  init(_ status: ExitStatus, _ description: String) {
    self.status = status
    self.description = description
  }
}
