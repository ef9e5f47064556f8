import Notation

/// The environment variables of the program.
enum Variables {
  /// What all their names begin with.
  static let prefix = "APNS_MOCK_"
  /// Names the config file, as `--config` does.
  static let config = prefix + "CONFIG"
  /// Names a file that holds the admin token, so that it need not stand in the environment.
  static let adminTokenFile = prefix + "ADMIN_TOKEN_FILE"
  /// Holds the text of a fault profile, in place of the name that `APNS_MOCK_PROFILE` would hold.
  static let profileInline = prefix + "PROFILE_INLINE"
  /// The CA of a running server, given to the children of `exec`.
  static let ca = prefix + "CA"
  /// The provider key of a running server, likewise, with its two ids.
  static let key = prefix + "KEY"
  static let keyID = prefix + "KEY_ID"
  static let teamID = prefix + "TEAM_ID"

  /// Every name that means something to some command of this program.
  static let known =
    Setting.allCases.map(\.variable) + [
      config, adminTokenFile, profileInline, ca, key, keyID, teamID,
    ]

  /// The known name that was probably meant by `name`. What all begin with does not count towards likeness.
  static func nearest(to name: String) -> String? {
    Spelling.nearest(to: String(name.dropFirst(prefix.count)), among: known.map { String($0.dropFirst(prefix.count)) })
      .map { prefix + $0 }
  }
}
