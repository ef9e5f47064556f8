/// What the server says of the fault profile in force, as far as commands show it.
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
    if halted { parts.append("halted: apns-mock resume lets it go on") }
    return parts.joined(separator: ", ").onOneLine
  }
}

/// The rules beside the profile, the newest first.
struct RulesBeside: Decodable {
  var items: [RuleInForce]
}

/// A rule in force, of the profile or beside it.
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
    // A rule beside the profile is told whole: its action is an object with one member.
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

  /// Rules in columns.
  static func table(_ rules: [RuleInForce]) -> Table {
    Table(
      header: ["NAME", "AT", "ACTION", "LOOKED AT", "FIRED", "ENDS IN"],
      rows: rules.map { rule in
        [rule.name, rule.at, rule.action, String(rule.looked_at), String(rule.fired), rule.ends_in ?? "-"]
          .map(\.onOneLine)
      })
  }
}
