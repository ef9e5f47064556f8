import APNSMockInbox
import ArgumentParser
import APNSMockNotation
import Testing

@testable import APNSMockClientCommands

/// The output of commands.
@Suite struct OutputTests {
  @Test(arguments: [
    (#"{"items":[]}"#, []), (#"{"items":[{"a":1}]}"#, [#"{"a":1}"#]),
    (
      #"{"x":{"items":[9]},"items":[{"a":[1,{"b":2}]},{"c":"]}\""}],"next":null}"#,
      [#"{"a":[1,{"b":2}]}"#, #"{"c":"]}\""}"#]
    ),
    (#"{"other":"items","list":[1]}"#, []), (#"{"items": [ 1 , "two" ]}"#, ["1", #""two""#]), ("", []),
    (#"{"items":[{"#, []),
  ])
  func arrayElementsKeepTheirBytes(_ json: String, _ elements: [String]) {
    let found = JSONLayout.elements(of: "items", in: Array(json.utf8)).map { String(decoding: $0, as: UTF8.self) }
    #expect(found == elements)
  }

  @Test func jsonIsIndented() {
    let json = #"{"a":1,"b":[],"c":{},"d":[1,{"e":"x, {y}","f":2}],"g":["\#(String(repeating: "g", count: 100))"]}"#
    #expect(
      String(decoding: JSONLayout.indented(Array(json.utf8)), as: UTF8.self) == """
        {
          "a": 1,
          "b": [],
          "c": {},
          "d": [
            1,
            {"e": "x, {y}", "f": 2}
          ],
          "g": [
            "\(String(repeating: "g", count: 100))"
          ]
        }
        """)
  }

  @Test(arguments: ["", "[", "{\"a\":", "]", "\"", "{]}", "nonsense"])
  func invalidJSONIsStillFormatted(_ text: String) {
    let bytes = Array(text.utf8)
    #expect(JSONLayout.indented(bytes).filter { $0 > 0x20 } == bytes)
  }

  @Test(arguments: [
    (["topic=com.acme.*", "!status=200"], [("limit", "5")], "topic=com.acme.%2A&%21status=200&limit=5"),
    (["header.x=a=b&c"], [], "header.x=a%3Db%26c"), (["collapse_id="], [], "collapse_id="), ([], [], ""),
    (["topic=Grüße"], [], "topic=Gr%C3%BC%C3%9Fe"),
    // The terms of a query are combined, in one argument or in several.
    (["status:410 topic:com.acme.*"], [], "q=status%3A410%20topic%3Acom.acme.%2A"),
    (["status:410", "!type:voip"], [("order", "desc")], "q=status%3A410%20%21type%3Avoip&order=desc"),
    (["since=2026-01-31T12:00:00Z", "is:retry"], [], "since=2026-01-31T12%3A00%3A00Z&q=is%3Aretry"),
    // An argument that could be several terms is a query.
    (["status=410 topic=x"], [], "q=status%3D410%20topic%3Dx"), (["text:a=b"], [], "q=text%3Aa%3Db"),
    (["status>=400"], [], "q=status%3E%3D400"), (["payload.\"/a=b\"=3"], [], "q=payload.%22%2Fa%3Db%22%3D3"),
    // An argument that is neither a parameter nor a query is left to the server.
    (["topic"], [], "q=topic"), (["=x"], [], "q=%3Dx"),
  ])
  func filterBecomesAQuery(_ words: [String], _ others: [(String, String)], _ query: String) throws {
    #expect(try FilterArguments.parse(words).query(and: others) == query)
  }

  @Test(arguments: [[], [""], [" ", "\t"]])
  func emptyArgumentsAreNoFilter(_ words: [String]) throws {
    #expect(try FilterArguments.parse(words).isEmpty)
    #expect(throws: (any Error).self) { try RemoveCommand.parse(words) }
  }

  private static let push = Push(
    seq: .seq(7), receivedAt: "2026-01-31T12:00:00.000Z", outcome: "rejected",
    request: .init(deviceToken: String(repeating: "ab", count: 32)),
    apns: .init(id: "9D3220FE", topic: "a\tb", pushType: nil), served: .init(status: 400, reason: "BadTopic"))

  @Test func pushIsALineOfColumns() {
    let device = String(repeating: "ab", count: 32)
    #expect(
      Push.table([Self.push]).lines
        == "7\t2026-01-31T12:00:00.000Z\t400\tBadTopic\t-\ta\\tb\t\(device)\t9D3220FE\n")
  }

  @Test func tableColumnsAreAligned() {
    #expect(
      Push.table([Self.push]).aligned(colored: false) == """
        SEQ  RECEIVED      STATUS  REASON    TYPE  TOPIC  DEVICE       APNS-ID
        7    12:00:00.000  400     BadTopic  -     a\\tb   ababab…abab  9D3220FE

        """)
  }

  @Test(arguments: [
    ("plain/path-1.pem", "plain/path-1.pem"), ("two words", "'two words'"), ("it's", #"'it'\''s'"#), ("", "''"),
  ])
  func argumentIsQuotedForAShell(_ text: String, _ quoted: String) {
    #expect(text.shellQuoted == quoted)
  }
}
