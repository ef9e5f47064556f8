import APNSMockRules
import APNSMockFaultModel
import Foundation
import APNSMockNotation
import Testing

@testable import APNSMockFaults

/// Compares `ProfileReference.md` with the tables that the parser and the JSON Schema of profile files use.
@Suite struct ProfileReferencePageTests {
  private static let tables: String = {
    var text = "## Profile\n\n\(Profile.schema.description.table)"
    text += section(["parameter", "limits", "stop"])
    text += """

      ### `apns`

      The keys and their meaning are the settings of [Rule modes].

      ## Rule

      \(RuleValues.schema.description.table)
      ## `when`

      The keys of `when`, all of which must apply:

      \(Condition.schema.description.table)\(section(["provider_token", "match"]))
      ## `trigger`

      The keys of `trigger`, all of which must allow the rule to fire:

      \(Trigger.schema.description.table)\(section(["ramp", "rate", "window"]))
      ## Actions

      An action is a map with one key: `do: {close: }`. After an action with *continues*, later rules are evaluated as well, unless the
      rule's `then` is `stop`.

      | action | at | continues | description |
      |---|---|---|---|

      """
    for name in Action.Name.allCases {
      let points = InjectionPoint.allCases.filter(name.injectionPoints.contains)
      let at =
        points.count == InjectionPoint.allCases.count
        ? "any" : points.map { "`\($0.rawValue)`" }.joined(separator: ", ")
      let continues = name.continues.map { $0 ? "yes" : "no" } ?? "as the chosen action"
      text += "| `\(name.rawValue)` | \(at) | \(continues) | \(name.summary) |\n"
    }
    var described: Set = ["ago"]
    for name in Action.Name.allCases {
      guard case .map(let parameters) = name.schema.form else { continue }
      for map in parameters.withNestedMaps where described.insert(map.name).inserted {
        let isNested = map.name != parameters.name && map.name != "response"
        text += "\n### `\(isNested ? "\(name.rawValue): \(map.name)" : name.rawValue)`\n\n\(map.table)"
      }
    }
    text += """

      ### `choose`

      A list of actions, each with an optional `weight` (\(SchemaParser.weightSchema.form.words); default 1):
      `choose: [{weight: 3, pass: }, {close: }]`.

      """
    return text
  }()

  /// The headings of maps whose name in the JSON Schema is not their key.
  private static let headings = [
    "parameter": "`params`", "provider_token": "`jwt`", "match": "Requirements on a value",
    "ramp": "`probability: ramp`", "rate": "`over_limit`",
  ]

  private static func section(_ names: [String]) -> String {
    MapDescription.all.filter { names.contains($0.name) }.reduce(into: "") { text, map in
      text += "\n### \(headings[map.name] ?? "`\(map.name)`")\n\n\(map.table)"
    }
  }

  private static let page = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Documentation/ProfileReference.md")

  /// To update the page after a change of the tables: `UPDATE_PAGES=1 swift test --filter ProfileReferencePageTests`.
  @Test func describesEveryKeyAndAction() throws {
    let text = try String(contentsOf: Self.page, encoding: .utf8)
    let start = try #require(text.range(of: "## Profile\n"), "the page has no tables").lowerBound
    let end = try #require(text.range(of: "\n[Faults]: Faults.md"), "the page has no links").lowerBound
    if ProcessInfo.processInfo.environment["UPDATE_PAGES"] != nil {
      try text.replacingCharacters(in: start..<end, with: Self.tables).write(
        to: Self.page, atomically: true, encoding: .utf8)
    } else {
      let lines = text[start..<end].split(separator: "\n", omittingEmptySubsequences: false)
      let expected = Self.tables.split(separator: "\n", omittingEmptySubsequences: false)
      for (line, wanted) in zip(lines, expected) { try #require(line == wanted) }
      #expect(lines.count == expected.count)
    }
  }
}

extension MapDescription {
  fileprivate var table: String {
    fields.reduce(into: "| key | value | default | description |\n|---|---|---|---|\n") { text, field in
      let defaultText = field.isRequired ? "required" : field.defaultText ?? ""
      text += "| `\(field.name)` | \(field.form.words) | \(defaultText) | \(field.summary) |\n"
    }
  }
}

extension SchemaForm {
  /// The form in words of Markdown.
  fileprivate var words: String {
    switch self {
    case .text(_?, _): "name"
    case .text(nil, let examples): examples.isEmpty ? "string" : examples.map { "`\($0)`" }.joined(separator: ", ")
    case .word(let words): words.map { "`\($0)`" }.joined(separator: ", ")
    case .integer(let range):
      range.upperBound >= Int(Int32.max)
        ? "whole number from \(range.lowerBound)" : "whole number from \(range.lowerBound) to \(range.upperBound)"
    case .number(let range):
      "number \(range.isMinimumExcluded ? "above" : "from") \(range.minimum.formatted())"
        + (range.maximum < 1e9 ? " to \(range.maximum.formatted())" : "")
    case .size: "number of bytes such as `4096` or `4K`"
    case .duration(let isPositive): isPositive ? "duration above zero" : "duration"
    case .time: "time such as `2026-01-31T12:00:00Z`"
    case .null: "nothing"
    case .flag: "`true` or `false`"
    case .scalar: "string, number or Boolean"
    case .json: "map or list"
    case .list(let element): "list: \(element.words)"
    case .map(let map) where map.name == "response": "see `respond`"
    case .map(let map): "map: \(map.fields.map { "`\($0.name)`" }.joined(separator: ", "))"
    case .named(let value): "map with any keys: \(value.words)"
    case .reference("apns"): "map, see `apns`"
    case .reference("match_duration"): "requirement with `gt` or `lt`"
    case .reference("condition"): "map, see `when`"
    case .reference(let name): name == "action" || name == "choice" ? "action" : "requirement"
    case .either(let value, .reference(let name)) where name.hasPrefix("match_"): "\(value.words), or a requirement"
    case .either(let one, let other): "\(one.words); or \(other.words)"
    }
  }
}
