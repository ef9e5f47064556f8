import APNSMockNotation
import Testing

@testable import APNSMockClientCommands

/// Files with expectations, and the JUnit report on them.
@Suite struct VerificationFileTests {
  static func json(_ text: String) throws -> String {
    String(decoding: try VerificationFile(Array(text.utf8), name: "file").json, as: UTF8.self)
  }

  @Test(arguments: [
    ("expect: []", #"{"expect":[]}"#), (#" {"expect": []}"#, #" {"expect": []}"#),
    ("\u{FEFF}{\"a\": 1}", #"{"a": 1}"#),
    ("a: [1, -2.5e3, 01, 0x1F, 1_000, .5]", #"{"a":[1,-2.5e3,"01","0x1F","1_000",".5"]}"#),
    (
      "a: [true, false, null, ~, yes, no, on, off, True, NULL]",
      #"{"a":[true,false,null,null,"yes","no","on","off","True","NULL"]}"#
    ),
    ("a:", #"{"a":null}"#), ("a: ''", #"{"a":""}"#), ("a: '3'", #"{"a":"3"}"#), ("a: !!str 3", #"{"a":"3"}"#),
    ("a: 5s\nb: 2026-01-01", #"{"a":"5s","b":"2026-01-01"}"#), ("a: |\n  x\n  y\n", #"{"a":"x\u000ay\u000a"}"#),
    ("/aps/alert/title: Grüße 😀", #"{"/aps/alert/title":"Grüße 😀"}"#),
    ("x: &x {a: 1}\ny: *x", #"{"x":{"a":1},"y":{"a":1}}"#), ("# words\na: 1 # more", #"{"a":1}"#),
  ])
  func readsYAMLAsJSON(text: String, json: String) throws {
    #expect(try Self.json(text) == json)
  }

  @Test(arguments: [
    ("expect: [", "file:2:1: invalid YAML"), ("a: 1\na: 2", "file:1:1: duplicate keys: a"),
    ("", "file: the file is empty"), ("# words", "file: the file is empty"),
    ("? [a]\n: 1", "file:1:3: a key must be a scalar, not a list"), ("\"a\": \"b", "invalid YAML"),
    (
      "a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
        + "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]",
      "more than 100000 values"
    ),
    ("a: " + String(repeating: "[", count: 200) + String(repeating: "]", count: 200) + " #", "nested deeper than 64"),
  ])
  func reportsThePositionOfSyntaxErrors(text: String, words: String) {
    let failure = #expect(throws: CommandFailure.self) { try Self.json(text) }
    #expect(failure?.status == .usage)
    #expect(failure?.description.contains(words) == true, "\(failure?.description ?? "")")
  }

  @Test func rejectsInvalidUTF8() {
    let failure = #expect(throws: CommandFailure.self) { try VerificationFile([0x61, 0xFF], name: "file") }
    #expect(failure?.description.contains("invalid UTF-8") == true)
  }

  @Test(arguments: [
    (#"{"expect": [], "timeout": "1s", "settle": "2s"}"#, #"{"expect":[],"settle":"2s","timeout":"9s"}"#),
    ("timeout: 1s\nexpect: []", #"{"expect":[],"timeout":"9s"}"#), ("[1]", "[1]"),
  ])
  func replacesTheTimeout(text: String, body: String) throws {
    let file = try VerificationFile(Array(text.utf8), name: "file")
    #expect(String(decoding: file.body(timeout: "9s"), as: UTF8.self) == body)
    #expect(file.body(timeout: nil) == file.json)
  }

  static let yaml = """
    expect:
    - match:
        topic: a
        payload: {a/b: 1}
      count: many
    order: [x]
    """

  @Test(arguments: [
    (yaml, "/expect/0/count", "file:5:3: "), (yaml, "/expect/0/match/payload/a~1b", "file:4:15: "),
    (yaml, "/order/0", "file:6:9: "), (yaml, "/expect/0/missing", "file:2:3: "), (yaml, "", "file:1:1: "),
    (#"{"expect": [1, {"x": 2}]}"#, "/expect/1/x", "file:1:17: "),
    // An escaped surrogate pair is valid JSON, although not all YAML parsers accept it.
    (#"{"expect": ["\ud83d\ude00"]}"#, "/expect/0", "file:1:13: "),
  ])
  func reportsTheLineOfAProblem(text: String, pointer: String, start: String) throws {
    let file = try VerificationFile(Array(text.utf8), name: "file")
    let failure = file.failure([VerificationFile.Mistake(pointer: pointer, message: "wrong", hint: "Mend it.")])
    #expect(failure.status == .usage)
    #expect(failure.lines.first?.hasPrefix("error: " + start) == true, "\(failure.lines)")
    #expect(failure.lines.first?.hasSuffix("wrong. Mend it.") == true)
  }

  // MARK: - JUnit

  static func result(
    _ parts: [(name: String, passed: Bool, text: String)], isInconclusive: Bool = false
  ) -> VerificationResult {
    VerificationResult(
      passed: parts.allSatisfy(\.passed) && !isInconclusive, inconclusive: isInconclusive,
      expectations: parts.map { VerificationResult.Expectation(name: $0.name, passed: $0.passed, text: $0.text) },
      order: VerificationResult.Overall(criterion: "order", passed: true, text: "✓ order"),
      evicted: isInconclusive ? 3 : 0, seed: 7, profile: "flaky-503?rate=0.2&streak=2", text: "all")
  }

  @Test func writesATestCaseForEachPart() {
    let result = Self.result([("one", true, "✓ one"), ("two", false, "✗ two: a\n  b")])
    #expect(
      JUnitReport(result: result, file: "expect.yaml", time: .milliseconds(1042)).xml == """
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="apns-mock verify" tests="3" failures="1" errors="0" time="1.042">
          <testsuite name="expect.yaml" tests="3" failures="1" errors="0" skipped="0" time="1.042">
            <properties>
              <property name="seed" value="7"/>
              <property name="profile" value="flaky-503?rate=0.2&amp;streak=2"/>
            </properties>
            <testcase classname="expect.yaml" name="one" time="0"/>
            <testcase classname="expect.yaml" name="two" time="0">
              <failure message="✗ two: a" type="verify">✗ two: a
          b</failure>
            </testcase>
            <testcase classname="expect.yaml" name="order" time="0"/>
          </testsuite>
        </testsuites>

        """)
  }

  @Test func inconclusiveResultIsAnError() {
    let xml = JUnitReport(result: Self.result([], isInconclusive: true), file: "f", time: .zero).xml
    #expect(xml.contains(#"tests="2" failures="0" errors="1""#))
    #expect(xml.contains(#"<error message="3 pushes were evicted"#))
  }

  @Test(arguments: [
    ("a]]>b", "a]]&gt;b"), ("<&>\"'", "&lt;&amp;&gt;&quot;'"),
    ("a\u{0}b\u{1B}\u{8}\u{FFFE}\u{FFFF}\u{7F}\u{85}", "a\u{FFFD}b" + String(repeating: "\u{FFFD}", count: 6)),
    ("a\r\nb\tc", "a&#13;\nb\tc"), ("é😀\u{E000}", "é😀\u{E000}"),
  ])
  func escapesForXML(text: String, xml: String) {
    #expect(JUnitReport.escaped(text) == xml)
  }

  @Test(
    arguments: [(true, false, nil), (false, false, 1), (false, true, 5), (true, true, 5)] as [(Bool, Bool, Int32?)])
  func exitCodes(passed: Bool, isInconclusive: Bool, code: Int32?) {
    let result = Self.result([("one", passed, "")], isInconclusive: isInconclusive)
    #expect(result.failure?.status.rawValue == code)
  }
}
