import Testing

@testable import APNSMockNotation

@Suite struct JSONWriterTests {
  static func text(_ write: (inout JSONWriter) -> Void) -> String {
    var writer = JSONWriter()
    write(&writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  @Test func writesMembersInOrderWithCommas() {
    let text = Self.text { writer in
      writer.object { writer in
        writer.member("z", 1)
        writer.member("a", "b")
        writer.member("none", nil as String?)
        writer.arrayMember("list") { writer in
          writer.array { _ in }
          writer.object { _ in }
          writer.bool(false)
        }
        writer.objectMember("inner") { $0.member("x", UInt8(255)) }
        writer.member("names", ["p", "q"])
        writer.nullMember("last")
      }
    }
    #expect(
      text == #"{"z":1,"a":"b","none":null,"list":[[],{},false],"inner":{"x":255},"names":["p","q"],"last":null}"#)
  }

  @Test(arguments: [
    ("plain", #""plain""#), ("\"\\/", #""\"\\/""#), ("a\nb\t\u{0}\u{1F}\u{7F}", #""a\u000ab\u0009\u0000\u001f\u007f""#),
    ("Grüße 😀", #""Grüße 😀""#),
  ])
  func escapesStrings(text: String, json: String) {
    #expect(Self.text { $0.string(text) } == json)
  }

  @Test func putsVerbatimJSONOnOneLine() {
    let bytes = Array("{ \"b\":1.0,\r\n  \"a\":\"x\\ny\"\n}".utf8)
    #expect(
      Self.text { writer in bytes.withUnsafeBytes { writer.verbatim($0) } } == #"{ "b":1.0,    "a":"x\ny" }"#)
  }
}
