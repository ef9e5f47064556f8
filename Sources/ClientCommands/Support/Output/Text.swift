import APNSMockNotation

extension String {
  /// The string without white space at both ends.
  package var trimmed: String {
    var text = self[...]
    while text.last?.isWhitespace == true { text.removeLast() }
    return String(text.drop(while: \.isWhitespace))
  }

  /// The string with control characters and line separators escaped. Text from a peer can contain line breaks and
  /// terminal codes, which must not reach a log line or a table.
  package var onOneLine: String {
    guard unicodeScalars.contains(where: \.isControl) else { return self }
    return unicodeScalars.reduce(into: "") { line, scalar in
      line += scalar.isControl ? scalar.escaped(asASCII: true) : String(Character(scalar))
    }
  }

  /// The string with all characters except the unreserved ones as `%XX` (RFC 3986 section 2.3).
  var percentEncoded: String { PercentEncoding.encode(self) }
}

extension String {
  /// Returns a random device token.
  static func randomDeviceToken(digits count: Int) -> String {
    let digits = Array("0123456789abcdef")
    return String((0..<count).map { _ in digits[Int.random(in: 0..<16)] })
  }
}

extension Unicode.Scalar {
  fileprivate var isControl: Bool {
    switch properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}

/// Escapes characters that change how a terminal shows other text: control characters, bidirectional formatting and
/// zero-width characters.
///
/// The escapes are those of JSON (`\u202E`), so JSON stays valid: it has no such character outside of strings. Line
/// breaks, tabs and color sequences are not escaped.
struct TerminalText {
  /// The first bytes of an incomplete UTF-8 sequence.
  private var partial: [UInt8] = []

  /// Returns the escaped text for bytes that continue the previous ones. Invalid UTF-8 becomes U+FFFD.
  mutating func escaped(_ bytes: some Collection<UInt8>) -> [UInt8] {
    var bytes = partial + bytes
    partial = Array(bytes.suffix(Self.partialLength(bytes)))
    bytes.removeLast(partial.count)
    var escaped: [UInt8] = []
    var rest = String(decoding: bytes, as: UTF8.self).unicodeScalars[...]
    while let scalar = rest.first {
      if scalar == "\u{1B}", let end = Self.endOfColor(rest) {
        escaped += String(rest[..<end]).utf8
        rest = rest[end...]
        continue
      }
      rest.removeFirst()
      if scalar.changesOtherText {
        for unit in String(scalar).utf16 {
          escaped += ("\\u" + Hexadecimal.text(unit, digits: 4, uppercase: true)).utf8
        }
      } else {
        escaped += String(scalar).utf8
      }
    }
    return escaped
  }

  /// Returns the position after a color sequence (`ESC [ 31 m`) at the beginning of the text.
  private static func endOfColor(_ text: Substring.UnicodeScalarView) -> Substring.Index? {
    guard text.dropFirst().first == "[" else { return nil }
    let end = text.dropFirst(2).drop { ("0"..."9").contains($0) || $0 == ";" }
    return end.first == "m" ? text.index(after: end.startIndex) : nil
  }

  /// Returns the length of an incomplete UTF-8 sequence at the end.
  private static func partialLength(_ bytes: [UInt8]) -> Int {
    for length in 1...3 where length <= bytes.count {
      let byte = bytes[bytes.count - length]
      if byte & 0xC0 == 0x80 { continue }
      let wanted = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
      return wanted > length ? length : 0
    }
    return 0
  }
}

extension Unicode.Scalar {
  fileprivate var changesOtherText: Bool {
    switch properties.generalCategory {
    case .control: self != "\n" && self != "\t"
    // Bidirectional formatting, zero-width characters, tags.
    case .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}
