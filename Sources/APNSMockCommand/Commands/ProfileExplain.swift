import ArgumentParser
import NIOHTTP1
import Notation

/// `apns-mock profile explain`
struct ProfileExplain: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain", abstract: "Explain what active rules evaluated and why they fired or did not.")

  @Argument(help: "A rule's name. (default: all active rules, added ones before the profile's)")
  var rule: String?

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    if let rule { return try await flags.explain([rule]) }
    let added = try await flags.ask(.GET, "/rules").decoded(RulesBeside.self).items
    let profile = try await flags.ask(.GET, "/profile").decoded(ProfileInForce.self)
    let names = (added + profile.rules).map(\.name)
    try await flags.explain(names.enumerated().filter { names.firstIndex(of: $1) == $0 }.map(\.element))
    if names.isEmpty { StandardStream.error.line("no rule is active: the profile is \(profile.text)") }
  }
}

/// The admin API's explanation of a rule.
private struct Explanation: Decodable {
  var text: String
}

extension AdminFlags {
  /// Prints the explanations of rules.
  func explain(_ rules: [String]) async throws {
    for rule in rules {
      let answer = try await ask(.GET, "/rules/\(rule.percentEncoded)/explain")
      print(answer, text: try answer.decoded(Explanation.self).text)
    }
  }
}
