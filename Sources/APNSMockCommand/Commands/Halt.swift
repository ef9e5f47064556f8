import ArgumentParser
import NIOHTTP1

/// `apns-mock halt`
struct Halt: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "halt", abstract: "Stop all faults now; what is selected stays selected.")

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let answer = try await flags.ask(.POST, "/faults/halt")
    _ = try answer.succeeded()
    flags.print(answer, text: "halted; apns-mock resume lets faults go on")
  }
}

/// `apns-mock resume`
struct Resume: AsyncParsableCommand {
  static let configuration = CommandConfiguration(commandName: "resume", abstract: "Let faults go on that were halted.")

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let answer = try await flags.ask(.POST, "/faults/resume")
    let profile = try await flags.ask(.GET, "/profile").decoded(ProfileInForce.self)
    _ = try answer.succeeded()
    flags.print(answer, text: profile.text)
  }
}
