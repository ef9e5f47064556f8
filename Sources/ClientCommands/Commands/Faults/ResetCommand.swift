import ArgumentParser
import HTTPTypes
import APNSMockNotation

/// `apns-mock reset`
struct ResetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reset", abstract: "Reset the server or parts of it to the initial state.",
    discussion: """
      Without a flag: the inbox, added rules, the profile with its parameters and seed, counters, the clock, \
      devices and channels. \
      Trusted keys stay. With --scope only the pushes in it are removed, and their attempts are counted anew.
      """)

  @Flag(name: .long, help: "Remove all pushes.")
  var inbox = false

  @Flag(name: .long, help: "Remove all added rules.")
  var rules = false

  @Flag(
    name: .long,
    help: "Restore the initial fault profile and the server's certificate chain, and resume fault injection.")
  var profile = false

  @Flag(name: .long, help: "Reset the counters of rules and magic device tokens.")
  var counters = false

  @Flag(name: .long, help: "Set the clock to the machine's time.")
  var clock = false

  @Flag(
    name: .long, help: "Restore the devices of the fixtures; remove all others and the states of device tokens.")
  var devices = false

  @Flag(name: .long, help: "Restore the broadcast channels of the fixtures, and remove all others.")
  var channels = false

  @Option(
    name: .long,
    help: .value(
      "part",
      """
      Keep this part and reset all others: inbox, rules, profile, counters, clock, devices or channels; repeatable.
      """), completion: .list(["inbox", "rules", "profile", "counters", "clock", "devices", "channels"]))
  var keep: [String] = []

  @OptionGroup var scope: ScopeFlag
  @OptionGroup var flags: AdminFlags

  private struct Response: Decodable {
    var reset: [String]
    var deleted: Int?
  }

  func run() async throws {
    let parts = [
      ("inbox", inbox), ("rules", rules), ("profile", profile), ("counters", counters), ("clock", clock),
      ("devices", devices), ("channels", channels),
    ]
    let body = JSONWriter.object { writer in
      for (part, isChosen) in parts where isChosen { writer.member(part, true) }
      if !keep.isEmpty { writer.member("keep", keep) }
      if let scope = scope.scope { writer.member("scope", scope) }
    }
    let response = try await flags.request(.post, "/reset", body: body)
    let result = try response.decoded(Response.self)
    let removed = result.deleted.map { ", \($0.counted("push")) removed" } ?? ""
    flags.print(response, text: "reset: " + result.reset.joined(separator: ", ") + removed)
  }
}
