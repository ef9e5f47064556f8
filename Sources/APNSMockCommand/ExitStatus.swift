/// How the program ends, for scripts (CONTRACT.md, "Commands").
enum ExitStatus: Int32, Sendable {
  case done = 0
  /// An unexpected error, or a push that was rejected.
  case failed = 1
  /// A mistake in flags, variables, the config file or a fault profile, or in what lies in the certificate folder.
  case usage = 2
  /// A wait ended without what it waited for.
  case timedOut = 3
  /// No server there, or one that is not ready.
  case unreachable = 4
  /// Records were dropped before anybody could look at them, so nobody knows.
  case inconclusive = 5
  /// Another program has the port.
  case portInUse = 6
  /// A second signal came (128 + SIGINT).
  case interrupted = 130
}

/// What a command could not do, in words for people (what, where, how to repair it) and as an exit code for scripts.
struct CommandFailure: Error, CustomStringConvertible {
  /// What it ends with.
  let code: Int32
  /// The meaning of the code; an unexpected error for the codes of shells, 126 and 127.
  var status: ExitStatus { ExitStatus(rawValue: code) ?? .failed }
  /// One line, or one for each of several errors.
  let description: String
  /// What the program says at its end.
  let lines: [String]

  init(_ status: ExitStatus, _ description: String) { self.init(code: status.rawValue, description) }

  /// A failure with a code of shells.
  init(code: Int32, _ description: String) {
    let errors = description.split(separator: "\n").map { String($0).onOneLine }
    self.init(code, errors.map { "error: \($0)" }, errors)
  }

  /// A failure whose lines say by themselves what they are, as those of a compiler do: `file:12:7: …`.
  init(_ status: ExitStatus, lines: [String]) {
    let lines = lines.map(\.onOneLine)
    self.init(status.rawValue, lines, lines)
  }

  // Errors quote what stands in files or came from a server: both callers have made each of them one line.
  private init(_ code: Int32, _ lines: [String], _ errors: [String]) {
    self.code = code
    self.lines = lines
    description = errors.joined(separator: "\n")
  }
}
