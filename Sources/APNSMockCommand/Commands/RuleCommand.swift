import ArgumentParser
import NIOHTTP1
import Notation

/// `apns-mock rule`
struct RuleCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rule", abstract: "Add, list, explain and remove rules in addition to the fault profile.",
    subcommands: [RuleAdd.self, RuleList.self, RuleRemove.self, RuleExplain.self])
}

/// `apns-mock rule ls`
struct RuleList: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List added rules in the order of evaluation, the newest first.",
    discussion:
      "Prints a table on a terminal; otherwise one line per rule: columns separated by tabs, or with --json an object.")

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let answer = try await flags.ask(.GET, "/rules")
    flags.print(itemsOf: answer, RuleInForce.table(try answer.decoded(RulesBeside.self).items))
  }
}

/// `apns-mock rule rm`
struct RuleRemove: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm", abstract: "Remove an added rule.", discussion: "To remove all of them: apns-mock reset --rules")

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
    commandName: "explain", abstract: "Explain what an active rule evaluated and why it fired or did not.")

  @Argument(help: "The name of an added rule or a rule of the profile.")
  var name: String

  @OptionGroup var flags: AdminFlags

  func run() async throws { try await flags.explain([name]) }
}
