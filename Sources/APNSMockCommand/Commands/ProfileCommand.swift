import ArgumentParser

/// `apns-mock profile`
struct ProfileCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "profile",
    abstract: "Select, show and validate fault profiles.",
    discussion: """
      ls, use, off, set, explain and reload require a running server. lint, simulate and schema do not, nor does show for \
      files and built-in profiles.
      """,
    subcommands: [
      ProfileList.self, ProfileShow.self, ProfileUse.self, ProfileOff.self, ProfileSet.self, ProfileLint.self,
      ProfileExplain.self, ProfileSimulate.self, ProfileSchemaShow.self, ProfileReload.self,
    ])
}
