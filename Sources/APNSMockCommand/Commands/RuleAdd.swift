import ArgumentParser
import Faults
import NIOHTTP1
import Notation
import Yams

/// `apns-mock rule add`
struct RuleAdd: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add a rule; it is evaluated before the profile's rules.",
    discussion: """
      The rule has the syntax of a profile file, YAML or JSON. For example:
      apns-mock rule add '{"name": "down", "do": {"respond": {"status": 503}}}' --ttl 30s
      An added rule with the same name is replaced.
      """)

  @Argument(help: "The rule: its JSON, a file with YAML or JSON, or - for standard input.")
  var rule: String

  @Option(
    name: .long, help: "Remove the rule after this time, such as 30s or 5m. (default: the rule's own ttl, else never)")
  var ttl: String?

  @OptionGroup var flags: AdminFlags

  func validate() throws { try TimeToLive.check(ttl) }

  func run() async throws {
    // Text that begins with a brace is JSON, not a path.
    let isGiven = rule.trimmed.hasPrefix("{")
    let text = isGiven ? rule : try Files.text(of: rule)
    // Validated locally first, because only here messages can point to lines of the file.
    let file = isGiven || rule == "-" ? "rule" : rule
    let read = try ProfileFailure.told { () throws(ProfileFailure) in try RuleFile.parse(text, file: file) }
    for warning in read.warnings { StandardStream.error.line(warning.description) }
    let sent = try ttl.map { try Self.text(text, ttl: $0) } ?? text
    let answer = try await flags.ask(.POST, "/rules", body: Array(sent.utf8), type: "application/yaml")
    let added = try answer.decoded(RuleInForce.self)
    let end = added.ends_in.map { ", ends in \($0)" } ?? ""
    flags.print(answer, text: "\(added.name): \(added.action) at \(added.at)\(end)".onOneLine)
  }

  /// Returns the text of a rule with another time to live.
  static func text(_ text: String, ttl: String) throws -> String {
    guard var node = try compose(yaml: text) else { return text }
    node["ttl"] = Node(ttl)
    return try serialize(node: node)
  }
}
