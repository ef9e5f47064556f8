package import APNSMockNotation

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension [String: String] {
  /// Returns the value of a variable. Empty variables count as unset, as in shell scripts and Compose files.
  package func given(_ name: String) -> String? {
    guard let value = self[name], !value.isEmpty else { return nil }
    return value
  }
}

/// The environment variables of the program.
package enum EnvironmentVariables {
  /// The common prefix of all names.
  package static let prefix = "APNS_MOCK_"
  /// The path of the config file, like `--config`.
  package static let config = prefix + "CONFIG"
  /// The path of a file with the admin token, which keeps the token out of the environment.
  package static let adminTokenFile = prefix + "ADMIN_TOKEN_FILE"
  /// The text of a fault profile, instead of the name in `APNS_MOCK_PROFILE`.
  package static let profileInline = prefix + "PROFILE_INLINE"
  /// The path of the server's CA, set by `exec` for its program.
  static let ca = prefix + "CA"
  /// The path of the server's provider key, its key id and team id, set by `exec` for its program.
  static let key = prefix + "KEY"
  static let keyID = prefix + "KEY_ID"
  static let teamID = prefix + "TEAM_ID"
  /// The run that `exec` has started, in which the client libraries record the tests of its program.
  package static let run = prefix + "RUN"
  /// The folder in which servers leave their pushes and runs at their end, set by `exec` for its report.
  package static let exports = prefix + "EXPORTS"
  /// The folder for the reports of the client libraries.
  static let reports = prefix + "REPORTS"
  /// The path of the program, with which the client libraries of this project start it.
  package static let binary = prefix + "BINARY"

  /// The names of all variables that any command uses.
  package static let known =
    Setting.allCases.map(\.variable) + [
      config, adminTokenFile, profileInline, ca, key, keyID, teamID, run, exports, reports, binary,
    ]

  /// Returns the known name most similar to `name`, compared without the prefix.
  package static func nearest(to name: String) -> String? {
    Spelling.nearest(to: String(name.dropFirst(prefix.count)), among: known.map { String($0.dropFirst(prefix.count)) })
      .map { prefix + $0 }
  }
}

/// The environment of this process.
package enum Environment {
  /// All environment variables.
  package static var variables: [String: String] { ProcessInfo.processInfo.environment }
}

/// An error in a setting, in one line: the source, the problem and the repair.
package struct SettingError: Error, Equatable, CustomStringConvertible {
  package let description: String

  package init(_ description: String) { self.description = description }

  /// Creates an error for an invalid value.
  ///
  /// - Parameter source: The flag, the variable, or the config file line.
  package init(_ bad: InvalidSettingValue, from source: String) {
    description = "\(source): \"\(bad.value)\" is invalid: expected \(bad.allowed)"
  }
}
