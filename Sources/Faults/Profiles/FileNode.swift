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
    return !scalar.isText && PlainKind(scalar.text) == .null
  }

  /// The type of the value, in words.
  var kind: String {
    switch content {
    case .scalar(let scalar):
      if scalar.isText { return "a string" }
      return switch PlainKind(scalar.text) {
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
enum PlainKind: Equatable {
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
