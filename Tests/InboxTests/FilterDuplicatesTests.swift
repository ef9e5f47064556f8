import APNSMockNotation
import Testing

@testable import APNSMockInbox

/// The condition `is:duplicate`: accepted pushes that had already been accepted before.
@Suite struct FilterDuplicatesTests {
  /// Returns the numbers of the records that a query matches, for pushes with these bodies; a body that begins with
  /// `-` is rejected.
  static func found(_ query: String, in bodies: [String], maxRecords: Int = 100) throws -> [Int] {
    let inbox = Inbox(maxRecords: maxRecords)
    for body in bodies {
      let isRejected = body.hasPrefix("-")
      inbox.append(
        PushFixture {
          $0.body = Array(body.drop { $0 == "-" }.utf8)
          $0.outcome = isRejected ? .rejected : .accepted
          $0.generatedID = "\(body.count)"
        }.record)
    }
    let snapshot = inbox.snapshot()
    let context = FilterContext(snapshot: snapshot)
    return try snapshot.page(try PageQuery([(name: "q", value: query)], in: context)).items.map(\.seq)
  }

  @Test(
    arguments: [
      ("is:duplicate", [], ["a", "b", "c"]), ("is:duplicate", [3], ["a", "b", "a"]),
      ("is:duplicate", [2, 3], ["a", "a", "a"]), ("!is:duplicate", [1], ["a", "a", "a"]),
      // A retry of a rejected push is no duplicate.
      ("is:duplicate", [], ["-a", "a"]), ("is:duplicate", [3], ["-a", "a", "a"]), ("is:duplicate", [], ["a", "-a"]),
      ("is:duplicate", [3], ["a", "-a", "a"]), ("is:duplicate is:retry", [3], ["a", "b", "a"]),
      ("is:*", [1, 2], ["a", "a"]), ("is:dup*", [2], ["a", "a"]), ("is:duplicate after:2", [3], ["a", "a", "a"]),
      ("is:duplicate order:x", nil, ["a"]),
    ] as [(String, [Int]?, [String])])
  func duplicatesAreFound(query: String, expected: [Int]?, bodies: [String]) throws {
    if let expected {
      #expect(try Self.found(query, in: bodies) == expected)
    } else {
      #expect(throws: FilterError.self) { try Self.found(query, in: bodies) }
    }
  }

  @Test func evictedPushesAreNotDuplicates() throws {
    #expect(try Self.found("is:duplicate", in: ["a", "b", "a"], maxRecords: 2) == [])
  }

  @Test func sameContentForAnotherDeviceIsNoDuplicate() throws {
    let inbox = Inbox()
    for token in ["ab12", "AB12", "cd34"] {
      inbox.append(PushFixture { $0.deviceToken = String(repeating: token, count: 16) }.record)
    }
    #expect(try inbox.snapshot().duplicates() == [2])
  }

  @Test func recordHasTheKeyOfItsRequest() {
    let fixture = PushFixture { $0.headers += [("apns-collapse-id", "x")] }
    #expect(fixture.record.pushKey == fixture.pushKey)
  }
}
