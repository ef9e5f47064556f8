import ArgumentParser
import HTTPTypes

/// `apns-mock faults`
struct FaultsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "faults", abstract: "Pause or resume fault injection.",
    subcommands: [FaultsPause.self, FaultsResume.self])
}

/// `apns-mock faults pause`
struct FaultsPause: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pause", abstract: "Pause fault injection; keep the active profile and rules.")

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let response = try await flags.request(.post, "/faults/halt")
    _ = try response.succeeded()
    flags.print(response, text: "paused; to resume: apns-mock faults resume")
  }
}

/// `apns-mock faults resume`
struct FaultsResume: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "resume", abstract: "Resume paused fault injection.")

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let response = try await flags.request(.post, "/faults/resume")
    let profile = try await flags.request(.get, "/profile").decoded(ActiveProfile.self)
    _ = try response.succeeded()
    flags.print(response, text: profile.text)
  }
}
