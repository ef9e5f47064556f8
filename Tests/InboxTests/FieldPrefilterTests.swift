import APNSMockNotation
import APNSMockPushQuery
import APNSMockTestSupport
import Testing

@testable import APNSMockInbox

/// Filters with a prefilter give the same results as their conditions without one.
@Suite struct FieldPrefilterTests {
  private static let bodies = [
    #"{"aps":{"alert":{"title":"Hello","body":"Order shipped"},"badge":3}}"#,
    #"{"aps":{"alert":{"title":"hello"}},"title":"Hello"}"#, #"{"aps":{"alert":{"t\u0069tle":"Hello"}}}"#,
    #"{"aps":{"alert":{"title":"\u0048ello"}}}"#, #"{"aps":{"alert":{"title":"Hello\n"}}}"#,
    #"{"aps":{"alert":{"title":"He\llo"}}}"#, #"{"aps":{"alert":{"title":"Hello"}}"#,
    #"{"aps":{"alert":{"title":3}}}"#, #"{"aps":{"alert":{"title":3.0}}}"#, #"{"aps":{"alert":{"title":"3"}}}"#,
    #"{"aps":{"alert":{"title":true}}}"#, #"{"aps":{"alert":{"title":null}}}"#, #"{"aps":{"alert":{"title":""}}}"#,
    #"{"aps":{"alert":{"title":"Köln \"x\" a/b"}}}"#, #"{"aps":{"alert":{"title":"K\u00f6ln \"x\" a\/b"}}}"#,
    #"{"aps":{"alert":{"title":["Hello",3]}}}"#, #"{"aps":{"alert":["Hello",{"0":"Hello"}]}}"#,
    #"{"aps":{"alert":"😀 \ud83d\ude00 *"}}"#, #"{"aps":{"alert":{"title":1e2,"title":"Hello"}}}"#, "Hello", "", "{}",
    "\"Hello\"", #"{"aps":{"alert":{"title":"\#(String(repeating: "Hell ", count: 40))Hello"}}}"#,
  ]

  private static let values = [
    "Hello", "hello", "3", "3*", "30", "100", "true", "tr*", "null", "n*", "*", "H*o", "*ell*", "*\\n", "\"\"",
    "\"3\"", "\"true\"", "\"Köln*\"", "\"*\\\"x\\\"*\"", "\"*a/b\"", "😀*", "\"*\\*\"", ">2", "2..4", "Hell*Hello", "é",
    "x", "aps", "mockkey001", "APNS-topic", "\u{FFFD}",
  ]

  private static let pointers = ["/aps/alert/title", "/aps/alert", "/aps/alert/0", "/title", "/aps/badge"]

  private static let records = bodies.map { body in PushFixture { $0.body = Array(body.utf8) }.record }

  /// Returns whether the conditions of a filter with one field hold, evaluated without the prefilter.
  private static func matchesWithoutPrefilter(_ filter: Filter, _ record: Record) -> Bool {
    guard let conditions = filter.groups.first?.conditions else { return true }
    return record.withBody { body in
      guard case .payload(let pointer) = conditions.subject else {
        var unescaped: String?
        return record.withHeaders { conditions.hold(body: body, headers: $0, unescaped: &unescaped) }
      }
      guard JSONText.problem(in: body) == nil else { return conditions.matchesMissingValue }
      return conditions.hold(payload: pointer.value(in: body))
    }
  }

  /// Checks that a database that searches for bytes of the prefilter finds each record that it does not rule out.
  private static func expectFound(
    _ prefilter: FieldPrefilter, _ record: Record, _ query: String, _ sourceLocation: SourceLocation
  ) {
    guard let searched = prefilter.searchedBytes else { return }
    let (mayHold, isFound) = record.withHeaders { headers in
      record.withBody { body in
        let places = (prefilter.searchesBody ? [Array(body)] : []) + (prefilter.searchesHeaders ? [Array(headers)] : [])
        let occurs = searched.contains { bytes in places.contains { $0.contains(bytes) } }
        return (
          prefilter.mayHold(inParts: headers, body: body),
          occurs || prefilter.searchesBody && body.contains(UInt8(ascii: "\\"))
        )
      }
    }
    #expect(
      isFound || !mayHold, "\(query) on \(String(decoding: record.body, as: UTF8.self))", sourceLocation: sourceLocation
    )
  }

  private static func expectSame(_ query: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> Bool {
    guard let filter = try? Filter(query: query) else { return false }
    for record in records {
      let expected = matchesWithoutPrefilter(filter, record)
      #expect(
        filter.matches(record) == expected, "\(query) on \(String(decoding: record.body, as: UTF8.self))",
        sourceLocation: sourceLocation)
      if let prefilter = filter.groups.first?.prefilter { expectFound(prefilter, record, query, sourceLocation) }
    }
    return filter.groups.first?.prefilter.isEmpty == false
  }

  @Test(arguments: ["text"] + pointers.map { "payload.\($0)" })
  func resultsAreTheSame(field: String) throws {
    var count = 0
    for value in Self.values {
      for query in ["\(field):\(value)", "!\(field):\(value)"] { count += try Self.expectSame(query) ? 1 : 0 }
      for other in ["Hello", "3*", "n*", "*ell*", "😀*", "\"Köln*\""] {
        count += try Self.expectSame("\(field):\(value) \(field):\(other)") ? 1 : 0
        count += try Self.expectSame("\(field):\(value) !\(field):\(other)") ? 1 : 0
        count += try Self.expectSame("!\(field):\(value) !\(field):\(other)") ? 1 : 0
      }
    }
    #expect(count > 100)
  }

  @Test func exactValuesAreTheSame() throws {
    for pointer in Self.pointers + [""] {
      for json in [#""Hello""#, #""K\u00f6ln \"x\" a/b""#, "3", "true", "null", #"["Hello",3]"#, "{}", #""""#] {
        var filter = Filter()
        try filter.add(payload: pointer, equalTo: JSONValue(Array(json.utf8)[...]))
        for record in Self.records {
          #expect(filter.matches(record) == Self.matchesWithoutPrefilter(filter, record), "\(pointer) \(json)")
        }
      }
    }
  }

  /// A word at every position of bodies of several lengths, found in both cases among many records.
  @Test func wordsAreFoundAtEveryPosition() throws {
    let inbox = Inbox()
    for position in 0..<150 {
      let words = [position % 2 == 0 ? "zebra" : "ZEBRA", "zebr4"]
      for word in words {
        let filler = String(repeating: "a ", count: 100).prefix(position)
        inbox.append(PushFixture { $0.body = Array(#"{"aps":{"alert":"\#(filler)\#(word)\#(filler)"}}"#.utf8) }.record)
      }
    }
    let expected = Array(stride(from: 1, through: 299, by: 2))
    #expect(try FilterWalkTests.page("text=Zebra", in: inbox) == expected)
    #expect(try FilterWalkTests.page("search=zebra aps", in: inbox) == expected)
    #expect(try FilterWalkTests.page("!text=zebra", in: inbox) == expected.map { $0 + 1 })
    #expect(try FilterWalkTests.page("payload./aps/alert=*ZEBRA*", in: inbox) == expected.filter { $0 % 4 == 3 })
    #expect(try FilterWalkTests.page("payload./aps/alert=zebra", in: inbox) == [1])
  }
}
