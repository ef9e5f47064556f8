import ArgumentParser
import APNSMockFaults
import HTTPTypes
import APNSMockNotation

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
    let response = try await flags.request(.get, "/rules")
    let rules = try response.decoded(AddedRules.self).items
    flags.output.print(ActiveRule.table(rules), objects: response.items)
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
    _ = try await flags.request(.delete, "/rules/\(name.percentEncoded)").succeeded()
    flags.output.print(text: "\(name.onOneLine) removed") { $0.member("removed", name) }
  }
}

/// `apns-mock rule explain`
struct RuleExplain: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain", abstract: "Explain what active rules evaluated and why they fired or did not.")

  @Argument(
    help: """
      The name of an added rule or a rule of the profile. (default: all active rules, added ones before the profile's)
      """)
  var name: String?

  @OptionGroup var flags: AdminFlags

  /// The admin API's explanation of a rule.
  private struct Explanation: Decodable {
    var text: String
  }

  func run() async throws {
    for rule in try await rules() {
      let response = try await flags.request(.get, "/rules/\(rule.percentEncoded)/explain")
      flags.print(response, text: try response.decoded(Explanation.self).text)
    }
  }

  /// Returns the name, or those of all active rules.
  private func rules() async throws -> [String] {
    if let name { return [name] }
    let added = try await flags.request(.get, "/rules").decoded(AddedRules.self).items
    let profile = try await flags.request(.get, "/profile").decoded(ActiveProfile.self)
    let names = (added + profile.rules).map(\.name)
    if names.isEmpty { StandardStream.error.line("no rule is active: the profile is \(profile.text)") }
    return names.enumerated().filter { names.firstIndex(of: $1) == $0 }.map(\.element)
  }
}

/// `apns-mock rule add`
struct RuleAdd: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add", abstract: "Add a rule; it is evaluated before the profile's rules.",
    discussion: """
      The rule has the syntax of a profile file, YAML or JSON. For example:
      apns-mock rule add '{"name": "down", "do": {"respond": {"status": 503}}}' --ttl 30s
      An added rule with the same name is replaced.
      """)

  @Argument(
    help: .value("rule", "The rule: YAML or JSON, a file with it, or - for standard input."),
    completion: .yamlOrJSON)
  var rule: String

  @Option(
    name: .long,
    help: .value(
      "duration", "Remove the rule after this time, such as 30s or 5m. (default: the rule's own ttl, else never)"))
  var ttl: String?

  @OptionGroup var flags: AdminFlags

  func validate() throws { try TimeToLive.check(ttl) }

  func run() async throws {
    // Text with a brace in front or with a key is a rule, not a path.
    let isGiven = rule.trimmed.hasPrefix("{") || rule.contains(": ")
    let text = isGiven ? rule : try Files.text(of: rule)
    // Validated locally first, because only here messages can point to lines of the file.
    let file = isGiven || rule == "-" ? "rule" : rule
    let read = try ProfileFailure.reporting { () throws(ProfileFailure) in
      try AddedRuleDefinition.parse(text, file: file)
    }
    for warning in read.warnings { StandardStream.error.line(warning.description) }
    let sent = try ttl.map { try Self.text(text, ttl: $0) } ?? text
    let response = try await flags.request(.post, "/rules", body: Array(sent.utf8), type: "application/yaml")
    let added = try response.decoded(ActiveRule.self)
    let end = added.endsIn.map { ", ends in \($0)" } ?? ""
    flags.print(response, text: "\(added.name): \(added.actionName ?? "-") at \(added.at)\(end)".onOneLine)
  }

  /// Returns the text of a rule with another time to live.
  static func text(_ text: String, ttl: String) throws -> String {
    guard let root = try? YAMLNode.parse(text), case .map(let entries) = root.content else { return text }
    var writer = JSONWriter()
    writer.object { writer in
      for entry in entries where entry.key != "ttl" {
        writer.name(entry.key)
        entry.value.write(to: &writer, keepsPlainScalars: true)
      }
      writer.member("ttl", ttl)
    }
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}

/// The response of `GET /rules`: the added rules, the newest first.
struct AddedRules: Decodable {
  var items: [ActiveRule]
}

/// An active rule: an added one or one of the profile.
struct ActiveRule: Decodable {
  var name: String
  var at: String
  var lookedAt: Int
  var fired: Int
  private var endsInMs: Int64?
  private var action: String?
  /// The action of an added rule, which is returned in full: an object with one member.
  private var `do`: [String: Ignored]?

  private struct Ignored: Decodable {
    init(from decoder: any Decoder) {}
  }

  /// The time until the rule ends, such as `4m59s`; nil if it does not end.
  var endsIn: String? { endsInMs.map(Self.text) }

  /// Returns the text of a remaining time, to the second from one second on.
  static func text(_ milliseconds: Int64) -> String {
    DurationFormat.text(.milliseconds(milliseconds < 1000 ? milliseconds : milliseconds / 1000 * 1000))
  }

  /// The name of the rule's action.
  var actionName: String? { action ?? `do`?.keys.first }

  /// Returns a table of rules.
  static func table(_ rules: [ActiveRule]) -> Table<ActiveRule> {
    Table(
      rows: rules,
      columns: [
        .init("NAME", \.name), .init("AT", \.at), .init("ACTION", \.actionName),
        .init("EVALUATED") { String($0.lookedAt) }, .init("FIRED") { String($0.fired) }, .init("ENDS IN", \.endsIn),
      ])
  }
}
