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
