import FaultModel
import Faults

/// The admin API's description of a fault profile.
struct ListedProfile: Decodable {
  var name: String
  var summary: String
  var origin: String
  var active: Bool
  var params: [Knob]
  /// The profile's source, if requested.
  var source: String?
  /// The profile's problems, if requested.
  var problems: [ProfileProblem]?

  /// A parameter.
  struct Knob: Decodable {
    var name: String
    var type: String
    var value: Scalar
    var min: Scalar?
    var max: Scalar?
    var help: String?
  }

  /// A parameter's value of any type, as text.
  struct Scalar: Decodable {
    var text: String

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if let flag = try? value.decode(Bool.self) {
        text = String(flag)
      } else if let whole = try? value.decode(Int64.self) {
        text = String(whole)
      } else if let number = try? value.decode(Double.self) {
        text = String(number)
      } else {
        text = try value.decode(String.self)
      }
    }
  }

  /// Returns a table of profiles.
  static func table(_ profiles: [ListedProfile]) -> Table {
    Table(
      header: ["NAME", "STATE", "PARAMETERS", "ORIGIN", "SUMMARY"],
      rows: profiles.map { profile in
        let knobs = profile.params.map { "\($0.name)=\($0.value.text)" }.joined(separator: " ")
        let state = profile.active ? "active" : "-"
        return [profile.name, state, knobs.isEmpty ? "-" : knobs, profile.origin, profile.summary].map(\.onOneLine)
      })
  }

  /// The description for people.
  var text: String {
    var lines = ["\(name)  \(origin)\(active ? ", active" : "")".onOneLine]
    if !summary.isEmpty { lines.append(summary.onOneLine) }
    if !params.isEmpty {
      let knobs = Table(
        header: ["PARAMETER", "TYPE", "VALUE", "RANGE", ""],
        rows: params.map { [$0.name, $0.type, $0.value.text, $0.range, $0.help ?? ""].map(\.onOneLine) })
      lines += ["", knobs.aligned(coloured: false).trimmed]
    }
    if let source { lines += ["", source.trimmed] }
    return lines.joined(separator: "\n")
  }
}

extension ListedProfile.Knob {
  fileprivate var range: String {
    min == nil && max == nil ? "-" : "\(min?.text ?? "")..\(max?.text ?? "")"
  }
}

/// The admin API's description of the active fault profile, with the members that commands show.
struct ActiveProfile: Decodable {
  var summary: String
  var reference: String
  var seed: UInt64
  var halted: Bool
  var ends_in: String?
  var rules: [ActiveRule]

  /// `flaky-503?rate=0.4, seed 7, ends in 4m59s`.
  var text: String {
    var parts = [reference, "seed \(seed)"]
    if let ends_in { parts.append("ends in \(ends_in)") }
    if halted { parts.append("paused; to resume: apns-mock faults resume") }
    return parts.joined(separator: ", ").onOneLine
  }
}

/// The added rules, the newest first.
struct AddedRules: Decodable {
  var items: [ActiveRule]
}

/// An active rule: an added one or one of the profile.
struct ActiveRule: Decodable {
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
  static func table(_ rules: [ActiveRule]) -> Table {
    Table(
      header: ["NAME", "AT", "ACTION", "EVALUATED", "FIRED", "ENDS IN"],
      rows: rules.map { rule in
        [rule.name, rule.at, rule.action, String(rule.looked_at), String(rule.fired), rule.ends_in ?? "-"]
          .map(\.onOneLine)
      })
  }
}
