import APNSMockNotation
import Testing

@Suite struct JSONPointerTests {
  static let document = #"""
    {"aps": {"alert": {"title": "Sale \"now\" \u00e4\ud83d\ude00\/", "args": [1, "two", [true, null], {"x": -0.5e+2}]},
    "badge": 3, "sound": "", "3": "three"}, "a/b": 1, "m~n": 2, "": {"": "empty"}, "~1": "tilde one",
    "twice": "early", "twice": "late", "\u0061\n": "escaped", "brackets": "]}\"[{", "after": 9.0, "01": "zero one"}
    """#

  private static func structure(_ json: String) -> JSONValue { JSONValue(Array(json.utf8)[...]) }

  /// The examples of RFC 6901 section 5, and cases that it leaves open.
  @Test(
    arguments: [
      ("/aps/alert/title", .text("Sale \"now\" ä😀/")), ("/aps/badge", .number("3")), ("/aps/sound", .text("")),
      ("/aps/3", .text("three")), ("/aps/alert/args/0", .number("1")), ("/aps/alert/args/1", .text("two")),
      ("/aps/alert/args/2", structure("[true, null]")), ("/aps/alert/args/2/0", .flag(true)),
      ("/aps/alert/args/2/1", .null), ("/aps/alert/args/3/x", .number("-0.5e+2")),
      ("/aps/alert/args/4", nil), ("/aps/alert/args/-", nil), ("/aps/alert/args/01", nil), ("/aps/alert/args/+1", nil),
      ("/aps/alert/args/99999999999999999999", nil), ("/aps/alert/args/", nil), ("/aps/alert/args/2/2", nil),
      ("/a~1b", .number("1")), ("/m~0n", .number("2")), ("/~01", .text("tilde one")), ("//", .text("empty")),
      ("/", structure(#"{"": "empty"}"#)), ("/twice", .text("late")), ("/a\n", .text("escaped")),
      ("/brackets", .text("]}\"[{")), ("/after", .number("9.0")), ("/01", .text("zero one")),
      ("/missing", nil), ("/aps/badge/x", nil), ("/aps/sound/0", nil), ("/aps/alert/title/0", nil), ("/ap", nil),
      ("/apss", nil), ("/twice/early", nil),
    ] as [(String, JSONValue?)])
  func finds(pointer: String, value: JSONValue?) throws {
    let pointer = try #require(JSONPointer(pointer))
    #expect(Array(Self.document.utf8).withUnsafeBytes { pointer.value(in: $0) } == value)
  }

  @Test(
    arguments: [
      ("\"x\"", .text("x")), (" 12 ", .number("12")), ("[]", structure("[]")), ("{}", structure("{}")),
      ("false", .flag(false)), ("", nil), (" ", nil),
    ] as [(String, JSONValue?)])
  func wholeDocument(document: String, value: JSONValue?) throws {
    let pointer = try #require(JSONPointer(""))
    #expect(Array(document.utf8).withUnsafeBytes { pointer.value(in: $0) } == value)
  }

  @Test(arguments: ["aps", "aps/alert", "/~", "/~2", "/a~"])
  func isNoPointer(text: String) {
    #expect(JSONPointer(text) == nil)
  }

  /// Each document truncated at every byte, and with every byte replaced, is read without exceeding its bounds.
  @Test func survivesAnything() throws {
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
}
