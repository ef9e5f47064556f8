import Notation

/// The environment variables of the program.
enum Variables {
  /// The common prefix of all names.
  static let prefix = "APNS_MOCK_"
  /// The path of the config file, like `--config`.
  static let config = prefix + "CONFIG"
  /// The path of a file with the admin token, which keeps the token out of the environment.
  static let adminTokenFile = prefix + "ADMIN_TOKEN_FILE"
  /// The text of a fault profile, instead of the name in `APNS_MOCK_PROFILE`.
  static let profileInline = prefix + "PROFILE_INLINE"
  /// The path of the server's CA, set by `exec` for its program.
  static let ca = prefix + "CA"
  /// The path of the server's provider key, its key id and team id, set by `exec` for its program.
  static let key = prefix + "KEY"
  static let keyID = prefix + "KEY_ID"
  static let teamID = prefix + "TEAM_ID"

  /// The names of all variables that any command uses.
  static let known =
    Setting.allCases.map(\.variable) + [
      config, adminTokenFile, profileInline, ca, key, keyID, teamID,
    ]

  /// Returns the known name most similar to `name`, compared without the prefix.
  static func nearest(to name: String) -> String? {
    Spelling.nearest(to: String(name.dropFirst(prefix.count)), among: known.map { String($0.dropFirst(prefix.count)) })
      .map { prefix + $0 }
  }
}
