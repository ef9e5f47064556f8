import Foundation
import APNSMockTestSupport
import Testing

@testable import APNSMockNotation

@Suite struct JSONLiteralTests {
  private static func mayOccur(
    _ text: String, in json: String, foldsCase: Bool = true, isQuoted: Bool = false
  ) -> Bool? {
    let literal = JSONLiteral(text.utf8, foldsCase: foldsCase, startsString: isQuoted, endsString: isQuoted)
    return literal.map { literal in
      Array(json.utf8).withUnsafeBytes { literal.mayOccur(in: $0, decoding: $0) }
    }
  }

  @Test(arguments: [
    ("order", #"{"a":"ORDER"}"#, true), ("order", #"{"a":"\u006frder"}"#, true),
    ("order", #"{"a":"\u004frder"}"#, true),
    ("order", #"{"a":"ord\er"}"#, true), ("au04", #"{"a":"a\u04z1"}"#, true),
    ("au00", #"{"a":"a\u00z1"}"#, true), ("a\nb", #"{"a":"a\nb"}"#, true),
    ("a/b", #"{"a":"a\/b"}"#, true), ("ü", #"{"a":"\u00fc"}"#, true), ("😀", #"{"a":"\ud83d\ude00"}"#, true),
    (#"""#, #"{"a":"\""}"#, true), (#"\"#, #"{"a":"\\"}"#, true),
    // Escape sequences that stand for other characters.
    ("order", #"{"a":"ord\ner"}"#, false), ("order", #"{"a":"\"dich\" \u00fc \ud83d\ude00 \/"}"#, false),
    ("u006f", #"{"a":"\\u006g"}"#, false), ("order", #"{"a":"\\u006frder"}"#, false), ("order", #"\"#, false),
    ("order", "", false), ("order", #"{"a":"\u00z1"}"#, false), ("your", #"{"a":"\u0443\u00fc\u000a"}"#, false),
  ])
  func rulesOutWhatCannotOccur(text: String, json: String, expected: Bool) {
    #expect(Self.mayOccur(text, in: json) == expected)
  }

  @Test func quotationMarksDelimitTheText() {
    #expect(Self.mayOccur("title", in: #"{"title":1}"#, isQuoted: true) == true)
    #expect(Self.mayOccur("title", in: #"{"subtitle":1}"#, isQuoted: true) == false)
    #expect(Self.mayOccur("title", in: #"{"subtitle":"\""}"#, isQuoted: true) == false)
    #expect(Self.mayOccur("title", in: #"{"t\u0069tle":1}"#, isQuoted: true) == true)
    #expect(Self.mayOccur("Title", in: #"{"title":1}"#, foldsCase: false, isQuoted: true) == false)
    #expect(Self.mayOccur("", in: #"{"a":""}"#, isQuoted: true) == true)
  }

  @Test func someTextsCannotBeSearched() {
    #expect(Self.mayOccur("", in: "{}") == nil)
    #expect(Self.mayOccur("a\u{FFFD}b", in: "{}") == nil)
  }

  /// No text that the decoded JSON contains is ruled out, however it is written.
  @Test func agreesWithDecoding() {
    var generator = SplitMix(state: 2026)
    let parts = [
      "a", "b", "A", "\"", "é", "😀", "\\n", "\\\"", "\\\\", "\\/", "\\u0061", "\\u0042", "\\u00e9", "\\ud83d\\ude00",
      "\\u000a", "\\ud83d", "\\u12", "\\x", "\\a", "\\", "xxxxxxxxxxxxxxxx",
    ]
    let wanted = ["a", "b", "\"", "é", "😀", "\n", "\\", "/", "x", "u"]
    var (found, ruledOut) = (0, 0)
    for _ in 0..<6000 {
      func text(of parts: [String], _ counts: ClosedRange<Int>) -> String {
        (0..<Int.random(in: counts, using: &generator)).map { _ in parts.randomElement(using: &generator) ?? "" }
          .joined()
      }
      let (text, json) = (text(of: wanted, 1...3), text(of: parts, 0...12))
      let decoded = Array(json.utf8).withUnsafeBytes { JSONScanner.unescaped($0) }
      let isContained = [json, decoded].contains { whole in
        LiteralSearchTests.firstPosition(of: Array(text.utf8), in: Array(whole.utf8), foldsCase: true) != nil
      }
      if isContained { #expect(Self.mayOccur(text, in: json) == true, "\(text) in \(json)") }
      if isContained { found += 1 } else if Self.mayOccur(text, in: json) == false { ruledOut += 1 }
    }
    #expect(found > 600 && ruledOut > 600)
  }
}

/// Parts of JSON text that are scanned sixteen bytes at a time.
@Suite struct JSONBlockTests {
  /// A string with one other character at every position of strings of every length up to three blocks.
  @Test(arguments: ["\"", "\\", "\\n", "\\\"", "\u{1}", "\u{1F}", " ", "é", "😀", "{", ","])
  func stringsAreScanned(character: String) throws {
    for count in 0...50 {
      for position in 0...count {
        let (before, after) = (
          String(repeating: "a", count: position), String(repeating: "b", count: count - position)
        )
        let contents = before + character + after
        let json = "[\"\(contents)\", 7]"
        let bytes = Array(json.utf8)
        let foundation = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [Any]
        #expect((JSONTextTests.problem(bytes) == nil) == (foundation != nil), "\(json)")
        guard let foundation else { continue }
        guard case .list(let list) = JSONValue(bytes[...]) else {
          Issue.record("\(json) is no array")
          continue
        }
        let expected = try #require(foundation.first as? String)
        #expect(list.elements == [.text(expected), .number("7")])
      }
    }
  }

  /// The offset of the first invalid byte, at every position and after characters of every width.
  @Test func findsInvalidUTF8() {
    for prefix in ["", "é", "€", "😀", "é€😀", String(repeating: "😀", count: 9)] {
      for count in 0...40 {
        let before = Array((prefix + String(repeating: "a", count: count)).utf8)
        for invalid in [[0x80], [0xC3], [0xC3, 0x28], [0xED, 0xA0, 0x80], [0xF0, 0x9F, 0x98]] as [[UInt8]] {
          for after in ["", String(repeating: "b", count: 20)] {
            let problem = JSONTextTests.problem([0x22] + before + invalid + Array(after.utf8) + [0x22])
            #expect(problem == JSONText.Problem(offset: before.count + 1, reason: "not UTF-8"))
          }
        }
        #expect(JSONTextTests.problem([0x22] + before + before + [0x22]) == nil)
      }
    }
  }
}
