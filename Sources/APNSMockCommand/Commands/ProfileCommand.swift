import ArgumentParser

/// `apns-mock profile`
struct ProfileCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "profile",
    abstract: "Choose, look at and check fault profiles: what the server does to providers on purpose.",
    discussion: """
      ls, use, off, set, explain and reload ask a running server. lint, simulate and schema need none, nor does show for \
      files and built-in profiles.
      """,
    subcommands: [
      ProfileList.self, ProfileShow.self, ProfileUse.self, ProfileOff.self, ProfileSet.self, ProfileLint.self,
      ProfileExplain.self, ProfileSimulate.self, ProfileSchemaShow.self, ProfileReload.self,
    ])
}
