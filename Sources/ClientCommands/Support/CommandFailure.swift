/// The exit codes of the program. Scripts rely on them.
package enum ExitStatus: Int32, Sendable {
  case done = 0
  /// An unexpected error, or a push that was rejected.
  case failed = 1
  /// An error in flags, variables, the config file, a fault profile or the certificate folder.
  case usage = 2
  /// A wait timed out.
  case timedOut = 3
  /// The server is unreachable or not ready.
  case unreachable = 4
  /// The result is unknown because records were evicted before they could be checked.
  case inconclusive = 5
  /// Another process uses the port.
  case portInUse = 6
  /// A second signal arrived (128 + SIGINT).
  case interrupted = 130
}

/// The failure of a command: a message that says what failed, where, and how to repair it, and an exit code.
package struct CommandFailure: Error, CustomStringConvertible {
  /// The exit code.
  package let code: Int32
  /// The status for the code; `failed` for the shell codes 126 and 127.
  package var status: ExitStatus { ExitStatus(rawValue: code) ?? .failed }
  /// The message without the prefix `error: `, one line per error.
  package let description: String
  /// The lines the program writes to standard error before it exits.
  package let lines: [String]

  package init(_ status: ExitStatus, _ description: String) { self.init(code: status.rawValue, description) }

  /// Creates a failure with a shell's exit code, such as 126 or 127.
  package init(code: Int32, _ description: String) {
    let errors = description.split(separator: "\n").map { String($0).onOneLine }
    self.init(code, errors.map { Self.prefix + $0 }, errors)
  }

  /// Creates a failure with complete lines: errors with their prefix, and the warnings or lists that belong to them.
  package init(_ status: ExitStatus, lines: [String]) {
    let lines = lines.map(\.onOneLine)
    self.init(
      status.rawValue, lines, lines.map { $0.hasPrefix(Self.prefix) ? String($0.dropFirst(Self.prefix.count)) : $0 })
  }

  private static let prefix = "error: "

  // Errors quote file content and server responses, so both callers have escaped line breaks in each of them.
  private init(_ code: Int32, _ lines: [String], _ errors: [String]) {
    self.code = code
    self.lines = lines
    description = errors.joined(separator: "\n")
  }
}
