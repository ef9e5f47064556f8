import FaultModel

/// A position in a text.
struct FilePosition: Sendable, Equatable {
  /// The line, from 1.
  let line: Int
  /// The column, from 1, in Unicode scalars.
  let column: Int
}

/// A YAML value with its position, after tags, anchors and styles were processed.
struct FileNode: Sendable {
  enum Content: Sendable {
    case scalar(Scalar)
    case list([FileNode])
    case map([Entry])
  }

  /// An unparsed scalar.
  struct Scalar: Sendable, Equatable {
    let text: String
    /// Whether the scalar is certainly a text because it was quoted or a block scalar. A plain scalar may have any
    /// type.
    let isText: Bool
    /// The name of the parameter that the value comes from.
    var knob: String?
  }

  /// A key of a map and its value.
  struct Entry: Sendable {
    let key: String
    /// The position of the key.
    let position: FilePosition
    let value: FileNode
  }

  let content: Content
  let position: FilePosition

  /// Whether the value is absent, as in `close:`.
  var isEmpty: Bool {
    guard case .scalar(let scalar) = content else { return false }
    return !scalar.isText && YAMLScalarKind(scalar.text) == .null
  }

  /// The type of the value, in words.
  var kind: String {
    switch content {
    case .scalar(let scalar):
      if scalar.isText { return "a string" }
      return switch YAMLScalarKind(scalar.text) {
      case .null: "nothing"
      case .boolean: "a truth value"
      case .number: "a number"
      case .time: "a time"
      case .text: "a string"
      }
    case .list: return "a list"
    case .map: return "a map"
    }
  }
}

/// The type that YAML parsers assign to an unquoted scalar.
///
/// YAML 1.1 and 1.2 disagree, so this is the union: a scalar is a text only if both read it as one.
enum YAMLScalarKind: Equatable {
  case null, boolean, number, time, text

  init(_ word: String) {
    switch word.lowercased() {
    case "", "~", "null": self = .null
    case "true", "false", "yes", "no", "on", "off", "y", "n": self = .boolean
    case ".inf", "+.inf", "-.inf", ".nan": self = .number
    default:
      let bytes = Array(word.utf8)
      if Self.isNumber(bytes[...]) {
        self = .number
      } else {
        self = Self.isTime(bytes) ? .time : .text
      }
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

  /// Matches `12`, `0410`, `1_000`, `0x1F`, `0o17`, `0b101`, `1.5`, `.5`, `1e9`, `12:30`, `1:02:03.5`, each
  /// optionally with a sign.
  private static func isNumber(_ word: ArraySlice<UInt8>) -> Bool {
    var rest = word
    if let sign = rest.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { rest.removeFirst() }
    guard let first = rest.first, isDigit(first) || first == UInt8(ascii: ".") else { return false }
    if rest.count > 2, first == UInt8(ascii: "0"), "xob".utf8.contains(rest[rest.startIndex + 1]) {
      return rest.dropFirst(2).allSatisfy { Character(Unicode.Scalar($0)).isHexDigit || $0 == UInt8(ascii: "_") }
    }
    let parts = rest.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
    if parts.count > 1 {
      return parts.enumerated().allSatisfy { index, part in
        !part.isEmpty && part.allSatisfy { isDigit($0) || index == parts.count - 1 && $0 == UInt8(ascii: ".") }
      }
    }
    let digits = rest.prefix { isDigit($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: ".") }
    guard digits.contains(where: isDigit), digits.count(where: { $0 == UInt8(ascii: ".") }) <= 1 else { return false }
    var exponent = rest.dropFirst(digits.count)
    guard let letter = exponent.popFirst() else { return true }
    guard letter == UInt8(ascii: "e") || letter == UInt8(ascii: "E") else { return false }
    if let sign = exponent.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { exponent.removeFirst() }
    return !exponent.isEmpty && exponent.allSatisfy(isDigit)
  }

  /// Matches `2026-01-31`, optionally followed by a time of day.
  private static func isTime(_ word: [UInt8]) -> Bool {
    let parts = word.prefix(10).split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].count == 4, parts[0].allSatisfy(isDigit), (1...2).contains(parts[1].count),
      parts[1].allSatisfy(isDigit), let first = parts[2].first, isDigit(first)
    else { return false }
    return parts[2].allSatisfy { isDigit($0) || "Tt ".utf8.contains($0) }
  }
}

/// Finds possible map keys that are not plain words: lists, maps and aliases.
///
/// No valid profile has such keys, but they must be found before the YAML is parsed: the parser compares the keys of
/// a map, in time proportional to the size of their contents, and again for each enclosing map; aliases multiply
/// that. Because a match may be plain text, as in "is it so ?", a few are allowed, which is harmless.
struct CompoundKeyScanner {
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
      scan(at: byte, index, after: before)
      if keys > Self.limit || keys > 0 && aliases > Self.aliasLimit { return index }
      before = byte
      index = bytes.index(after: index)
    }
    return nil
  }

  private mutating func scan(at byte: UInt8, _ index: String.Index, after before: UInt8) {
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
