/// Reads JSON text value by value, from untrusted bytes.
///
/// The counterpart of `JSONWriter`. Only requested values are built, and a value can be read verbatim. Skipping a
/// value uses no memory, whatever its length and nesting, and only finds its end: skipped text is not validated.
package struct JSONReader {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  /// Creates a reader at the first value in `bytes`.
  package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// Returns an error at the current position.
  package func problem(_ reason: String) -> JSONText.Problem { JSONText.Problem(offset: position, reason: reason) }

  // MARK: - Objects and lists

  /// Reads an object: calls `member` with the name of each member to read its value. A value that `member` does not
  /// read is skipped.
  ///
  /// - Throws: `JSONText.Problem`, including errors thrown by `member`.
  package mutating func object(
    _ member: (_ name: String, _ reader: inout JSONReader) throws(JSONText.Problem) -> Void
  ) throws(JSONText.Problem) {
    try parts(of: "{", "}") { reader throws(JSONText.Problem) in
      let name = try reader.string()
      guard reader.take(":") else { throw reader.problem("no colon after \"\(name.prefix(40))\"") }
      let start = reader.position
      try member(name, &reader)
      if reader.position == start { _ = try reader.verbatim() }
    }
  }

  /// Reads an array: calls `element` for each element to read it.
  ///
  /// - Throws: `JSONText.Problem`, including errors thrown by `element`.
  package mutating func list(
    _ element: (_ reader: inout JSONReader) throws(JSONText.Problem) -> Void
  ) throws(JSONText.Problem) {
    try parts(of: "[", "]", element)
  }

  private mutating func parts(
    of open: Unicode.Scalar, _ close: Unicode.Scalar,
    _ part: (_ reader: inout JSONReader) throws(JSONText.Problem) -> Void
  ) throws(JSONText.Problem) {
    guard take(open) else { throw problem("no \(open)") }
    if take(close) { return }
    repeat { try part(&self) } while take(",")
    guard take(close) else { throw problem("neither , nor \(close)") }
  }

  // MARK: - Values

  /// Reads `null` if it is the next value; returns whether it was.
  package mutating func readNullIfPresent() -> Bool { takesWord("null") }

  /// Reads `true` or `false`.
  ///
  /// - Throws: `JSONText.Problem` for any other value.
  package mutating func flag() throws(JSONText.Problem) -> Bool {
    if takesWord("true") { return true }
    guard takesWord("false") else { throw problem("neither true nor false") }
    return false
  }

  /// Reads an integer.
  ///
  /// - Throws: `JSONText.Problem` for any other value, or if the integer is out of range.
  package mutating func whole<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) throws(JSONText.Problem)
    -> Number
  {
    let before = self
    guard let number = Number(numberText()) else { throw before.problem("not a whole number in the valid range") }
    return number
  }

  /// Reads a number.
  ///
  /// - Throws: `JSONText.Problem` for any other value, or if the number is not finite.
  package mutating func number() throws(JSONText.Problem) -> Double {
    let before = self
    guard let number = Double(numberText()), number.isFinite else { throw before.problem("no number") }
    return number
  }

  /// Reads a string. Invalid UTF-8 is replaced by U+FFFD.
  ///
  /// - Throws: `JSONText.Problem` if the next value is not a valid string.
  package mutating func string() throws(JSONText.Problem) -> String {
    guard take("\"") else { throw problem("no string") }
    // The decoded text before `start`.
    var text: [UInt8] = []
    var start = position
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "\""):
        let rest = bytes[start..<position]
        position += 1
        if text.isEmpty { return String(decoding: rest, as: UTF8.self) }
        text.append(contentsOf: rest)
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"):
        text.append(contentsOf: bytes[start..<position])
        try escape(into: &text)
        start = position
      case 0..<0x20: throw problem("a control character in a string")
      default: position += 1
      }
    }
    throw problem("a string without an end")
  }

  /// Skips a value of any type.
  ///
  /// - Returns: The bytes of the value without surrounding white space. The content of brackets is not validated.
  /// - Throws: `JSONText.Problem` if the value has no end.
  package mutating func verbatim() throws(JSONText.Problem) -> UnsafeRawBufferPointer {
    skipSpace()
    let start = position
    var depth = 0
    repeat {
      guard position < bytes.count else { throw problem("a value without an end") }
      switch bytes[position] {
      case UInt8(ascii: "\""): try passString()
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        depth += 1
        position += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth -= 1
        position += 1
      case UInt8(ascii: ","), UInt8(ascii: ":"), 0...0x20: position += 1
      default: skipKeyword()
      }
    } while depth > 0
    guard depth == 0, position > start, bytes[start] != UInt8(ascii: ","), bytes[start] != UInt8(ascii: ":") else {
      throw problem("no value")
    }
    return UnsafeRawBufferPointer(rebasing: bytes[start..<position])
  }

  // MARK: - Characters

  private mutating func skipSpace() {
    while position < bytes.count, bytes[position] <= 0x20 { position += 1 }
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    skipSpace()
    guard position < bytes.count, bytes[position] == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private mutating func takesWord(_ word: StaticString) -> Bool {
    skipSpace()
    let end = position + word.utf8CodeUnitCount
    guard end <= bytes.count,
      bytes[position..<end].elementsEqual(UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    else { return false }
    position = end
    return true
  }

  private mutating func numberText() -> Substring {
    skipSpace()
    let start = position
    skipKeyword()
    return String(decoding: bytes[start..<position], as: UTF8.self)[...]
  }

  /// Skips a number, a word, or any other characters up to the next delimiter.
  private mutating func skipKeyword() {
    while position < bytes.count {
      switch bytes[position] {
      case 0...0x20, UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "\""), UInt8(ascii: "{"), UInt8(ascii: "}"),
        UInt8(ascii: "["), UInt8(ascii: "]"):
        return
      default: position += 1
      }
    }
  }

  private mutating func passString() throws(JSONText.Problem) {
    position += 1
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "\""):
        position += 1
        return
      case UInt8(ascii: "\\"): position += 2
      default: position += 1
      }
    }
    throw problem("a string without an end")
  }

  private mutating func escape(into text: inout [UInt8]) throws(JSONText.Problem) {
    guard position + 1 < bytes.count else { throw problem("a string without an end") }
    let byte = bytes[position + 1]
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
    case UInt8(ascii: "b"): text.append(8)
    case UInt8(ascii: "f"): text.append(12)
    case UInt8(ascii: "n"): text.append(10)
    case UInt8(ascii: "r"): text.append(13)
    case UInt8(ascii: "t"): text.append(9)
    case UInt8(ascii: "u"):
      text.append(contentsOf: try unicodeEscape().utf8)
      return
    default: throw problem("an unknown escape")
    }
    position += 2
  }

  /// Reads `\uXXXX`, or two of them for a surrogate pair.
  private mutating func unicodeEscape() throws(JSONText.Problem) -> String {
    let first = try codeUnit()
    guard UTF16.isSurrogate(first) else { return String(decoding: [first], as: UTF16.self) }
    guard UTF16.isLeadSurrogate(first), position + 1 < bytes.count, bytes[position] == UInt8(ascii: "\\"),
      bytes[position + 1] == UInt8(ascii: "u")
    else { throw problem("half of a surrogate pair before here") }
    let second = try codeUnit()
    guard UTF16.isTrailSurrogate(second) else { throw problem("half of a surrogate pair before here") }
    return String(decoding: [first, second], as: UTF16.self)
  }

  private mutating func codeUnit() throws(JSONText.Problem) -> UInt16 {
    let digits = bytes[min(position + 2, bytes.count)..<min(position + 6, bytes.count)]
    guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
      let unit = UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
    else { throw problem("an escape without four hexadecimal digits") }
    position += 6
    return unit
  }
}

extension JSONReader {
  /// Reads a value, or null.
  ///
  /// - Throws: Errors thrown by `read`.
  package mutating func unlessNull<Value>(
    _ read: (inout JSONReader) throws(JSONText.Problem) -> Value
  ) throws(JSONText.Problem) -> Value? {
    if readNullIfPresent() { return nil }
    return try read(&self)
  }

  /// Reads a string, or null.
  ///
  /// - Throws: `JSONText.Problem` for any other value.
  package mutating func text() throws(JSONText.Problem) -> String? { try readNullIfPresent() ? nil : string() }
}
