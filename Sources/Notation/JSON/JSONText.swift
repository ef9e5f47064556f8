/// Validates JSON (RFC 8259), so that the bytes can be embedded verbatim in a JSON document.
///
/// Stricter than other parsers, because every reader of the inbox has to parse the result: accepts only UTF-8, no
/// byte order mark, no unpaired surrogates, and limited nesting.
package enum JSONText {
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

  /// Returns the first error that prevents `bytes` from being valid JSON; nil if there is none.
  ///
  /// - Parameter maxDepth: The maximum nesting, at most 512: more than the default for a document that embeds validated
  ///   text.
  package static func problem(in bytes: UnsafeRawBufferPointer, maxDepth: Int = maxDepth) -> Problem? {
    if let offset = firstInvalidUTF8(in: bytes) {
      let isUTF16 = offset == 0 && (bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]))
      return Problem(offset: offset, reason: isUTF16 ? "UTF-16 with a byte order mark, not UTF-8," : "not UTF-8")
    }
    var scanner = JSONScanner(bytes)
    do throws(Problem) {
      try scanner.validateValue(maxDepth: min(maxDepth, OpenContainers.capacity))
      scanner.skipSpace()
      return scanner.current == nil ? nil : scanner.problem("more text after the end of the value")
    } catch {
      return error
    }
  }

  /// Returns the first error that prevents `bytes` from being valid JSON; nil if there is none.
  package static func problem(in bytes: [UInt8]) -> Problem? { bytes.withUnsafeBytes { problem(in: $0) } }

  private static func firstInvalidUTF8(in bytes: UnsafeRawBufferPointer) -> Int? {
    guard let start = bytes.baseAddress else { return nil }
    var valid = 0
    while valid < bytes.count {
      // Most text is ASCII.
      if valid + ByteBlock.size <= bytes.count, ByteBlock(start + valid).isASCII {
        valid += ByteBlock.size
        continue
      }
      let end = min(valid + ByteBlock.size, bytes.count)
      var decoder = UTF8()
      var iterator = bytes[valid...].makeIterator()
      while valid < end {
        switch decoder.decode(&iterator) {
        case .scalarValue(let scalar): valid += UTF8.width(scalar)
        case .emptyInput: return nil
        case .error: return valid
        }
      }
    }
    return nil
  }
}

/// The kinds of the containers around a position in JSON text, innermost last. One bit each, so that no depth
/// allocates memory.
private struct OpenContainers {
  /// The maximum number of containers.
  static let capacity = 512

  private var objects = SIMD8<UInt64>()
  private(set) var count = 0

  /// Whether the innermost container is an object; false for an array, nil outside of containers.
  var isObject: Bool? { count == 0 ? nil : objects[(count - 1) >> 6] >> UInt64((count - 1) & 63) & 1 == 1 }

  /// Adds a container. There must be fewer than `capacity`.
  mutating func open(isObject: Bool) {
    let bit: UInt64 = 1 << UInt64(count & 63)
    if isObject { objects[count >> 6] |= bit } else { objects[count >> 6] &= ~bit }
    count += 1
  }

  mutating func close() { count -= 1 }
}

extension JSONScanner {
  /// Validates the next value and skips it.
  fileprivate mutating func validateValue(maxDepth: Int) throws(JSONText.Problem) {
    var containers = OpenContainers()
    repeat {
      guard containers.count < maxDepth else { throw problem("nested deeper than \(maxDepth)") }
      skipSpace()
      switch current {
      case UInt8(ascii: "{"):
        position += 1
        if !skip("}") {
          containers.open(isObject: true)
          try validateName()
          continue
        }
      case UInt8(ascii: "["):
        position += 1
        if !skip("]") {
          containers.open(isObject: false)
          continue
        }
      case UInt8(ascii: "\""): try validateString()
      case UInt8(ascii: "t"): try validate("true")
      case UInt8(ascii: "f"): try validate("false")
      case UInt8(ascii: "n"): try validate("null")
      case UInt8(ascii: "-"), .some(UInt8(ascii: "0")...UInt8(ascii: "9")): try validateNumber()
      case nil: throw problem(position == 0 ? "nothing" : "the text ends where a value is expected")
      case 0xEF where position == 0 && bytes.starts(with: [0xEF, 0xBB, 0xBF]):
        throw problem("a byte order mark, which JSON must not begin with,")
      default: throw problem("no JSON value")
      }
      try validateEnds(of: &containers)
    } while containers.count > 0
  }

  /// Validates what follows a value, up to the next value: the ends of containers, and a comma.
  private mutating func validateEnds(of containers: inout OpenContainers) throws(JSONText.Problem) {
    while let isObject = containers.isObject {
      if skip(",") {
        if isObject { try validateName() }
        return
      }
      guard skip(isObject ? "}" : "]") else {
        throw problem("neither comma nor closing \(isObject ? "brace" : "bracket")")
      }
      containers.close()
    }
  }

  private mutating func validateName() throws(JSONText.Problem) {
    skipSpace()
    guard current == UInt8(ascii: "\"") else { throw problem("no member name in quotes") }
    try validateString()
    guard skip(":") else { throw problem("no colon after a member name") }
  }

  private mutating func validate(_ literal: StaticString) throws(JSONText.Problem) {
    guard skipLiteral(literal) else { throw problem("no JSON value") }
  }

  private mutating func validateNumber() throws(JSONText.Problem) {
    _ = skipImmediate("-")
    if !skipImmediate("0") { try validateDigits() }
    if skipImmediate(".") { try validateDigits() }
    if skipImmediate("e") || skipImmediate("E") {
      if !skipImmediate("+") { _ = skipImmediate("-") }
      try validateDigits()
    }
  }

  private mutating func validateDigits() throws(JSONText.Problem) {
    let start = position
    while let byte = current, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
    if position == start { throw problem("a number without digits") }
  }

  /// Validates the string at the current position and skips it.
  ///
  /// - Returns: The position of its contents.
  @discardableResult
  mutating func validateString() throws(JSONText.Problem) -> Range<Int> {
    position += 1
    let start = position
    while skipPlainText() {
      switch bytes[position] {
      case UInt8(ascii: "\""):
        position += 1
        return start..<position - 1
      case UInt8(ascii: "\\"): try validateEscape()
      default: throw problem("a control character in a string")
      }
    }
    throw problem("a string without an end")
  }

  private mutating func validateEscape() throws(JSONText.Problem) {
    guard let escape = position + 1 < bytes.count ? bytes[position + 1] : nil, #""\/bfnrtu"#.utf8.contains(escape)
    else {
      position += 1
      throw problem("an unknown escape")
    }
    guard escape == UInt8(ascii: "u") else {
      position += 2
      return
    }
    guard let unit = codeUnit(at: position) else {
      position += 2
      while let byte = current, Hexadecimal.isDigit(byte) { position += 1 }
      throw problem("an escape without four hexadecimal digits")
    }
    position += 6
    guard UTF16.isSurrogate(unit) else { return }
    guard UTF16.isLeadSurrogate(unit), let second = codeUnit(at: position), UTF16.isTrailSurrogate(second) else {
      throw problem("half of a surrogate pair before here,")
    }
    position += 6
  }
}
