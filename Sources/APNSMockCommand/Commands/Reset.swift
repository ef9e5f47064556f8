import ArgumentParser
import NIOHTTP1
import Notation

/// `apns-mock reset`
struct Reset: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reset", abstract: "Set a server back for the next test.",
    discussion: "Without a flag: the inbox, the rules beside the profile, and all counters.")

  @Flag(name: .long, help: "Remove all pushes.")
  var inbox = false

  @Flag(name: .long, help: "Remove all rules beside the profile.")
  var rules = false

  @Flag(name: .long, help: "Take the fault profile out of force.")
  var profile = false

  @Flag(name: .long, help: "Begin counting anew, for rules and for magic device tokens.")
  var counters = false

  @Flag(name: .long, help: "Let the clock show the machine's time.")
  var clock = false

  @Flag(name: .long, help: "Forget all device tokens.")
  var devices = false

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
    }
    let answer = try await flags.ask(.POST, "/reset", body: writer.bytes)
    flags.print(answer, text: "reset: " + (try answer.decoded(Answer.self).reset.joined(separator: ", ")))
  }
}
