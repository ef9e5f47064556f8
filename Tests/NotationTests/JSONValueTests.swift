import Foundation
import APNSMockNotation
import Testing

@Suite struct JSONValueTests {
  static func value(_ json: String) -> JSONValue { JSONValue(Array(json.utf8)[...]) }

  @Test(
    arguments: [
      ("null", .null), (" true ", .flag(true)), ("false", .flag(false)), ("\n-1.50e3 ", .number("-1.50e3")),
      (#" "a\"\u00e9\ud83d\ude00,]" "#, .text("a\"é😀,]")), (#""""#, .text("")),
    ] as [(String, JSONValue)])
  func readsScalars(json: String, value: JSONValue) {
    #expect(Self.value(json) == value)
  }

  @Test(arguments: [
    ("[]", []), ("[ ]", []), ("[1]", ["1"]),
    (" [ 1 ,\t\"a,b\" , [2,[3]],{} ,null ]", ["1", "\"a,b\"", "[2,[3]]", "{}", "null"]),
    (#"["\\","\"]",{"a":[","]}]"#, [#""\\""#, #""\"]""#, #"{"a":[","]}"#]),
    (#"["é" , "ü"]"#, [#""é""#, #""ü""#]),
  ])
  func readsLists(json: String, elements: [String]) throws {
    guard case .list(let list) = Self.value(json) else {
      Issue.record("no list")
      return
    }
    #expect(list.elements.map(Self.text) == elements)
  }

  @Test(arguments: [
    ("{}", [:]), ("{\n}", [:]), (#"{"a":1}"#, ["a": "1"]),
    (#" { "a" : "x:y" , "b\"":{"c":[1 , 2]} } "#, ["a": #""x:y""#, "b\"": #"{"c":[1 , 2]}"#]),
    (#"{"a":1,"a":2,"":3}"#, ["a": "2", "": "3"]),
  ])
  func readsObjects(json: String, members: [String: String]) {
    guard case .object(let object) = Self.value(json) else {
      Issue.record("no object")
      return
    }
    #expect(object.members.mapValues(Self.text) == members)
  }

  private static func text(_ value: JSONValue) -> String {
    var writer = JSONWriter()
    value.write(to: &writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }
}
