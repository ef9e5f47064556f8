/// The admin API's description of the active fault profile, with the members that commands show.
struct ProfileInForce: Decodable {
  var summary: String
  var reference: String
  var seed: UInt64
  var halted: Bool
  var ends_in: String?
  var rules: [RuleInForce]

  /// `flaky-503?rate=0.4, seed 7, ends in 4m59s`.
  var text: String {
    var parts = [reference, "seed \(seed)"]
    if let ends_in { parts.append("ends in \(ends_in)") }
    if halted { parts.append("paused; to resume: apns-mock faults resume") }
    return parts.joined(separator: ", ").onOneLine
  }
}

/// The added rules, the newest first.
struct RulesBeside: Decodable {
  var items: [RuleInForce]
}

/// An active rule: an added one or one of the profile.
struct RuleInForce: Decodable {
  var name: String
  var at: String
  var action: String
  var looked_at: Int
  var fired: Int
  var ends_in: String?

  init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: Member.self)
    name = try members.decode(String.self, forKey: .name)
    at = try members.decode(String.self, forKey: .at)
    looked_at = try members.decode(Int.self, forKey: .looked_at)
    fired = try members.decode(Int.self, forKey: .fired)
    ends_in = try members.decodeIfPresent(String.self, forKey: .ends_in)
    // Added rules are returned in full: their action is an object with one member.
    action =
      try members.decodeIfPresent(String.self, forKey: .action)
      ?? members.nestedContainer(keyedBy: AnyName.self, forKey: .do).allKeys.first?.stringValue ?? "-"
  }

  private enum Member: CodingKey {
    case name, at, action, `do`, looked_at, fired, ends_in
  }

  private struct AnyName: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  /// Returns a table of rules.
  static func table(_ rules: [RuleInForce]) -> Table {
    Table(
      header: ["NAME", "AT", "ACTION", "EVALUATED", "FIRED", "ENDS IN"],
      rows: rules.map { rule in
        [rule.name, rule.at, rule.action, String(rule.looked_at), String(rule.fired), rule.ends_in ?? "-"]
          .map(\.onOneLine)
      })
  }
}
