import Testing

@testable import APNSMockNotation

@Suite struct TextPatternTests {
  @Test(arguments: [
    ("abc", "abc", true), ("abc", "abcd", false), ("abc", "ab", false), ("", "", true), ("", "a", false),
    ("*", "", true), ("*", "anything", true), ("a*", "a", true), ("a*", "ba", false), ("*c", "abc", true),
    ("a*c", "ac", true), ("a*c", "abbc", true), ("a*c", "abcb", false), ("a*a", "a", false), ("a*b*c", "aXbYc", true),
    ("a*b*c", "acb", false), ("*b*b*", "abab", true), ("*b*b*", "ab", false), ("**", "x", true),
    ("com.acme.*", "com.acme.app", true), ("com.acme.*", "com.acmeX", false), ("ABC", "abc", false),
    ("a.c", "abc", false),
  ])
  func matches(pattern: String, text: String, expected: Bool) {
    #expect(TextPattern(pattern, foldsCase: false).matches(text) == expected)
  }

  @Test func foldsASCIIOnly() {
    #expect(TextPattern("AB12*Ff", foldsCase: true).matches("ab12cdfF"))
    #expect(!TextPattern("Ä", foldsCase: true).matches("ä"))
    #expect(!TextPattern("[", foldsCase: true).matches("{"))
  }

  /// Long texts are compared eight bytes at a time, and the rest byte by byte.
  @Test func foldsCaseAnywhere() {
    let text = "0123456789abcdef0123456789abcdef-com"
    for index in text.indices {
      let changed = text[..<index] + text[index...index].uppercased() + text[text.index(after: index)...]
      #expect(TextPattern(changed, foldsCase: true).matches(text))
      #expect(TextPattern(text, foldsCase: true).matches(String(changed)))
      #expect(TextPattern(text, foldsCase: false).matches(String(changed)) == (changed == text))
      let other = text[..<index] + "x" + text[text.index(after: index)...]
      #expect(!TextPattern(text, foldsCase: true).matches(String(other)))
    }
  }

  @Test func starInAPieceIsNoWildcard() {
    #expect(TextPattern(pieces: ["A*"], foldsCase: true).matches("a*"))
    #expect(!TextPattern(pieces: ["A*"], foldsCase: true).matches("ab"))
  }

  /// Every short pattern of two letters and the star against every short text, compared with a simple matcher.
  @Test func agreesWithASimpleMatcher() {
    func words(_ letters: [Character], upTo count: Int) -> [[Character]] {
      var all: [[Character]] = [[]]
      var longest = all
      for _ in 0..<count {
        longest = longest.flatMap { word in letters.map { word + [$0] } }
        all += longest
      }
      return all
    }
    func matches(_ pattern: ArraySlice<Character>, _ text: ArraySlice<Character>) -> Bool {
      guard let first = pattern.first else { return text.isEmpty }
      if first == "*" {
        return matches(pattern.dropFirst(), text) || !text.isEmpty && matches(pattern, text.dropFirst())
      }
      return first == text.first && matches(pattern.dropFirst(), text.dropFirst())
    }
    let texts = words(["a", "b"], upTo: 6)
    for word in words(["a", "b", "*"], upTo: 5) {
      // A star on both sides forces a search in the middle of the text.
      let written = ["*"] + word + ["*"]
      let pattern = TextPattern(String(written), foldsCase: true)
      let wrong = texts.first { pattern.matches(String($0).uppercased()) != matches(written[...], $0[...]) }
      #expect(wrong == nil, "\(String(written))")
    }
  }

  /// Patterns with many stars take exponential time in backtracking matchers.
  @Test func hostilePatternsAreFast() {
    let pattern = TextPattern(String(repeating: "a*", count: 200) + "b", foldsCase: false)
    #expect(!pattern.matches(String(repeating: "a", count: 5000)))
  }
}

@Suite struct SpellingTests {
  private static let names = [
    "device_token", "topic", "status", "reason", "outcome", "push_type", "priority", "apns_id", "collapse_id",
    "push_key",
    "attempt", "accepted", "connection", "listener", "since", "until", "size_gt", "size_lt",
  ]

  @Test(arguments: [
    ("topik", "topic"), ("statsu", "status"), ("device-token", "device_token"), ("devicetoken", "device_token"),
    ("token", "device_token"), ("Topic", "topic"), ("collapse", "collapse_id"),
  ])
  func suggestsSimilarNames(word: String, name: String) {
    #expect(Spelling.nearest(to: word, among: Self.names) == name)
  }

  @Test(arguments: ["", "zzzzzz", "q", "payload"])
  func suggestsNoDistantNames(word: String) {
    #expect(Spelling.nearest(to: word, among: Self.names) == nil)
  }
}
