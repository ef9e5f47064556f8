import APNSMockNotation
import APNSMockPushQuery
import APNSMockTestSupport
import Testing

@testable import APNSMockInbox

/// Parsing the text of a query.
@Suite struct QueryTextTests {
  /// Returns each term as `name|value|pieces`, with a `!` in front of a negated one.
  static func terms(_ text: String) throws(FilterError) -> [String] {
    var terms: [String] = []
    try QueryText.read(text) { term in
      terms.append((term.isNegated ? "!" : "") + term.name + "|" + term.value.pieces.joined(separator: "<*>"))
    }
    return terms
  }

  @Test(
    arguments: [
      ("", []), ("  \t\n ", []),
      ("status:410", ["status|410"]), (" status:410  topic:a ", ["status|410", "topic|a"]),
      ("status:410\ttopic:a\n", ["status|410", "topic|a"]), ("a:1\u{00A0}b:2", ["a|1", "b|2"]),
      // The separator: a colon, an equals sign, or the comparison itself. Only the first one counts.
      ("status=410", ["status|410"]), ("since:2026-01-31T12:00:00Z", ["since|2026-01-31T12:00:00Z"]),
      ("status>=400", ["status|>=400"]), ("status<400", ["status|<400"]), ("status:>400", ["status|>400"]),
      ("a=b=c:d", ["a|b=c:d"]), ("a:=b", ["a|=b"]),
      // Negation, in front of the name or of the value.
      ("!type:background", ["!type|background"]), ("type:!background", ["!type|background"]),
      ("!type:!background", ["type|background"]), ("type:!!x", ["!type|!x"]), ("!!type:x", ["!!type|x"]),
      // Quotation marks, around a whole value, a part of it, or a name.
      (#"text:"order shipped""#, ["text|order shipped"]), (#"text:order" "shipped"#, ["text|order shipped"]),
      (#"text:"""#, ["text|"]), (#"text:"a:b=c>d!e""#, ["text|a:b=c>d!e"]), (#"text:"!x""#, ["text|!x"]),
      (#"!text:!"x y""#, ["text|x y"]), (#"payload."/a:b c":3"#, ["payload./a:b c|3"]),
      (#""status":410"#, ["status|410"]), (#"a:"b"c:d"#, ["a|bc:d"]),
      (#"text:"say \"hi\" \\ \* \n\t.""#, ["text|say \"hi\" \\ * \n\t."]),
      // A star is also a wildcard within quotation marks, unless a backslash precedes it there.
      ("topic:com.*.app", ["topic|com.<*>.app"]), (#"text:"a *b""#, ["text|a <*>b"]),
      (#"text:"a \*b*""#, ["text|a *b<*>"]),
      (#"topic:a\*b"#, [#"topic|a\<*>b"#]),
      ("topic:ü💥", ["topic|ü💥"]),
      (
        #"status:410 topic:com.acme.* !type:background is:retry larger:3.5K text:"order shipped" payload./aps/badge:>3"#,
        [
          "status|410", "topic|com.acme.<*>", "!type|background", "is|retry", "larger|3.5K", "text|order shipped",
          "payload./aps/badge|>3",
        ]
      ),
    ] as [(String, [String])])
  func queryIsParsed(text: String, terms: [String]) throws {
    #expect(try Self.terms(text) == terms)
  }

  @Test(
    arguments: [
      // (the query, the column, the word, what is wrong, how to repair it)
      ("order", 1, "order", "\"order\" is not a condition", "text:order"),
      ("status:410 order shipped", 12, "order", "\"order\" is not a condition", "FIELD:VALUE"),
      ("!", 1, "!", "\"\" is not a condition", "FIELD:VALUE"),
      ("status:410  :3", 13, ":3", "the field is missing before the \":\"", "quotation marks"),
      (" >3", 2, ">3", "the field is missing before the \">\"", "status:410"),
      ("=", 1, "=", "the field is missing before the \"=\"", "status:410"),
      (#"is:retry text:"order shipped"#, 10, #"text:"order shipped"#, "no second one", #"\""#),
      (#"is:retry ""#, 10, #"""#, "no second one", "Close it"),
      (#"text:"a\b" x"#, 1, #"text:"a\b""#, "unexpected backslash before \"b\"", #"written \\"#),
      (#"text:"a\"#, 1, #"text:"a\"#, "unexpected backslash before the end", #"written \\"#),
      // What a field says, at its word.
      ("status:410 topik:com.acme.*", 12, "topik:com.acme.*", "unknown field \"topik\"", "did you mean topic?"),
      (
        "status:410\n!topik:com.acme.* is:x", 12, "!topik:com.acme.*", "unknown field \"topik\"",
        "did you mean topic?"
      ),
      ("ü💥:1", 1, "ü💥:1", "unknown field \"ü💥\"", "header.name, after, before"),
      ("topic:ü💥 staus:1", 10, "staus:1", "unknown field \"staus\"", "did you mean status?"),
      ("colour:red", 1, "colour:red", "unknown field \"colour\"", "type for push_type"),
      ("limit:3", 1, "limit:3", "unknown field \"limit\"", "The fields are"),
      ("is:first  outcome:acepted", 11, "outcome:acepted", "outcome cannot be \"acepted\"", "Did you mean accepted?"),
      (#"text:"a b" status:"x y""#, 12, #"status:"x y""#, "status cannot be \"x y\"", "a whole number"),
      ("!status:", 1, "!status:", "status cannot be \"\"", "!status=*"),
      ("larger:3.5X", 1, "larger:3.5X", "larger cannot be \"3.5X\"", "3.5KiB"),
      ("after:x", 1, "after:x", "after cannot be \"x\"", "seq of a record"),
      ("!after:5", 1, "!after:5", "after cannot be negated", "Use before"),
      ("payload.aps:1", 1, "payload.aps:1", "\"aps\" is not a JSON pointer", "payload./aps/alert/title"),
      ("text:\"\"", 1, "text:\"\"", "text cannot be \"\"", "a string"),
      ("priority:>3 priority:<8", 13, "priority:<8", "priority cannot be \"<8\"", "written 4..7"),
    ])
  func errorsPointAtTheWord(query: String, column: Int, word: String, message: String, hint: String) {
    let error = #expect(throws: FilterError.self) { try Selection([(name: "q", value: query)]) }
    #expect(error?.place?.column == column)
    #expect(error?.place?.word == word)
    #expect(error?.message.contains(message) == true, "\(error?.message ?? "")")
    #expect(error?.message.hasSuffix("(column \(column) of the query: \(word))") == true, "\(error?.message ?? "")")
    #expect(error?.hint.contains(hint) == true, "\(error?.hint ?? "")")
  }

  @Test func filterParametersAcceptText() throws {
    #expect(try Filter(query: "status:413").matches(FilterTests.record))
    #expect(throws: FilterError.self) { try Filter(query: "after:3") }
  }

  @Test func cursorsAreAllowedInAQuery() throws {
    let selection = try Selection([(name: "q", value: "after:3 before:9"), (name: "q", value: " ")])
    #expect((selection.after, selection.before) == (3, 9))
    #expect(!selection.isEverything)
    #expect(try Selection([(name: "q", value: " ")]).isEverything)
  }

  // MARK: - Limits

  @Test func aQueryHasAtMostAHundredConditions() throws {
    let words = Array(repeating: "status:410", count: 100)
    _ = try Filter(query: words.joined(separator: " "))
    let error = #expect(throws: FilterError.self) { try Filter(query: (words + ["topic:x"]).joined(separator: " ")) }
    #expect(error?.place?.column == 1101)
    #expect(error?.place?.word == "topic:x")
    #expect(error?.message.contains("more than 100 conditions") == true)
    let parameters = Array(repeating: (name: "status", value: "410"), count: 60)
    #expect(throws: FilterError.self) {
      try Selection(parameters + [(name: "q", value: words.prefix(41).joined(separator: " "))])
    }
  }

  @Test func aQueryHasAtMostFourKilobytes() throws {
    _ = try Filter(query: "text:" + String(repeating: "x", count: 4091))
    let error = #expect(throws: FilterError.self) { try Filter(query: "text:" + String(repeating: "x", count: 4092)) }
    #expect(error?.message.contains("4097 bytes") == true)
    #expect(throws: FilterError.self) { try Filter([(name: "topic", value: String(repeating: "x", count: 4097))]) }
    // Ten thousand words are refused for their length, before they are read.
    let words = String(repeating: "status:410 ", count: 10_000)
    #expect(throws: FilterError.self) { try Filter(query: words) }
    #expect(throws: FilterError.self) { try Filter(query: String(repeating: "\"", count: 4096)) }
    #expect(throws: FilterError.self) { try Filter(query: String(repeating: "(", count: 4096)) }
  }

  @Test func longWordsAreTruncatedInErrors() {
    let error = #expect(throws: FilterError.self) { try Filter(query: String(repeating: "x", count: 4000)) }
    #expect((error?.description.utf8.count ?? 0) < 600, "\(error?.description ?? "")")
    let field = #expect(throws: FilterError.self) {
      try Filter([(name: String(repeating: "x", count: 4000), value: "1")])
    }
    #expect((field?.message.utf8.count ?? 0) < 200)
  }

  @Test func aPointerHasAtMost32Names() throws {
    _ = try Filter([(name: "payload." + String(repeating: "/a", count: 32), value: "1")])
    let error = #expect(throws: FilterError.self) {
      try Filter([(name: "payload." + String(repeating: "/a", count: 33), value: "1")])
    }
    #expect(error?.message.contains("33 names") == true)
  }

  /// The table of fields on the page Inbox has every field.
  @Test func pageListsEveryField() throws {
    let page = try MarkdownPage.packageFile("Documentation/Inbox.md")
    let table = page.split(separator: "\n").filter { $0.hasPrefix("| ") }
    let names = Set(table.flatMap { $0.matches(of: /`([a-z_]+)…?`/).map { String($0.1) } })
    for field in QueryField.allCases.map(\.rawValue) { #expect(names.contains(field), "\(field)") }
  }
}
