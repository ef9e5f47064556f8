/// Validates JSON (RFC 8259), so that the bytes can be embedded verbatim in a JSON document.
///
/// Stricter than other parsers, because every reader of the inbox has to parse the result: accepts only UTF-8, no
/// byte order mark, no unpaired surrogates, and limited nesting.
package struct JSONText {
  /// An error in JSON text.
  package struct Problem: Error, Equatable, CustomStringConvertible {
    /// The offset of the error in bytes.
    package let offset: Int
    /// The description of the error.
    package let reason: String

    /// The description and the offset.
    package var description: String { "\(reason) at byte \(offset)" }
  }

  /// The maximum nesting of arrays and objects. Foundation's parser ends at 512 and Python's at about 1000, and
  /// validated text is embedded some levels deep in a list of records.
  package static let maxDepth = 500

  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  /// Returns the first error that prevents `bytes` from being valid JSON; nil if there is none.
  package static func problem(in bytes: UnsafeRawBufferPointer) -> Problem? {
    if let offset = firstInvalidUTF8(in: bytes) { return Problem(offset: offset, reason: "not UTF-8") }
    var text = JSONText(bytes: bytes)
    do throws(Problem) {
      try text.value(depth: 0)
      text.skipSpace()
      if text.position < bytes.count { throw text.problem("more text after the end of the value") }
      return nil
    } catch {
      return error
    }
  }

  private init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  private static func firstInvalidUTF8(in bytes: UnsafeRawBufferPointer) -> Int? {
    var decoder = UTF8()
    var iterator = bytes.makeIterator()
    var valid = 0
    while true {
      switch decoder.decode(&iterator) {
      case .scalarValue(let scalar): valid += UTF8.width(scalar)
      case .emptyInput: return nil
      case .error: return valid
      }
    }
  }

  private func problem(_ reason: String) -> Problem { Problem(offset: position, reason: reason) }

  private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func skipSpace() {
    while let byte = current, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
  }

  private mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard current == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  private mutating func value(depth: Int) throws(Problem) {
    guard depth < Self.maxDepth else { throw problem("nested deeper than \(Self.maxDepth)") }
    skipSpace()
    guard let byte = current else {
      throw problem(position == 0 ? "nothing" : "the text ends where a value is expected")
    }
    switch byte {
    case UInt8(ascii: "{"): try object(depth: depth)
    case UInt8(ascii: "["): try array(depth: depth)
    case UInt8(ascii: "\""): try string()
    case UInt8(ascii: "t"): try literal("true")
    case UInt8(ascii: "f"): try literal("false")
    case UInt8(ascii: "n"): try literal("null")
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try number()
    default: throw problem("no JSON value")
    }
  }

  private mutating func object(depth: Int) throws(Problem) {
    position += 1
    skipSpace()
    if take("}") { return }
    repeat {
      skipSpace()
      guard current == UInt8(ascii: "\"") else { throw problem("no member name in quotes") }
      try string()
      skipSpace()
      guard take(":") else { throw problem("no colon after a member name") }
      try value(depth: depth + 1)
      skipSpace()
    } while take(",")
    guard take("}") else { throw problem("neither comma nor closing brace") }
  }

  private mutating func array(depth: Int) throws(Problem) {
    position += 1
    skipSpace()
    if take("]") { return }
    repeat {
      try value(depth: depth + 1)
      skipSpace()
    } while take(",")
    guard take("]") else { throw problem("neither comma nor closing bracket") }
  }

  private mutating func literal(_ word: StaticString) throws(Problem) {
    let end = position + word.utf8CodeUnitCount
    guard end <= bytes.count,
      bytes[position..<end].elementsEqual(UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    else { throw problem("no JSON value") }
    position = end
  }

  private mutating func number() throws(Problem) {
    _ = take("-")
    if !take("0") { try digits() }
    if take(".") { try digits() }
    if take("e") || take("E") {
      if !take("+") { _ = take("-") }
      try digits()
    }
  }

  private mutating func digits() throws(Problem) {
    let start = position
    while let byte = current, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
    if position == start { throw problem("a number without digits") }
  }

  private mutating func string() throws(Problem) {
    position += 1
    while let byte = current {
      switch byte {
      case UInt8(ascii: "\""):
        position += 1
        return
      case UInt8(ascii: "\\"): try escape()
      case 0..<0x20: throw problem("a control character in a string")
      default: position += 1
      }
    }
    throw problem("a string without an end")
  }

  private mutating func escape() throws(Problem) {
    position += 1
    switch current {
    case UInt8(ascii: "u"):
      position -= 1
      let unit = try unicodeEscape()
      if (0xDC00...0xDFFF).contains(unit) { throw problem("half of a surrogate pair before here,") }
      guard (0xD800...0xDBFF).contains(unit) else { return }
      guard position + 1 < bytes.count, bytes[position] == UInt8(ascii: "\\"), bytes[position + 1] == UInt8(ascii: "u"),
        (0xDC00...0xDFFF).contains(try unicodeEscape())
      else { throw problem("half of a surrogate pair before here,") }
    case .some(let byte) where #""\/bfnrt"#.utf8.contains(byte): position += 1
    default: throw problem("an unknown escape")
    }
  }

  /// Reads `\uXXXX`; the caller has already checked the first two characters.
  private mutating func unicodeEscape() throws(Problem) -> Int {
    position += 2
    var unit = 0
    for _ in 0..<4 {
      guard let byte = current, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
        throw problem("an escape without four hexadecimal digits")
      }
      unit = unit << 4 | digit
      position += 1
    }
    return unit
  }
}
