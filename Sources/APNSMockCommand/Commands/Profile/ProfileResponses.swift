import FaultModel
import Faults

/// The admin API's description of a fault profile.
struct ListedProfile: Decodable {
  var name: String
  var summary: String
  var origin: String
  var active: Bool
  var params: [Parameter]
  /// The profile's source, if requested.
  var source: String?
  /// The profile's problems, if requested.
  var problems: [ProfileProblem]?

  /// A parameter.
  struct Parameter: Decodable {
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
  static func table(_ profiles: [ListedProfile]) -> Table<ListedProfile> {
    Table(
      rows: profiles,
      columns: [
        .init("NAME", \.name), .init("STATE") { $0.active ? "active" : nil },
        .init("PARAMETERS") { profile in
          profile.params.isEmpty
            ? nil : profile.params.map { "\($0.name)=\($0.value.text)" }.joined(separator: " ")
        },
        .init("ORIGIN", \.origin), .init("SUMMARY", \.summary),
      ])
  }

  /// The description for people.
  var text: String {
    var lines = ["\(name)  \(origin)\(active ? ", active" : "")".onOneLine]
    if !summary.isEmpty { lines.append(summary.onOneLine) }
    if !params.isEmpty {
      let table = Table<Parameter>(
        rows: params,
        columns: [
          .init("PARAMETER", \.name), .init("TYPE", \.type), .init("VALUE", \.value.text), .init("RANGE", \.range),
          .init("") { $0.help ?? "" },
        ])
      lines += ["", table.aligned(colored: false).trimmed]
    }
    if let source { lines += ["", source.trimmed] }
    return lines.joined(separator: "\n")
  }
}

extension ListedProfile.Parameter {
  fileprivate var range: String? {
    min == nil && max == nil ? nil : "\(min?.text ?? "")..\(max?.text ?? "")"
  }
}

/// The admin API's description of the active fault profile, with the members that commands show.
struct ActiveProfile: Decodable {
  var summary: String
  var reference: String
  var seed: UInt64
  var halted: Bool
  var endsIn: String?
  var rules: [ActiveRule]

  /// `flaky-503?rate=0.4, seed 7, ends in 4m59s`.
  var text: String {
    var parts = [reference, "seed \(seed)"]
    if let endsIn { parts.append("ends in \(endsIn)") }
    if halted { parts.append("paused; to resume: apns-mock faults resume") }
    return parts.joined(separator: ", ").onOneLine
  }
}

/// The response of `GET /profiles`.
struct ProfilesPage: Decodable {
  var items: [ListedProfile]
  var problems: [ProfileProblem]?
}
