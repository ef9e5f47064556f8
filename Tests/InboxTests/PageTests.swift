import APNSMockNotation
import Testing

@testable import APNSMockInbox

@Suite struct PageTests {
  /// Twelve pushes, every third one rejected; the first two were evicted.
  static let inbox: Inbox = {
    let inbox = Inbox(maxRecords: 10)
    for number in 1...12 {
      inbox.append(PushFixture { $0.body = number % 3 == 0 ? [] : Array("\(number)".utf8) }.record)
    }
    return inbox
  }()

  @Test(
    arguments: [
      ("", [3, 4, 5, 6, 7, 8, 9, 10, 11, 12], nil, 10, false),
      ("limit=3", [3, 4, 5], 5, 10, false),
      ("limit=3&after=5", [6, 7, 8], 8, 7, true),
      ("limit=3&after=9", [10, 11, 12], nil, 3, true),
      ("after=12", [], nil, 0, true),
      ("after=2", [3, 4, 5, 6, 7, 8, 9, 10, 11, 12], nil, 10, true),
      ("after=1", [3, 4, 5, 6, 7, 8, 9, 10, 11, 12], nil, 10, false),
      ("before=5", [3, 4], nil, 2, false),
      ("before=3", [], nil, 0, false),
      ("after=5&before=7", [6], nil, 1, true),
      ("after=7&before=5", [], nil, 0, true),
      ("order=desc&limit=3", [12, 11, 10], 10, 10, false),
      ("order=desc&limit=3&before=10", [9, 8, 7], 7, 7, false),
      ("order=desc&limit=3&before=6", [5, 4, 3], nil, 3, false),
      ("status=400", [3, 6, 9, 12], nil, 4, false),
      ("status=400&limit=2", [3, 6], 6, 4, false),
      ("status=400&limit=2&after=6", [9, 12], nil, 2, true),
      ("status=400&order=desc&limit=1", [12], 12, 4, false),
      ("limit=0", [], nil, 10, false),
      ("after=9223372036854775807", [], nil, 0, true),
      ("before=0", [], nil, 0, false),
    ] as [(String, [Int], Int?, Int, Bool)])
  func pages(query: String, seqs: [Int], next: Int?, matched: Int, isComplete: Bool) throws {
    let page = try Self.inbox.snapshot().page(try PageQuery(FilterTests.parameters(query)))
    #expect(page.items.map(\.seq) == seqs)
    #expect(page.next == next)
    #expect(page.matched == matched)
    #expect(page.total == 10)
    #expect(page.evicted == 2)
    #expect(page.isComplete == isComplete)
  }

  @Test(arguments: ["asc", "desc"])
  func nextLinksVisitEachRecordOnce(order: String) throws {
    let inbox = Inbox()
    for _ in 0..<1200 { inbox.append(PushFixture().record) }
    var query = try PageQuery([("limit", "7"), ("order", order)])
    var seen: [Int] = []
    while true {
      let page = try inbox.snapshot().page(query)
      seen += page.items.map(\.seq)
      guard let next = page.next else { break }
      if order == "asc" { query.selection.after = next } else { query.selection.before = next }
    }
    #expect(seen == (order == "asc" ? Array(1...1200) : Array((1...1200).reversed())))
  }

  @Test(arguments: [
    ("limit=1001", "limit", "from 0 to 1000"), ("limit=-1", "limit", "from 0 to 1000"),
    ("limit=many", "limit", "whole number"),
    ("after=-1", "after", "the seq of a record"), ("before=x", "before", "the seq of a record"),
    ("after=9223372036854775808", "after", "whole number"), ("order=newest", "order", "asc (oldest first) or desc"),
    ("order=ASC", "order", "asc"), ("limt=3", "limt", "did you mean limit?"), ("!after=3", "after", "Use before"),
    ("sort=asc", "sort", "order"),
  ])
  func invalidPageParametersAreReported(query: String, field: String, hint: String) {
    let error = #expect(throws: FilterError.self) { try PageQuery(FilterTests.parameters(query)) }
    #expect(error?.field == field)
    #expect(error?.hint.contains(hint) == true, "\(error?.hint ?? "")")
  }
}
