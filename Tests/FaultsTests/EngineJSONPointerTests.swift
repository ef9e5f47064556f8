import FaultModel
import Faults
import Notation
import Testing

@Suite struct EngineJSONPointerTests {
  static let document = #"""
    {"aps": {"alert": {"title": "Sale \"now\" \u00e4\ud83d\ude00\/", "args": [1, "two", [true, null], {"x": -0.5e+2}]},
    "badge": 3, "sound": "", "3": "three"}, "a/b": 1, "m~n": 2, "": {"": "empty"}, "~1": "tilde one",
    "twice": "early", "twice": "late", "\u0061\n": "escaped", "brackets": "]}\"[{", "after": 9.0, "01": "zero one"}
    """#

  /// The examples of RFC 6901 section 5, and cases that it leaves open.
  @Test(
    arguments: [
      ("/aps/alert/title", .string("Sale \"now\" ä😀/")), ("/aps/badge", .number("3")), ("/aps/sound", .string("")),
      ("/aps/3", .string("three")), ("/aps/alert/args/0", .number("1")), ("/aps/alert/args/1", .string("two")),
      ("/aps/alert/args/2", .structure("[true, null]")), ("/aps/alert/args/2/0", .word("true")),
      ("/aps/alert/args/2/1", .word("null")), ("/aps/alert/args/3/x", .number("-0.5e+2")),
      ("/aps/alert/args/4", nil), ("/aps/alert/args/-", nil), ("/aps/alert/args/01", nil), ("/aps/alert/args/+1", nil),
      ("/aps/alert/args/99999999999999999999", nil), ("/aps/alert/args/", nil), ("/aps/alert/args/2/2", nil),
      ("/a~1b", .number("1")), ("/m~0n", .number("2")), ("/~01", .string("tilde one")), ("//", .string("empty")),
      ("/", .structure(#"{"": "empty"}"#)), ("/twice", .string("late")), ("/a\n", .string("escaped")),
      ("/brackets", .string("]}\"[{")), ("/after", .number("9.0")), ("/01", .string("zero one")),
      ("/missing", nil), ("/aps/badge/x", nil), ("/aps/sound/0", nil), ("/aps/alert/title/0", nil), ("/ap", nil),
      ("/apss", nil), ("/twice/early", nil),
    ] as [(String, JSONPointer.Value?)])
  func pointerFindsItsValue(pointer: String, value: JSONPointer.Value?) throws {
    let pointer = try #require(JSONPointer(pointer))
    #expect(Array(Self.document.utf8).withUnsafeBytes { pointer.value(in: $0) } == value)
  }

  @Test(
    arguments: [
      ("\"x\"", .string("x")), (" 12 ", .number("12")), ("[]", .structure("[]")), ("{}", .structure("{}")),
      ("false", .word("false")), ("", nil), (" ", nil),
    ] as [(String, JSONPointer.Value?)])
  func wholeDocument(document: String, value: JSONPointer.Value?) throws {
    let pointer = try #require(JSONPointer(""))
    #expect(Array(document.utf8).withUnsafeBytes { pointer.value(in: $0) } == value)
  }

  @Test(arguments: ["aps", "aps/alert", "/~", "/~2", "/a~"])
  func invalidPointer(text: String) {
    #expect(JSONPointer(text) == nil)
  }

  /// Each document truncated at every byte, and with every byte replaced, is read without exceeding its bounds.
  @Test func anyInputIsSurvived() throws {
    let pointers = ["", "/aps/alert/args/3/x", "/twice", "/brackets", "/a\n"].compactMap(JSONPointer.init)
    let whole = Array(Self.document.utf8)
    for end in whole.indices {
      let cut = Array(whole[..<end])
      for pointer in pointers { _ = cut.withUnsafeBytes { pointer.value(in: $0) } }
      for byte in "\"\\{[]},:0 ".utf8 {
        var changed = whole
        changed[end] = byte
        for pointer in pointers { _ = changed.withUnsafeBytes { pointer.value(in: $0) } }
      }
    }
  }

  @Test(
    arguments: [
      (#"{"n":3}"#, .equals("3"), true), (#"{"n":"3"}"#, .equals("3"), true), (#"{"n":3.0}"#, .equals("3"), false),
      (#"{"n":true}"#, .equals("true"), true), (#"{"n":null}"#, .equals("null"), true),
      (#"{"n":null}"#, .present(true), true),
      (#"{"n":[3]}"#, .equals("[3]"), false), (#"{"n":[3]}"#, .present(true), true),
      (#"{"n":{}}"#, .prefix("{"), false),
      (#"{"n":"3"}"#, .between(above: 1, below: nil), false), (#"{"n":3}"#, .between(above: 1, below: nil), true),
      (#"{"n":true}"#, .between(above: 0, below: nil), false), (#"{"n":3"#, .present(true), false),
      (#"{"n":3}x"#, .present(true), false), (#"{"n":1e999}"#, .between(above: 0, below: nil), false),
      ("", .present(true), false),
    ] as [(String, Condition.Match, Bool)])
  func payload(body: String, match: Condition.Match, holds: Bool) {
    let test = Condition.Test(.payload(pointer: "/n"), match)
    let rule = Rule(
      name: "rule", condition: Condition([test]), action: .unavailable, stage: .beforeValidation)
    #expect(FaultPlan([rule]).fires(EngineFixture { $0.body = body }) == holds)
  }

  /// A payload that was not kept completely has no values.
  @Test func cutPayload() {
    let test = Condition.Test(.payload(pointer: ""), .present(true))
    let rule = Rule(name: "rule", condition: Condition([test]), action: .unavailable, stage: .beforeValidation)
    #expect(!FaultPlan([rule]).fires(EngineFixture { $0.bodySize = 9000 }))
  }

  /// Excessive nesting does not count as JSON, and neither nesting nor a long flat document takes stack space.
  @Test(arguments: [String(repeating: "[", count: 5000), String(repeating: "[1],", count: 1200), #"{"a":"#])
  func hostileNesting(body: String) {
    let test = Condition.Test(.payload(pointer: "/0/0/0"), .present(true))
    let rule = Rule(name: "rule", condition: Condition([test]), action: .unavailable, stage: .beforeValidation)
    #expect(!FaultPlan([rule]).fires(EngineFixture { $0.body = body }))
  }
}
