import Testing

@testable import APNSMockNotation

struct JSONNodeReaderTests {
  private static func node(_ text: String) throws(YAMLError) -> YAMLNode {
    let bytes = Array(text.utf8)
    let result = bytes.withUnsafeBytes { bytes -> Result<YAMLNode, YAMLError> in
      Result { () throws(YAMLError) in
        var reader = JSONNodeReader(bytes)
        let node = try reader.node()
        try reader.end()
        return node
      }
    }
    return try result.get()
  }

  @Test func positionsAreThoseOfYAML() throws {
    let text = "\u{FEFF}{\"ä\": [1, \"x\\u00e4\\\"\", true,\n  {\"b\" : null}], \"ü\":\r\n\t\"é\"\n}\n"
    let node = try Self.node(text)
    #expect(node["ä"]?.position == TextPosition(line: 1, column: 7))
    let elements = try #require(try node["ä"]?.elements())
    #expect(
      elements.map(\.position) == [
        .init(line: 1, column: 8), .init(line: 1, column: 11), .init(line: 1, column: 24), .init(line: 2, column: 3),
      ])
    #expect(elements[1].text == "xä\"")
    #expect(elements[3]["b"]?.isEmpty == true)
    #expect(try node.entries()[1].position == TextPosition(line: 2, column: 18))
    #expect(node["ü"]?.position == TextPosition(line: 3, column: 2))
  }

  @Test(arguments: [
    ("", 1, 1, "the text ends where a value is expected"), ("[1,\n 2", 2, 3, "expected a comma or ]"),
    ("{\"a\" 1}", 1, 6, "expected a colon after a name"),
    ("{a: 1}", 1, 2, "expected the name of a member in quotation marks"),
    ("[01]", 1, 2, "expected a value"), ("[tru]", 1, 2, "expected a value"), ("[1] 2", 1, 5, "more text after the end"),
    ("[\"ä\n\"]", 1, 4, "a control character in a string"), ("[\"\\x\"]", 1, 4, "an unknown escape"),
    ("{\"a\":1,}", 1, 8, "expected the name of a member"), ("[}", 1, 2, "expected a value"),
  ])
  func errors(text: String, line: Int, column: Int, message: String) {
    let error = #expect(throws: YAMLError.self) { try Self.node(text) }
    #expect(error?.message.hasPrefix("invalid JSON: \(message)") == true, "\(String(describing: error))")
    #expect(error?.position == TextPosition(line: line, column: column))
  }

  @Test func limits() {
    let deep = String(repeating: "[", count: 100)
    #expect(throws: YAMLError.self) { try Self.node(deep) }
    let error = #expect(throws: YAMLError.self) { try Self.node("{\"a\": 1, \"a\": 2}") }
    #expect(error?.message == "duplicate key: a")
  }

  @Test(arguments: [
    #"{"a":"x","b":[1,{"c":"yes","d":null}],"e":{},"f":[],"g":"a: b","h":"-x","7e1":true,"i":[["x"]]}"#, "[]", "12",
    #""""#,
  ])
  func yamlHasTheSameMeaning(json: String) throws {
    let yaml = try Self.node(json).yaml
    var writer = JSONWriter()
    try #require(try YAMLNode.parse(yaml)).write(to: &writer)
    #expect(String(decoding: writer.bytes, as: UTF8.self) == json, "\(yaml)")
  }
}
