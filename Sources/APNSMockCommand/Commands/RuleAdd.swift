import ArgumentParser
import Faults
import NIOHTTP1
import Notation
import Yams

/// `apns-mock rule add`
struct RuleAdd: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add a rule beside the profile; it goes before the profile's own.",
    discussion: """
      A rule as in a profile file, YAML or JSON. For example:
      apns-mock rule add '{"name": "down", "do": {"respond": {"status": 503}}}' --ttl 30s
      A rule with the name of one that is there takes its place.
      """)

  @Argument(help: "The rule: its JSON, a file with YAML or JSON, or - for standard input.")
  var rule: String

  @Option(name: .long, help: "How long it stays, as 30s or 5m. (default: as it says itself, or until it is removed)")
  var ttl: String?

  @OptionGroup var flags: AdminFlags

  func validate() throws { try TimeToLive.check(ttl) }

  func run() async throws {
    // No path begins with a brace, so JSON needs no flag of its own.
    let isGiven = rule.trimmed.hasPrefix("{")
    let text = isGiven ? rule : try Files.text(of: rule)
    // Judged here first, where its lines can be pointed at.
    let file = isGiven || rule == "-" ? "rule" : rule
    let read = try ProfileFailure.told { () throws(ProfileFailure) in try RuleFile.parse(text, file: file) }
    for warning in read.warnings { StandardStream.error.line(warning.description) }
    let sent = try ttl.map { try Self.text(text, ttl: $0) } ?? text
    let answer = try await flags.ask(.POST, "/rules", body: Array(sent.utf8), type: "application/yaml")
    let added = try answer.decoded(RuleInForce.self)
    let end = added.ends_in.map { ", ends in \($0)" } ?? ""
    flags.print(answer, text: "\(added.name): \(added.action) at \(added.at)\(end)".onOneLine)
  }

  /// The text of a rule, with another time to live.
  static func text(_ text: String, ttl: String) throws -> String {
    guard var node = try compose(yaml: text) else { return text }
    node["ttl"] = Node(ttl)
    return try serialize(node: node)
  }
}
