import ArgumentParser
import NIOHTTP1
import Notation

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
struct Halt: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "halt", abstract: "Pause fault injection; keep the active profile and rules.", shouldDisplay: false)

  @OptionGroup var flags: AdminFlags

  func run() async throws { try await flags.pauseFaults() }
}

/// `apns-mock resume`, the hidden former name of `faults resume`.
struct Resume: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resume", abstract: "Resume paused fault injection.", shouldDisplay: false)

  @OptionGroup var flags: AdminFlags

  func run() async throws { try await flags.resumeFaults() }
}

extension AdminFlags {
  /// Pauses fault injection and prints the answer.
  fileprivate func pauseFaults() async throws {
    let answer = try await ask(.POST, "/faults/halt")
    _ = try answer.succeeded()
    print(answer, text: "paused; to resume: apns-mock faults resume")
  }

  /// Resumes fault injection and prints the active profile.
  fileprivate func resumeFaults() async throws {
    let answer = try await ask(.POST, "/faults/resume")
    let profile = try await ask(.GET, "/profile").decoded(ActiveProfile.self)
    _ = try answer.succeeded()
    print(answer, text: profile.text)
  }
}

/// `apns-mock reset`
struct Reset: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reset", abstract: "Restore the state after start, or parts of it.",
    discussion: """
      Without a flag: the inbox, added rules, the profile with its parameters and seed, counters, the clock and devices. \
      Trusted keys stay.
      """)

  @Flag(name: .long, help: "Remove all pushes.")
  var inbox = false

  @Flag(name: .long, help: "Remove all added rules.")
  var rules = false

  @Flag(name: .long, help: "Restore the initial fault profile and resume fault injection.")
  var profile = false

  @Flag(name: .long, help: "Reset the counters of rules and magic device tokens.")
  var counters = false

  @Flag(name: .long, help: "Set the clock to the machine's time.")
  var clock = false

  @Flag(name: .long, help: "Forget all device tokens.")
  var devices = false

  @Option(
    name: .long,
    help: "Reset everything else: inbox, rules, profile, counters, clock or devices; repeatable.")
  var keep: [String] = []

  @OptionGroup var flags: AdminFlags

  private struct Answer: Decodable {
    var reset: [String]
  }

  func run() async throws {
    let scopes = [
      ("inbox", inbox), ("rules", rules), ("profile", profile), ("counters", counters), ("clock", clock),
      ("devices", devices),
    ]
    var writer = JSONWriter()
    writer.object { writer in
      for (scope, isChosen) in scopes where isChosen { writer.member(scope, true) }
      if !keep.isEmpty { writer.member("keep", keep) }
    }
    let answer = try await flags.ask(.POST, "/reset", body: writer.bytes)
    flags.print(answer, text: "reset: " + (try answer.decoded(Answer.self).reset.joined(separator: ", ")))
  }
}
