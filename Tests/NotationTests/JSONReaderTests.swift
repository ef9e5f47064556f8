import APNSMockNotation
import Testing

@Suite struct JSONReaderTests {
  private static func reading<Value>(
    _ text: String, _ read: (inout JSONReader) throws(JSONText.Problem) -> Value
  ) throws(JSONText.Problem) -> Value {
    let bytes = Array(text.utf8)
    return try bytes.withUnsafeBytes { bytes in
      Result { () throws(JSONText.Problem) in
        var reader = JSONReader(bytes)
        return try read(&reader)
      }
    }.get()
  }

  @Test(arguments: [
    (#""""#, ""), (#""a b""#, "a b"), (#" "\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"), (#""\u00e9é""#, "éé"),
    (#""\ud83d\ude00!""#, "😀!"), (#""\uD83D\uDE00""#, "😀"), (#""\u0000""#, "\0"),
  ])
  func readsStrings(json: String, text: String) throws {
    #expect(try Self.reading(json) { reader throws(JSONText.Problem) in try reader.string() } == text)
  }

  @Test(arguments: [
    "", "x", #""a"#, #""\"#, #""\x""#, #""\u12""#, #""\u+0ff""#, #""\u-000""#, #""\ud83d""#, #""\ud83dx""#,
    #""\ude00""#,
    #""\ud83d\u0041""#, "\"a\nb\"",
  ])
  func rejectsOtherValuesForStrings(json: String) {
    #expect(throws: JSONText.Problem.self) {
      try Self.reading(json) { reader throws(JSONText.Problem) in try reader.string() }
    }
  }

  @Test func skipsUnrequestedMembers() throws {
    let json =
      #" { "a" : 1 , "skipped": {"a": [1, {"b": "}]\""}], "c": -1.5e3}, "b": [true, false] , "c":null, "d": 2.5 }"#
    var seen: [String] = []
    try Self.reading(json) { reader throws(JSONText.Problem) in
      try reader.object { name, reader throws(JSONText.Problem) in
        switch name {
        case "a": seen.append("a \(try reader.whole(Int8.self))")
        case "b":
          try reader.list { reader throws(JSONText.Problem) in seen.append("b \(try reader.flag())") }
        case "c": seen.append("c \(try reader.text() ?? "null")")
        case "d": seen.append("d \(try reader.number())")
        default: seen.append(name)
        }
      }
    }
    #expect(seen == ["a 1", "skipped", "b true", "b false", "c null", "d 2.5"])
  }

  @Test(arguments: [
    (#"{"a" 1}"#, "no colon after \"a\" at byte 5"), (#"{"a":1"#, "neither , nor } at byte 6"),
    (#"{"a":300}"#, "not a whole number in the valid range at byte 5"), (#"{"a":1.5}"#, "not a whole number"),
    (#"{"a":true}"#, "not a whole number"), (#"{a:1}"#, "no string at byte 1"), (#"{"a":}"#, "not a whole number"),
    ("[1]", "no {"), (#"{"b":}"#, "no value"), (#"{"b":,"a":1}"#, "no value"), (#"{"b":[1}"#, "neither , nor }"),
    (#"{"b":"#, "a value without an end"), (#"{"b":["x"#, "a string without an end"),
  ])
  func errorsNameProblemAndOffset(json: String, problem: String) {
    let error = #expect(throws: JSONText.Problem.self) {
      try Self.reading(json) { reader throws(JSONText.Problem) in
        try reader.object { name, reader throws(JSONText.Problem) in
          if name == "a" { _ = try reader.whole(Int8.self) }
        }
      }
    }
    #expect(error?.description.contains(problem) == true, "\(error?.description ?? "")")
  }

  @Test(arguments: ["1", "null", #""a\"]""#, "[]", "{}", #"[{"a": [1,2]}, "]"]"#])
  func returnsRawValues(json: String) throws {
    let found = try Self.reading(" \(json) , 1") { reader throws(JSONText.Problem) in
      String(decoding: try reader.verbatim(), as: UTF8.self)
    }
    #expect(found == json)
  }

  @Test(arguments: [
    (#""""#, ""), (#""\n""#, "\n"), (#""a\tb""#, "a\tb"), (#""\\\"x""#, #"\"x"#), (#""é\u00e9\ud83d\ude00!""#, "éé😀!"),
  ])
  func readsDocuments(json: String, text: String) throws {
    #expect(try Self.reading(json) { reader throws(JSONText.Problem) in try reader.string() } == text)
  }

  /// Found by fuzzing: the text read so far was copied at each escape.
  @Test(.timeLimit(.minutes(5))) func manyEscapesAreFast() throws {
    let count = 2_000_000
    let json = "\"" + String(repeating: "\\n", count: count) + "\""
    let text = try Self.reading(json) { reader throws(JSONText.Problem) in try reader.string() }
    #expect(text.utf8.count == count)
  }

  /// Skipping a value takes no stack space.
  @Test func depthIsUnlimited() throws {
    let depth = 1_000_000
    let json = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    let count = try Self.reading(json) { reader throws(JSONText.Problem) in try reader.verbatim().count }
    #expect(count == 2 * depth)
  }
}
