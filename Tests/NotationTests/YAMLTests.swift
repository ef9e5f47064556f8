import Testing

@testable import APNSMockNotation

@Suite struct YAMLTests {
  private static func json(_ text: String, keepsPlainScalars: Bool = false) throws -> String {
    var writer = JSONWriter()
    try YAMLNode.parse(text)?.write(to: &writer, keepsPlainScalars: keepsPlainScalars)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// JSON is read as JSON, also where YAML has other escape sequences: YAML has no surrogate pairs.
  @Test(arguments: [
    (#"{"a": "\ud83d\ude00"}"#, "😀"), (#" {"a":"\/"}"#, "/"), ("{\"a\":\t\"x\"}", "x"), ("{a: x}", "x"),
    (#"{"a": "x", }"#, "x"),
  ])
  func readsJSONAndFlowMaps(text: String, value: String) throws {
    #expect(try YAMLNode.parse(text)?["a"]?.text == value)
  }

  @Test func jsonHasTheLimitsOfYAML() {
    let limits = YAMLNode.Limits(length: 100, depth: 2, values: 8, rejectsCompoundKeys: true)
    for (text, message) in [
      (#"{"a":[[[1]]]}"#, "nested deeper than 2"), (#"{"a":[1,2,3,4,5,6]}"#, "more than 8 values"),
      (#"{"a":1,"a":2}"#, "duplicate keys: a"),
    ] {
      let error = #expect(throws: YAMLError.self) { try YAMLNode.parse(text, limits: limits) }
      #expect(error?.message == message)
    }
  }

  @Test func positionsAndValues() throws {
    let root = try #require(try YAMLNode.parse("# comment\na: [1, {b: x}]\nc:\n"))
    let entries = try root.entries()
    #expect(entries.map(\.key) == ["a", "c"])
    #expect(entries.map(\.position) == [TextPosition(line: 2, column: 1), TextPosition(line: 3, column: 1)])
    #expect(try root["a"]?.elements().count == 2)
    #expect(try root["c"]?.entries().isEmpty == true)
    #expect(root["a"]?["b"] == nil)
    for (pointer, line, column) in [("/a/1/b", 2, 9), ("/a/1/x", 2, 8), ("/a/5", 2, 1), ("/c", 3, 1), ("", 2, 1)] {
      #expect(root.position(atPointer: pointer) == TextPosition(line: line, column: column), "\(pointer)")
    }
    #expect(try YAMLNode.parse("# only a comment\n") == nil)
  }

  @Test(arguments: [
    ("a: 1", "expected a list, not a map"), ("yes", "expected a list, not a Boolean"),
    ("\"yes\"", "expected a list, not a string"), ("12", "expected a list, not a number"),
    ("2026-01-31", "expected a list, not a time"), ("~", "expected a list, not nothing"),
  ])
  func otherType(text: String, message: String) throws {
    let root = try #require(try YAMLNode.parse(text))
    let error = #expect(throws: YAMLError.self) { try root.elements() }
    #expect(error?.message == message)
    #expect(error?.position == TextPosition(line: 1, column: 1))
  }

  @Test func missingScalar() throws {
    let node = try #require(try YAMLNode.parse("a:")?["a"])
    let error = #expect(throws: YAMLError.self) { try node.scalar("a duration") }
    #expect(error?.message == "a duration is missing")
  }

  @Test(arguments: [
    ("a: [1", 2, 1, "invalid YAML: "), ("a: 1\na: 2", 1, 1, "duplicate keys: a"),
    ("? [a]\n: 1", 1, 3, "a key must be a scalar, not a list"), ("a: !!int 1", 1, 4, "tags (tag:yaml.org,2002:int)"),
    ("a: 1\n---\nb: 1", 2, 1, "the file contains a second document"),
    ("a:\n\tb: 1", 2, 1, "invalid YAML: a tab in the indentation"),
    ("a:\n  \tb: 1\n  c: 2", 2, 3, "invalid YAML: a tab in the indentation"),
    ("a: @b", 1, 4, "invalid YAML: a value cannot begin with @"),
    ("a: `b", 1, 4, "invalid YAML: a value cannot begin with `"),
    ("a: b: c", 1, 5, "invalid YAML: a colon that does not follow a key"),
  ])
  func errors(text: String, line: Int, column: Int, message: String) {
    let error = #expect(throws: YAMLError.self) { try YAMLNode.parse(text) }
    #expect(error?.message.hasPrefix(message) == true, "\(String(describing: error))")
    #expect(error?.position?.line == line)
  }

  @Test func plainScalarsInJSON() throws {
    #expect(
      try Self.json("{a: 1e3, b: 010, c: yes, d: , e: x, f: 'true', g: true}")
        == #"{"a":1e3,"b":"010","c":"yes","d":null,"e":"x","f":"true","g":true}"#)
    let text = try Self.json("{a: 1e3, b: 010, c: yes, d: , e: x, f: 'true', g: 12:30}", keepsPlainScalars: true)
    #expect(text == #"{"a":1e3,"b":010,"c":yes,"d":null,"e":"x","f":"true","g":12:30}"#)
    #expect(try Self.json(text, keepsPlainScalars: true) == text)
  }

  @Test func bytesThatAreNotUTF8() {
    for bytes: [UInt8] in [[0xFF], [0x61, 0xC3], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80]] {
      let error = #expect(throws: YAMLError.self) { try YAMLNode.text(bytes) }
      #expect(error?.message == "invalid UTF-8")
    }
  }

  /// The types of plain scalars, by YAML 1.1 and 1.2 together.
  @Test(
    arguments: [
      (
        .number,
        [
          "0", "12", "-3", "+4", "0410", "1_000", "0x1F", "0o17", "0b101", "1.5", ".5", "5.", "1e9", "1E+9", "-1.5e-3",
          "12:30", "1:02:03.5", ".inf", "-.INF", ".NaN",
        ]
      ),
      (.boolean, ["true", "False", "YES", "no", "On", "off", "y", "N"]),
      (.null, ["", "~", "null", "Null", "NULL"]),
      (.time, ["2026-01-31", "2026-1-3", "2026-01-31T12:00:00Z", "2026-01-31 12:00"]),
      (
        .string,
        [
          "com.acme", "12ab", "7e", "e7", "1e", "1.2.3", "10.0.0.1", "1-2", "a:1", "12:", ":12", "0xZZ", "0b28880a",
          "0o89", "5s",
          "-", "+", ".", "30-01-2026", "2026-01", "nope", "::1",
        ]
      ),
    ] as [(YAMLScalarKind, [String])])
  func plainScalars(kind: YAMLScalarKind, texts: [String]) {
    for text in texts { #expect(YAMLScalarKind(text) == kind, "\(text)") }
  }
}
