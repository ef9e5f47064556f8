import ArgumentParser
import NIOHTTP1

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

  func run() async throws { try await flags.pauseFaults() }
}

/// `apns-mock faults resume`
struct FaultsResume: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "resume", abstract: "Resume paused fault injection.")

  @OptionGroup var flags: AdminFlags

  func run() async throws { try await flags.resumeFaults() }
}

/// `apns-mock halt`, the hidden former name of `faults pause`.
struct HaltCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "halt", abstract: "Pause fault injection; keep the active profile and rules.", shouldDisplay: false)

  @OptionGroup var flags: AdminFlags

  func run() async throws { try await flags.pauseFaults() }
}

/// `apns-mock resume`, the hidden former name of `faults resume`.
struct ResumeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume", abstract: "Resume paused fault injection.", shouldDisplay: false)

  @OptionGroup var flags: AdminFlags

  func run() async throws { try await flags.resumeFaults() }
}

extension AdminFlags {
  /// Pauses fault injection and prints the result.
  fileprivate func pauseFaults() async throws {
    let response = try await request(.POST, "/faults/halt")
    _ = try response.succeeded()
    print(response, text: "paused; to resume: apns-mock faults resume")
  }

  /// Resumes fault injection and prints the active profile.
  fileprivate func resumeFaults() async throws {
    let response = try await request(.POST, "/faults/resume")
    let profile = try await request(.GET, "/profile").decoded(ActiveProfile.self)
    _ = try response.succeeded()
    print(response, text: profile.text)
  }
}
