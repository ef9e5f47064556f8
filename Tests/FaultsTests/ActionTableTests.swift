import APNSMockFaultModel
import Foundation
import APNSMockNotation
import APNSMockTestSupport
import Testing

@testable import APNSMockFaults

/// What each action needs besides its code: rows in tables of tests, in the documentation and in the fuzz dictionary.
@Suite struct ActionTableTests {
  /// The documented table of actions: the injection points of each, and whether rule evaluation continues after it.
  private static let table: [(name: Action.Name, injectionPoints: Set<InjectionPoint>, continues: Bool?)] = [
    (.respond, [.request], false), (.delay, [.request, .response], true), (.hang, [.request, .response], false),
    (.resetStream, [.request, .response], false), (.resetConnection, [.request, .connection], false),
    (.goAway, [.request, .response, .connection], false), (.close, [.request, .response, .connection], false),
    (.respondThenShutDown, [.connection], false), (.loseResponse, [.response], false), (.dribble, [.response], true),
    (.splitBody, [.response], true), (.truncateBody, [.response], true), (.garbleBody, [.response], true),
    (.dropHeader, [.response], true), (.emptyErrorBody, [.response], true), (.changeID, [.response], true),
    (.starveWindow, [.request, .connection], true), (.settings, [.settings, .connection], true),
    (.ignorePings, [.connection], true), (.refuse, [.accept], false), (.silence, [.accept, .connection], false),
    (.stall, [.tls], false), (.alert, [.tls], false), (.certificate, [.tls], true), (.pass, [.request], false),
    (.choose, Set(InjectionPoint.allCases), nil), (.sequence, Set(InjectionPoint.allCases), nil),
  ]

  @Test func actionTableIsAsDocumented() {
    #expect(Self.table.map(\.name) == Action.Name.allCases)
    for row in Self.table {
      #expect(row.name.injectionPoints == row.injectionPoints, "\(row.name)")
      #expect(row.name.continues == row.continues, "\(row.name)")
    }
  }

  @Test func pageOnFaultsListsTheActionsOfEachInjectionPoint() throws {
    let rows = try MarkdownPage("Faults").table(under: "## A rule of your own")
    var listed: [String: Set<String>] = [:]
    for row in rows {
      // What follows in parentheses are values of a parameter.
      let actions = (row["actions"] ?? "").replacing(/\([^)]*\)/, with: "").matches(of: /`(\w+)`/)
      let point = (row["`at`"] ?? "").prefix { $0 != "(" }.filter { $0.isLetter }
      listed[point] = Set(actions.map { String($0.1) })
    }
    let combinations: Set<Action.Name> = [.choose, .sequence]
    #expect(listed["any"] == Set(combinations.map(\.rawValue)))
    for point in InjectionPoint.allCases {
      let actions = Action.Name.allCases.filter { $0.injectionPoints.contains(point) && !combinations.contains($0) }
      #expect(listed[point.rawValue] == Set(actions.map(\.rawValue)), "\(point)")
    }
  }

  /// libFuzzer combines words of the dictionary. It finds no key that is missing there.
  @Test func fuzzDictionaryHasEveryKeyOfAProfile() throws {
    let words = Set(try MarkdownPage.packageFile("Fuzz/Dictionaries/profiles").split(separator: "\n").map(String.init))
    let definitions = try #require(try YAMLNode.parse(ProfileSchema.text)?["$defs"])
    let keys = definitions.names.flatMap { definitions[$0]?["properties"]?.names ?? [] }
    #expect(keys.count > 100)
    let missing = Set(keys).filter { !words.contains("\"\($0): \"") }
    #expect(missing.isEmpty, "\(missing.sorted())")
  }

  /// The texts of the tests that parse and write actions.
  @Test(arguments: ["ProfileParsingTests", "ProfileWritingTests"])
  func actionsAreInTheTablesOf(suite: String) throws {
    let text = try MarkdownPage.packageFile("Tests/FaultsTests/\(suite).swift")
    for name in Action.Name.allCases {
      #expect(text.contains("\(name.rawValue): "), "\(name.rawValue)")
    }
  }
}
