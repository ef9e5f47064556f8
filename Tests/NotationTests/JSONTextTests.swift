import Foundation
import APNSMockTestSupport
import Testing

@testable import APNSMockNotation

@Suite struct JSONTextTests {
  static func problem(_ bytes: some Sequence<UInt8>) -> JSONText.Problem? {
    Array(bytes).withUnsafeBytes { JSONText.problem(in: $0) }
  }

  @Test(arguments: [
    "{}", "[]", "null", "true", "false", "0", "-0", "-1.5e+3", "10E2", #""""#, #""\u00e9\n\"\\\/""#, #""😀""#,
    #""\ud83d\ude00""#, " \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } } \n", #"{"aps":{"alert":"Grüße"},"a":1,"a":2}"#,
    "1e400", #""\u0000""#,
  ])
  func acceptsJSON(text: String) {
    #expect(Self.problem(text.utf8) == nil)
  }

  @Test(arguments: [
    ("", "nothing at byte 0"), ("{", "no member name in quotes at byte 1"),
    ("{a:1}", "no member name in quotes at byte 1"),
    (#"{"a" 1}"#, "no colon after a member name at byte 5"), (#"{"a":1,}"#, "no member name in quotes at byte 7"),
    (#"{"a":1"#, "neither comma nor closing brace at byte 6"), ("[1 2]", "neither comma nor closing bracket at byte 3"),
    ("[1,]", "no JSON value at byte 3"), ("[", "the text ends where a value is expected at byte 1"),
    ("01", "more text after the end of the value at byte 1"), ("1.", "a number without digits at byte 2"),
    ("+1", "no JSON value at byte 0"), (".5", "no JSON value at byte 0"), ("-", "a number without digits at byte 1"),
    ("1e", "a number without digits at byte 2"), ("NaN", "no JSON value at byte 0"), ("nul", "no JSON value at byte 0"),
    ("'a'", "no JSON value at byte 0"), (#""a"#, "a string without an end at byte 2"),
    ("\"a\nb\"", "a control character in a string at byte 2"), (#""\x""#, "an unknown escape at byte 2"),
    (#""\u12g4""#, "an escape without four hexadecimal digits at byte 5"),
    (#""\ud83d""#, "half of a surrogate pair before here, at byte 7"),
    (#""\ud83dA""#, "half of a surrogate pair before here, at byte 7"),
    (#""\ude00""#, "half of a surrogate pair before here, at byte 7"),
    ("{} {}", "more text after the end of the value at byte 3"),
    ("\u{FEFF}{}", "a byte order mark, which JSON must not begin with, at byte 0"),
    ("token=ab&title=x", "no JSON value at byte 0"),
  ])
  func reportsInvalidJSON(text: String, problem: String) {
    #expect(Self.problem(text.utf8)?.description == problem)
  }

  @Test func rejectsInvalidUTF8() {
    #expect(Self.problem([0x22, 0xC3, 0x28, 0x22])?.description == "not UTF-8 at byte 1")
    #expect(Self.problem([0x22, 0xED, 0xA0, 0x80, 0x22])?.description == "not UTF-8 at byte 1")
  }

  @Test func boundsNesting() {
    let deepest = String(repeating: "[", count: 500) + String(repeating: "]", count: 500)
    #expect(Self.problem(deepest.utf8) == nil)
    #expect(Self.problem("[\(deepest)]".utf8)?.reason == "nested deeper than 500")
    #expect(Self.problem(String(repeating: "[", count: 5120).utf8)?.reason == "nested deeper than 500")
    #expect(Self.problem(String(repeating: #"{"a":"#, count: 1000).utf8)?.reason == "nested deeper than 500")
  }

  /// Whatever is taken for JSON here must be JSON to a parser that others use.
  @Test func acceptsNothingThatFoundationRejects() throws {
    let seed = #"{"aps":{"alert":"a\u00e9\ud83d\ude00","badge":-1.5e3},"list":[true,null,"x"]}"#
    var generator = SplitMix(state: 918_273)
    var taken = 0
    for _ in 0..<20_000 {
      var bytes = Array(seed.utf8)
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let index = Int.random(in: 0..<bytes.count, using: &generator)
        switch Int.random(in: 0...2, using: &generator) {
        case 0: bytes[index] = UInt8.random(in: 0...255, using: &generator)
        case 1: bytes.remove(at: index)
        default: bytes.insert(bytes[Int.random(in: 0..<bytes.count, using: &generator)], at: index)
        }
      }
      guard Self.problem(bytes) == nil else { continue }
      taken += 1
      #expect(throws: Never.self, "\(String(decoding: bytes, as: UTF8.self))") {
        try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
      }
    }
    #expect(taken > 100)
  }
}
