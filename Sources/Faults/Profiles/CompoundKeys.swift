/// Finds possible map keys that are not plain words: lists, maps and aliases.
///
/// No valid profile has such keys, but they must be found before the YAML is parsed: the parser compares the keys of
/// a map, in time proportional to the size of their contents, and again for each enclosing map; aliases multiply
/// that. Because a match may be plain text, as in "is it so ?", a few are allowed, which is harmless.
struct CompoundKeys {
  /// The maximum number of such keys.
  static let limit = 16
  /// The maximum number of aliases in a text that has such keys. Aliases alone are harmless.
  static let aliasLimit = 4

  private let bytes: Substring.UTF8View
  private var keys = 0
  private var aliases = 0

  init(_ text: String) { bytes = text[...].utf8 }

  /// Returns the position of the first key or alias beyond the limits; nil if there is none.
  mutating func firstBeyondLimit() -> String.Index? {
    var index = bytes.startIndex
    var before = UInt8(ascii: "\n")
    while index < bytes.endIndex {
      let byte = bytes[index]
      if before == UInt8(ascii: "\n"), let end = endOfComment(from: index) {
        index = end
        continue
      }
      look(at: byte, index, after: before)
      if keys > Self.limit || keys > 0 && aliases > Self.aliasLimit { return index }
      before = byte
      index = bytes.index(after: index)
    }
    return nil
  }

  private mutating func look(at byte: UInt8, _ index: String.Index, after before: UInt8) {
    let next = bytes.index(after: index)
    switch byte {
    case UInt8(ascii: "?") where Self.canBegin(after: before): keys += 1
    case UInt8(ascii: "]"), UInt8(ascii: "}"):
      if isKey(endingAt: next) { keys += 1 }
    case UInt8(ascii: "*") where Self.canBegin(after: before):
      let end = bytes[next...].firstIndex { !Self.isNameLetter($0) } ?? bytes.endIndex
      guard end > next else { return }
      aliases += 1
      if isKey(endingAt: end) { keys += 1 }
    default: break
    }
  }

  /// Returns whether a YAML token may begin after a byte. Not after a quotation mark, which begins a quoted text.
  private static func canBegin(after byte: UInt8) -> Bool {
    byte <= UInt8(ascii: " ") || byte >= 0x80 || "[{,?:".utf8.contains(byte)
  }

  private func isKey(endingAt index: String.Index) -> Bool {
    bytes[index...].first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") } == UInt8(ascii: ":")
  }

  private static func isNameLetter(_ byte: UInt8) -> Bool {
    byte.isLetterOrDigit || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
  }

  /// Returns the end of a line that is only a comment. A line with a quotation mark does not count, because it may
  /// be the last line of a quoted text.
  private func endOfComment(from index: String.Index) -> String.Index? {
    let rest = bytes[index...].drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    guard rest.first == UInt8(ascii: "#") else { return nil }
    let line = rest.prefix { $0 != UInt8(ascii: "\n") }
    return line.contains { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "'") } ? nil : line.endIndex
  }
}
