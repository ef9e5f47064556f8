/// A position in JSON text, and the steps over tokens and values that all JSON parsers here share.
///
/// A scanner allocates nothing and does not recurse, so that neither length nor nesting of untrusted text costs
/// memory. It finds tokens without validating them: `JSONText.problem` does that. With invalid text the result is
/// unspecified, but a scanner stays within the text and always reaches its end.
package struct JSONScanner {
  /// A token of JSON text.
  package struct Token {
    /// The kind of a token.
    package enum Kind {
      /// `{` or `[`.
      case open
      /// `}` or `]`.
      case close
      case comma
      case colon
      case string
      /// A string without closing quotation mark.
      case incompleteString
      /// A number, `true`, `false` or `null`, or characters that belong to no other token.
      case word
    }

    package let kind: Kind
    /// The position of the token in the text; of a string, including its quotation marks.
    package let range: Range<Int>
  }

  /// The text.
  package let bytes: UnsafeRawBufferPointer
  /// The offset of the next byte to read.
  package internal(set) var position: Int

  /// Creates a scanner at an offset in `bytes`.
  package init(_ bytes: UnsafeRawBufferPointer, at position: Int = 0) {
    self.bytes = bytes
    self.position = position
  }

  /// The next byte; nil at the end.
  var current: UInt8? { position < bytes.count ? bytes[position] : nil }

  /// Returns an error at the current position.
  func problem(_ reason: String) -> JSONText.Problem { JSONText.Problem(offset: position, reason: reason) }

  // MARK: - Tokens

  /// Skips white space, which RFC 8259 limits to these four characters.
  mutating func skipSpace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x0A, 0x0D, 0x09: position += 1
      default: return
      }
    }
  }

  /// Skips white space, then `character` if it follows; returns whether it did.
  mutating func skip(_ character: Unicode.Scalar) -> Bool {
    skipSpace()
    return skipImmediate(character)
  }

  /// Skips `character` if it is the next byte; returns whether it is.
  mutating func skipImmediate(_ character: Unicode.Scalar) -> Bool {
    guard position < bytes.count, bytes[position] == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  /// Skips `literal` if it follows immediately; returns whether it did.
  mutating func skipLiteral(_ literal: StaticString) -> Bool {
    let end = position + literal.utf8CodeUnitCount
    let text = UnsafeRawBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount)
    guard end <= bytes.count, bytes[position..<end].elementsEqual(text) else { return false }
    position = end
    return true
  }

  /// Skips white space and the next token; returns the token, or nil at the end.
  package mutating func nextToken() -> Token? {
    skipSpace()
    guard position < bytes.count else { return nil }
    let start = position
    let kind: Token.Kind
    switch bytes[start] {
    case UInt8(ascii: "{"), UInt8(ascii: "["): kind = .open
    case UInt8(ascii: "}"), UInt8(ascii: "]"): kind = .close
    case UInt8(ascii: ","): kind = .comma
    case UInt8(ascii: ":"): kind = .colon
    case UInt8(ascii: "\""): kind = skipString() ? .string : .incompleteString
    default:
      skipWord()
      kind = .word
    }
    if position == start { position += 1 }
    return Token(kind: kind, range: start..<position)
  }

  /// Skips the string at the current position; returns whether it has a closing quotation mark.
  private mutating func skipString() -> Bool {
    position += 1
    while skipPlainText() {
      switch bytes[position] {
      case UInt8(ascii: "\""):
        position += 1
        return true
      case UInt8(ascii: "\\"): position += 2
      default: position += 1
      }
    }
    position = bytes.count
    return false
  }

  /// Skips the bytes of a string up to the next quotation mark, backslash or control character, sixteen at a time;
  /// returns whether there is one. Measured, together with the prefetching of records: a condition on the payload that
  /// every 1 KB push meets takes 0.9 instead of 3.4 µs per push. Byte by byte, most of that time was spent here.
  mutating func skipPlainText() -> Bool {
    guard let start = bytes.baseAddress else { return false }
    while position + ByteBlock.size <= bytes.count {
      let block = ByteBlock(start + position)
      let ends =
        block.positions(of: UInt8(ascii: "\"")) | block.positions(of: UInt8(ascii: "\\")) | block.positions(below: 0x20)
      if let end = ends.first {
        position += end
        return true
      }
      position += ByteBlock.size
    }
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"), 0..<0x20: return true
      default: position += 1
      }
    }
    return false
  }

  private mutating func skipWord() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x0A, 0x0D, 0x09, UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "\""), UInt8(ascii: "{"),
        UInt8(ascii: "}"), UInt8(ascii: "["), UInt8(ascii: "]"):
        return
      default: position += 1
      }
    }
  }

  // MARK: - Values

  /// Skips white space and the next value.
  ///
  /// - Returns: The position of the value in the text.
  /// - Throws: `JSONText.Problem` if there is no value, or if it has no end.
  @discardableResult
  package mutating func skipValue() throws(JSONText.Problem) -> Range<Int> {
    skipSpace()
    let start = position
    var depth = 0
    repeat {
      guard let token = nextToken() else { throw problem("a value without an end") }
      switch token.kind {
      case .open: depth += 1
      case .close: depth -= 1
      case .comma, .colon: if depth == 0 { throw problem("no value") }
      case .incompleteString: throw problem("a string without an end")
      case .string, .word: break
      }
    } while depth > 0
    guard depth == 0 else { throw problem("no value") }
    return start..<position
  }

  /// Enters the next value if it is an object; returns whether it is. Read the members with `nextMember`.
  package mutating func enterObject() -> Bool { skip("{") }

  /// Enters the next value if it is an array; returns whether it is. Read the elements with `nextElement`.
  package mutating func enterArray() -> Bool { skip("[") }

  /// Skips the next member of an object; returns the positions of its name, without quotation marks, and of its
  /// value. Nil after the last member.
  package mutating func nextMember() -> (name: Range<Int>, value: Range<Int>)? {
    _ = skip(",")
    guard let name = nextToken(), name.kind == .string, skip(":"), let value = try? skipValue() else { return nil }
    return (name.range.lowerBound + 1..<name.range.upperBound - 1, value)
  }

  /// Skips the next element of an array; returns its position. Nil after the last element.
  package mutating func nextElement() -> Range<Int>? {
    _ = skip(",")
    return try? skipValue()
  }

  // MARK: - Strings

  /// Decodes the escape sequences in the contents of a string. Invalid UTF-8 and unpaired surrogates are replaced by
  /// U+FFFD; invalid escape sequences are kept without their backslash.
  package static func unescaped(_ contents: UnsafeRawBufferPointer) -> String {
    let backslash = UInt8(ascii: "\\")
    guard let first = contents.firstPosition(of: backslash) else { return String(decoding: contents, as: UTF8.self) }
    var text = Array(contents[..<first])
    text.reserveCapacity(contents.count)
    var scanner = JSONScanner(contents, at: first)
    while let byte = scanner.current {
      guard byte == backslash else {
        let end = contents.firstPosition(of: backslash, from: scanner.position) ?? contents.count
        text.append(contentsOf: contents[scanner.position..<end])
        scanner.position = end
        continue
      }
      scanner.position += 1
      guard let escape = scanner.current else {
        text.append(byte)
        continue
      }
      scanner.position += 1
      switch escape {
      case UInt8(ascii: "b"): text.append(0x08)
      case UInt8(ascii: "f"): text.append(0x0C)
      case UInt8(ascii: "n"): text.append(0x0A)
      case UInt8(ascii: "r"): text.append(0x0D)
      case UInt8(ascii: "t"): text.append(0x09)
      case UInt8(ascii: "u"):
        scanner.position -= 2
        text.append(contentsOf: String(scanner.nextEscapedScalar() ?? "u").utf8)
      default: text.append(escape)
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Skips the escape sequence `\uXXXX`, or two of them for a surrogate pair; returns the scalar, U+FFFD for an
  /// unpaired surrogate. Without four hexadecimal digits, skips `\u` and returns nil.
  private mutating func nextEscapedScalar() -> Unicode.Scalar? {
    guard let unit = codeUnit(at: position) else {
      position += 2
      return nil
    }
    position += 6
    if let scalar = Unicode.Scalar(unit) { return scalar }
    guard UTF16.isLeadSurrogate(unit), let second = codeUnit(at: position), UTF16.isTrailSurrogate(second) else {
      return "\u{FFFD}"
    }
    position += 6
    return Unicode.Scalar(0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(second) - 0xDC00))
  }

  /// Returns the code unit of the escape sequence `\uXXXX` at an offset; nil for anything else.
  func codeUnit(at offset: Int) -> UInt16? {
    guard offset + 6 <= bytes.count, bytes[offset] == UInt8(ascii: "\\"), bytes[offset + 1] == UInt8(ascii: "u") else {
      return nil
    }
    var unit: UInt16 = 0
    for byte in bytes[offset + 2..<offset + 6] {
      guard let digit = Hexadecimal.value(of: byte) else { return nil }
      unit = unit << 4 | UInt16(digit)
    }
    return unit
  }
}
