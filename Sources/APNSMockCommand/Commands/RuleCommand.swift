import ArgumentParser
import NIOHTTP1
import Notation

/// `apns-mock rule`
struct RuleCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rule", abstract: "Add single rules beside the fault profile, look at them, remove them.",
    subcommands: [RuleAdd.self, RuleList.self, RuleRemove.self, RuleExplain.self])
}

/// `apns-mock rule ls`
struct RuleList: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List the rules beside the profile, the newest first, as they are looked at.",
    discussion: "A table on a terminal; otherwise a line each, its columns separated by tabs, or with --json an object."
  )

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let answer = try await flags.ask(.GET, "/rules")
    flags.print(itemsOf: answer, RuleInForce.table(try answer.decoded(RulesBeside.self).items))
  }
}

/// `apns-mock rule rm`
struct RuleRemove: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm", abstract: "Remove a rule beside the profile.", discussion: "All of them: apns-mock reset --rules"
  )

  @Argument(help: "The rule's name.")
  var name: String

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    _ = try await flags.ask(.DELETE, "/rules/\(name.percentEncoded)").succeeded()
    flags.output.print(text: "\(name.onOneLine) removed") { $0.member("removed", name) }
  }
}

/// `apns-mock rule explain`
struct RuleExplain: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain", abstract: "Say of a rule in force what it looked at, and why it fired or did not.")

  @Argument(help: "The rule's name; rules of the profile have one too.")
  var name: String

  @OptionGroup var flags: AdminFlags

  func run() async throws { try await flags.explain([name]) }
}
