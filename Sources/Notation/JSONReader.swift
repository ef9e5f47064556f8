/// Reads JSON text value by value, from bytes that anybody may have written.
///
/// The counterpart of `JSONWriter`: nothing is built that nobody asked for, a value can be had as it is written, and
/// neither length nor depth of what is passed over costs memory. What is passed over is only looked at as far as it takes
/// to find its end.
public struct JSONReader {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  /// Begins before the first value in `bytes`.
  public init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// What is wrong at this place.
  public func problem(_ reason: String) -> JSONText.Problem { JSONText.Problem(offset: position, reason: reason) }

  // MARK: - Objects and lists

  /// Reads an object: calls `member` with the name of each member, to read its value. One that it leaves is passed over.
  ///
  /// - Throws: `JSONText.Problem`, also what `member` throws.
  public mutating func object(
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

  /// Reads a list: calls `element` for each element, to read it.
  ///
  /// - Throws: `JSONText.Problem`, also what `element` throws.
  public mutating func list(
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

  /// Reads `null`, if that is what comes next.
  public mutating func takesNull() -> Bool { takesWord("null") }

  /// Reads `true` or `false`.
  ///
  /// - Throws: `JSONText.Problem`.
  public mutating func flag() throws(JSONText.Problem) -> Bool {
    if takesWord("true") { return true }
    guard takesWord("false") else { throw problem("neither true nor false") }
    return false
  }

  /// Reads a whole number.
  ///
  /// - Throws: `JSONText.Problem`, also for one that the type cannot hold.
  public mutating func whole<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) throws(JSONText.Problem)
    -> Number
  {
    let before = self
    guard let number = Number(numberText()) else { throw before.problem("no whole number of a possible size") }
    return number
  }

  /// Reads a number.
  ///
  /// - Throws: `JSONText.Problem`.
  public mutating func number() throws(JSONText.Problem) -> Double {
    let before = self
    guard let number = Double(numberText()), number.isFinite else { throw before.problem("no number") }
    return number
  }

  /// Reads a string. What is not UTF-8 in it becomes U+FFFD.
  ///
  /// - Throws: `JSONText.Problem`.
  public mutating func string() throws(JSONText.Problem) -> String {
    guard take("\"") else { throw problem("no string") }
    // What was read of it, but for what stands since `start`.
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

  /// Passes over a value of any kind.
  ///
  /// - Returns: its bytes as they are written, without white space around them. What is between its brackets may be wrong.
  /// - Throws: `JSONText.Problem` if it has no end.
  public mutating func verbatim() throws(JSONText.Problem) -> UnsafeRawBufferPointer {
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
      default: passWord()
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
    passWord()
    return String(decoding: bytes[start..<position], as: UTF8.self)[...]
  }

  /// Passes over a number or a word, or whatever stands in its place.
  private mutating func passWord() {
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

  /// Reads `\uXXXX`, or two of them that are one character.
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
  /// - Throws: what `read` throws.
  public mutating func unlessNull<Value>(
    _ read: (inout JSONReader) throws(JSONText.Problem) -> Value
  ) throws(JSONText.Problem) -> Value? {
    if takesNull() { return nil }
    return try read(&self)
  }

  /// Reads a string, or null.
  ///
  /// - Throws: `JSONText.Problem`.
  public mutating func text() throws(JSONText.Problem) -> String? { try takesNull() ? nil : string() }
}
