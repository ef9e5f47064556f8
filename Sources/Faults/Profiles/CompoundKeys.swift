/// Finds what may be a key that is no plain word: a list, a map, an alias.
///
/// No profile has any, but they have to be found before YAML is parsed: the parser compares the keys of a map with each
/// other, which takes as long as everything in a key is large, once for each map around it, and an alias multiplies
/// that. What is found need not be a key, as in "is it so ?", so a few are let through, which is harmless.
struct CompoundKeys {
  /// How many there may be.
  static let limit = 16
  /// How many aliases there may be together with such keys. Without them aliases do no harm.
  static let aliasLimit = 4

  private let bytes: Substring.UTF8View
  private var keys = 0
  private var aliases = 0

  init(_ text: String) { bytes = text[...].utf8 }

  /// Where the first one stands that is too many; nil if all is well.
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

  /// Whether a word of YAML may begin after a byte. Not after a quotation mark: there it is a part of the text.
  private static func canBegin(after byte: UInt8) -> Bool {
    byte <= UInt8(ascii: " ") || byte >= 0x80 || "[{,?:".utf8.contains(byte)
  }

  private func isKey(endingAt index: String.Index) -> Bool {
    bytes[index...].first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") } == UInt8(ascii: ":")
  }

  private static func isNameLetter(_ byte: UInt8) -> Bool {
    byte.isLetterOrDigit || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
  }

  /// The end of a line that is nothing but a comment. With a quotation mark in it, it may be the last line of a text.
  private func endOfComment(from index: String.Index) -> String.Index? {
    let rest = bytes[index...].drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    guard rest.first == UInt8(ascii: "#") else { return nil }
    let line = rest.prefix { $0 != UInt8(ascii: "\n") }
    return line.contains { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "'") } ? nil : line.endIndex
  }
}
