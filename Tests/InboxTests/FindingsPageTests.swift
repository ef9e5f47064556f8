import APNSMockTestSupport
import Testing

@testable import APNSMockInbox

/// Compares the page on findings with the kinds. `test_smallest_inputs.py` compares it with the inputs that cause them.
@Suite struct FindingsPageTests {
  @Test func pageListsEveryKind() throws {
    let page = try MarkdownPage.packageFile("Documentation/Findings.md")
    let start = try #require(page.firstRange(of: "## The kinds\n"))
    let section = page[start.upperBound...]
    let end = section.firstRange(of: "\n##")?.lowerBound ?? section.endIndex
    let kinds = section[..<end].split(separator: "\n").compactMap { $0.firstMatch(of: /^\| `([a-z0-9-]+)` \|/)?.1 }
    #expect(kinds.map(String.init).sorted() == Finding.Kind.allCases.map(\.rawValue).sorted())
  }
}
