/// A JSON pointer (RFC 6901), which identifies one value in a document.
package struct JSONPointer: Sendable, Equatable {
  /// A value in a document.
  package enum Value: Equatable, Sendable {
    /// A string, unescaped.
    case string(String)
    /// A number as written.
    case number(String)
    /// `true`, `false` or `null`.
    case word(String)
    /// An array or an object as written.
    case structure(String)
  }

  /// The names of members and indices of elements, unescaped.
  private let tokens: [[UInt8]]

  /// The number of levels from the root of a document to the value.
  package var depth: Int { tokens.count }

  /// Parses a pointer; nil if `text` is not empty and has no leading slash, or contains a `~` that is neither `~0`
  /// nor `~1`.
  package init?(_ text: String) {
    guard text.isEmpty || text.utf8.first == UInt8(ascii: "/") else { return nil }
    var tokens: [[UInt8]] = []
    for part in text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst() {
      var token: [UInt8] = []
      var rest = part.makeIterator()
      while let byte = rest.next() {
        guard byte == UInt8(ascii: "~") else {
          token.append(byte)
          continue
        }
        switch rest.next() {
        case UInt8(ascii: "0"): token.append(UInt8(ascii: "~"))
        case UInt8(ascii: "1"): token.append(UInt8(ascii: "/"))
        default: return nil
        }
      }
      tokens.append(token)
    }
    self.tokens = tokens
  }

  /// Returns the value in a document; nil if there is none. Of members with the same name, the last one counts, as
  /// in most JSON parsers.
  ///
  /// - Parameter document: JSON validated with `JSONText.problem`. With other input, the result is unspecified.
  package func value(in document: UnsafeRawBufferPointer) -> Value? {
    var scanner = JSONScanner(document)
    for token in tokens {
      guard scanner.enter(token) else { return nil }
    }
    return scanner.value()
  }
}

extension JSONPointer {
  /// Returns JSON text with every escape sequence decoded, for text searches.
  package static func unescaped(_ text: UnsafeRawBufferPointer) -> String { JSONScanner.unescaped(text[...]) }
}

/// A scanner for valid JSON that descends one level for each token of a pointer. It keeps only a position, and each
/// level scans the document at most once.
private struct JSONScanner {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
    skipSpace()
  }

  private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

  /// Moves to the member or element that `token` identifies in the current value.
  mutating func enter(_ token: [UInt8]) -> Bool {
    switch current {
    case UInt8(ascii: "{"): enterObject(token)
    case UInt8(ascii: "["): Self.index(token).map { enterArray($0) } ?? false
    default: false
    }
  }

  /// Parses an array index (RFC 6901, section 4): digits without leading zeros.
  private static func index(_ token: [UInt8]) -> Int? {
    guard token.count <= 9, token.first != UInt8(ascii: "0") || token.count == 1 else { return nil }
    guard token.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
    return Int(String(decoding: token, as: UTF8.self))
  }

  private mutating func enterObject(_ token: [UInt8]) -> Bool {
    var found: Int?
    position += 1
    skipSpace()
    while current == UInt8(ascii: "\"") {
      let isWanted = stringIs(token)
      skipSpace()
      position += 1  // Colon.
      skipSpace()
      if isWanted { found = position }
      skipValue()
      guard takeComma() else { break }
    }
    guard let found else { return false }
    position = found
    return true
  }

  private mutating func enterArray(_ index: Int) -> Bool {
    position += 1
    skipSpace()
    guard current != UInt8(ascii: "]") else { return false }
    for _ in 0..<index {
      skipValue()
      guard takeComma() else { return false }
    }
    return true
  }

  private mutating func takeComma() -> Bool {
    skipSpace()
    guard current == UInt8(ascii: ",") else { return false }
    position += 1
    skipSpace()
    return true
  }

  private mutating func skipSpace() {
    while let byte = current, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
  }

  /// Skips the current string and returns whether it equals `wanted`.
  private mutating func stringIs(_ wanted: [UInt8]) -> Bool {
    let start = position + 1
    skipString()
    let text = bytes[start..<max(start, position - 1)]
    guard text.contains(UInt8(ascii: "\\")) else { return text.elementsEqual(wanted) }
    return Self.unescaped(text).utf8.elementsEqual(wanted)
  }

  private mutating func skipString() {
    position += 1
    while let byte = current, byte != UInt8(ascii: "\"") { position += byte == UInt8(ascii: "\\") ? 2 : 1 }
    position = min(position + 1, bytes.count)
  }

  /// Skips the current value. Counts brackets instead of recursing, so that deep nesting uses no stack.
  private mutating func skipValue() {
    var depth = 0
    while let byte = current {
      switch byte {
      case UInt8(ascii: "\""):
        skipString()
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
        position += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        guard depth > 0 else { return }
        depth -= 1
        position += 1
      case UInt8(ascii: ","), UInt8(ascii: ":"), 0x20, 0x0A, 0x0D, 0x09:
        guard depth > 0 else { return }
        position += 1
        continue
      default:
        position += 1
        continue
      }
      if depth == 0 { return }
    }
  }

  /// Returns the current value.
  mutating func value() -> JSONPointer.Value? {
    guard let first = current else { return nil }
    let start = position
    skipValue()
    let text = bytes[start..<position]
    switch first {
    case UInt8(ascii: "\""): return .string(Self.unescaped(text.dropFirst().dropLast()))
    case UInt8(ascii: "{"), UInt8(ascii: "["): return .structure(String(decoding: text, as: UTF8.self))
    case UInt8(ascii: "t"), UInt8(ascii: "f"), UInt8(ascii: "n"): return .word(String(decoding: text, as: UTF8.self))
    default: return .number(String(decoding: text, as: UTF8.self))
    }
  }

  /// Decodes the contents of a string.
  static func unescaped(_ text: Slice<UnsafeRawBufferPointer>) -> String {
    guard text.contains(UInt8(ascii: "\\")) else { return String(decoding: text, as: UTF8.self) }
    // Decode as UTF-16, because \u escapes are UTF-16 code units.
    var units: [UInt16] = []
    var rest = String(decoding: text, as: UTF8.self).utf16.makeIterator()
    while let unit = rest.next() {
      guard unit == 0x5C, let escape = rest.next() else {
        units.append(unit)
        continue
      }
      switch escape {
      case 0x62: units.append(0x08)
      case 0x66: units.append(0x0C)
      case 0x6E: units.append(0x0A)
      case 0x72: units.append(0x0D)
      case 0x74: units.append(0x09)
      case 0x75:
        var code: UInt16 = 0
        for _ in 0..<4 {
          let digit = rest.next().flatMap { Unicode.Scalar($0) }.flatMap { Character($0).hexDigitValue } ?? 0
          code = code << 4 | UInt16(digit)
        }
        units.append(code)
      default: units.append(escape)
      }
    }
    return String(decoding: units, as: UTF16.self)
  }
}
