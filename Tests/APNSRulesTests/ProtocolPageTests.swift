import APNSMockRules
import APNSMockTestSupport
import Testing

/// Compares tables in `Protocol.md` with the rules.
struct ProtocolPageTests {
  private let page: MarkdownPage

  init() throws { page = try MarkdownPage("Protocol") }

  /// Section 8.2 names every check once, in the order in which they are made, with the reason of a failure.
  @Test func checksAreInOrder() throws {
    let rows = try page.table(under: "### 8.2 Order in this server")
    let names = rows.map { Self.names(in: $0["Check (name in records)"] ?? "") }
    #expect(names.flatMap(\.self) == ([.headerListSize] + Check.allCases.dropLast()).map(\.name))
    let failures =
      CheckOrderTests.breakers.map { ($0.check, $0.reason) }
      + (ChannelRulesTests.broadcastBreakers + ChannelRulesTests.creationBreakers).map { ($0.0, $0.1) }
      + [(.channelLimit, .cannotCreateChannelConfig)]
    for (check, reason) in failures {
      let row = try #require(zip(rows, names).first { $0.1.contains(check.name) }?.0)
      #expect(row["Response"]?.contains("`\(reason.text)`") == true, "\(check.name)")
      #expect(reason.checks.contains(check), "\(reason.text)")
    }
  }

  /// The web UI has a text for every check.
  @Test func webUIDescribesEveryCheck() throws {
    let script = try MarkdownPage.packageFile("Page/modules/explain.js")
    let start = try #require(script.firstRange(of: "CHECK_NAMES = {"))
    let table = script[start.upperBound...].prefix { $0 != "}" }
    let names = table.matches(of: /(\w+): "/).map { String($0.1) }
    #expect(names.sorted() == Check.allCases.map(\.name).sorted())
  }

  /// Section 7.2 has every reason with its status.
  @Test func reasonsAreComplete() throws {
    let rows = try page.table(under: "### 7.2 Statuses and reasons").dropFirst().flatMap { row in
      (row["Reason"] ?? "").matches(of: /`(\w+)`/).map { "\(row["Status"] ?? "") \($0.1)" }
    }
    #expect(rows.sorted() == Reason.allCases.map { "\($0.status) \($0.text)" }.sorted())
  }

  /// Section 5 has every push type with its topic suffix.
  @Test func pushTypesAreComplete() throws {
    let rows = try page.table(under: "## 5. Push type, topic and priority")
    #expect(rows.map { $0["`apns-push-type`"] } == PushType.allCases.map { "`\($0.text)`" })
    for (row, type) in zip(rows, PushType.allCases) where !type.topicSuffix.isEmpty {
      #expect(row["Topic: bundle id and"]?.hasPrefix("`\(type.topicSuffix)`") == true, "\(type.text)")
    }
  }

  /// Every section that a comment cites as `Protocol.md, section 3.2` exists.
  @Test func citedSectionsExist() throws {
    let sections = Set(
      page.headings.compactMap { $0.firstMatch(of: /^#+\s(\d+(?:\.\d+)?)\b/).map { String($0.1) } })
    #expect(sections.count > 30)
    for folder in ["Sources", "Tests"] {
      for (file, text) in try MarkdownPage.sourceTexts(in: folder) {
        let prose = text.replacing(/\n\s*(?:\/\/\/?|#)\s*/, with: " ")
        for citation in prose.matches(of: /Protocol\.md,? sections? ((?:\d+(?:\.\d+)?(?:, | and | to )?)+)/) {
          for number in citation.1.matches(of: /\d+(?:\.\d+)?/) {
            #expect(sections.contains(String(number.0)), "\(file): section \(number.0)")
          }
        }
      }
    }
  }

  /// The names in the parentheses at the end of a cell.
  private static func names(in cell: String) -> [String] {
    guard let list = cell.firstMatch(of: /\((`[^()]+`)\)$/) else { return [] }
    return list.1.matches(of: /`(\w+)`/).map { String($0.1) }
  }
}
