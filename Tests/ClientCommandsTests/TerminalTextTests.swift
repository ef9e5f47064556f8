import Testing

@testable import APNSMockClientCommands

/// Escaping of external text for terminals.
@Suite struct TerminalTextTests {
  @Test(arguments: [
    ("plain, ä, 漢, 👍\tand\n", "plain, ä, 漢, 👍\tand\n"), ("\u{1B}[31mred\u{1B}[0m", "\u{1B}[31mred\u{1B}[0m"),
    ("\u{9B}31m", "\\u009B31m"), ("\u{85}", "\\u0085"), ("\u{7F}", "\\u007F"), ("\r", "\\u000D"),
    ("\u{1B}]0;title\u{7}", "\\u001B]0;title\\u0007"), ("\u{1B}[2J", "\\u001B[2J"), ("\u{1B}[", "\\u001B["),
    ("a\u{202E}b\u{2066}c\u{200F}", "a\\u202Eb\\u2066c\\u200F"),
    ("\u{200B}\u{200D}\u{2060}\u{FEFF}\u{AD}", "\\u200B\\u200D\\u2060\\uFEFF\\u00AD"),
    ("\u{2028}\u{2029}", "\\u2028\\u2029"), ("\u{E0041}", "\\uDB40\\uDC41"),
  ])
  func escapesControlSequences(text: String, shown: String) {
    var whole = TerminalText()
    #expect(String(decoding: whole.escaped(text.utf8), as: UTF8.self) == shown)
  }

  @Test func joinsCharactersSplitAcrossPieces() {
    var text = TerminalText()
    let pieces = "ä\u{202E}👍".utf8.map { text.escaped([$0]) }
    #expect(String(decoding: pieces.joined(), as: UTF8.self) == "ä\\u202E👍")
  }

  @Test func replacesInvalidUTF8() {
    var text = TerminalText()
    #expect(text.escaped([0x9B, 0x61, 0xC3]) == Array("\u{FFFD}a".utf8))
    #expect(text.escaped([0x62]) == Array("\u{FFFD}b".utf8))
  }
}
