import FaultModel
import Foundation
import Testing

@testable import Faults

/// Compares `ProfileReference.md` with the tables that the parser and the JSON Schema of profile files use.
@Suite struct ProfileReferencePageTests {
  /// The maps of a profile file with the headings of their sections.
  private static let sections: [(heading: String, keys: any FileKey.Type)] = [
    ("Profile", ProfileKey.self), ("`params`", ParameterKey.self), ("`limits`", LimitsKey.self),
    ("`stop`", StopKey.self), ("Rule", RuleKey.self), ("`when`", ConditionKey.self),
    ("`jwt`", ProviderTokenKey.self), ("Requirements on a value", MatchKey.self), ("`trigger`", TriggerKey.self),
    ("`ramp`", RampKey.self), ("`over_limit`", RateKey.self), ("`window`", WindowKey.self),
  ]

  private static let tables: String = {
    var text = ""
    for (heading, keys) in sections { text += "## \(heading)\n\n\(table(keys))\n" }
    text += """
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
      text += "| `\(name.rawValue)` | \(at) | \(continues) | \(name.about) |\n"
    }
    var described: Set<String> = []
    for name in Action.Name.allCases {
      guard let keys = name.keys, !keys.names.isEmpty, described.insert(keys.schemaName).inserted else { continue }
      let names = Action.Name.allCases.filter { $0.keys == keys }.map { "`\($0.rawValue)`" }
      text += "\n### \(names.joined(separator: ", "))\n\n\(table(keys))"
      for nested in keys.nested { text += "\n`\(nested.schemaName)`:\n\n\(table(nested))" }
    }
    return text
  }()

  private static func table<Key: FileKey>(_ keys: Key.Type) -> String {
    Key.allCases.reduce(into: "| key | value | description |\n|---|---|---|\n") { text, key in
      let isRequired = Key.required.contains(key) ? " Required." : ""
      text += "| `\(key.rawValue)` | \(key.shape.spoken) | \(key.about)\(isRequired) |\n"
    }
  }

  private static let page = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Sources/MockAPNS/Documentation.docc/ProfileReference.md")

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

extension FileKey {
  /// The maps that are only used as values of this map's keys.
  fileprivate static var nested: [any FileKey.Type] {
    allCases.compactMap { key in
      guard case .map(let keys) = key.shape, !(keys == ResponseKey.self) else { return nil }
      return keys
    }
  }
}

extension ValueSyntax {
  /// The syntax in words.
  fileprivate var spoken: String {
    switch self {
    case .text: "string"
    case .name: "name"
    case .word(let words): words.map { "`\($0)`" }.joined(separator: ", ")
    case .whole(let range):
      range.upperBound >= .max
        ? "whole number from \(range.lowerBound)" : "whole number from \(range.lowerBound) to \(range.upperBound)"
    case .number: "number"
    case .probability: "number from 0 to 1"
    case .duration: "duration"
    case .time: "time"
    case .flag: "`true` or `false`"
    case .scalar: "string, number or Boolean"
    case .json: "map or list"
    case .list(let element): "list: \(element.spoken)"
    case .map(let keys): "map: \(keys.names.map { "`\($0)`" }.joined(separator: ", "))"
    case .named(let value): "map with any keys: \(value.spoken)"
    case .settings: "map of settings, see [Rule modes]"
    case .match(.text(let words)) where words.isEmpty: "string, or a requirement"
    case .match(.text(let words)):
      "string, or a requirement; values: \(words.map { "`\($0)`" }.joined(separator: ", "))"
    case .match(.number): "number, or a requirement"
    case .match(.duration): "requirement with `gt`, `lt` or `present`"
    case .match(.json): "string, number or Boolean, or a requirement"
    case .action: "action"
    case .either(let one, let other): "\(one.spoken); or \(other.spoken)"
    }
  }
}
