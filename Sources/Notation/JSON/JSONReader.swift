/// Reads JSON text value by value, from untrusted bytes.
///
/// The counterpart of `JSONWriter`. Only requested values are built, and a value can be read verbatim. Skipping a
/// value uses no memory, whatever its length and nesting, and only finds its end: skipped text is not validated.
package struct JSONReader {
  private var scanner: JSONScanner

  /// Creates a reader at the first value in `bytes`.
  package init(_ bytes: UnsafeRawBufferPointer) { scanner = JSONScanner(bytes) }

  /// Returns an error at the current position.
  package func problem(_ reason: String) -> JSONText.Problem { scanner.problem(reason) }

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
      guard reader.scanner.skip(":") else { throw reader.problem("no colon after \"\(name.prefix(40))\"") }
      let start = reader.scanner.position
      try member(name, &reader)
      if reader.scanner.position == start { _ = try reader.verbatim() }
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
    guard scanner.skip(open) else { throw problem("no \(open)") }
    if scanner.skip(close) { return }
    repeat { try part(&self) } while scanner.skip(",")
    guard scanner.skip(close) else { throw problem("neither , nor \(close)") }
  }

  // MARK: - Values

  /// Reads `null` if it is the next value; returns whether it was.
  package mutating func readNullIfPresent() -> Bool { skip("null") }

  /// Reads `true` or `false`.
  ///
  /// - Throws: `JSONText.Problem` for any other value.
  package mutating func flag() throws(JSONText.Problem) -> Bool {
    if skip("true") { return true }
    guard skip("false") else { throw problem("neither true nor false") }
    return false
  }

  private mutating func skip(_ literal: StaticString) -> Bool {
    scanner.skipSpace()
    return scanner.skipLiteral(literal)
  }

  /// Reads an integer.
  ///
  /// - Throws: `JSONText.Problem` for any other value, or if the integer is out of range.
  package mutating func whole<Number: FixedWidthInteger>(_ type: Number.Type = Number.self) throws(JSONText.Problem)
    -> Number
  {
    try read("not a whole number in the valid range") { Number($0) }
  }

  /// Reads a number.
  ///
  /// - Throws: `JSONText.Problem` for any other value, or if the number is not finite.
  package mutating func number() throws(JSONText.Problem) -> Double {
    try read("no number") { Double($0).flatMap { $0.isFinite ? $0 : nil } }
  }

  private mutating func read<Number>(
    _ reason: String, _ convert: (Substring) -> Number?
  ) throws(JSONText.Problem) -> Number {
    scanner.skipSpace()
    let start = scanner
    guard let token = scanner.nextToken(), token.kind == .word,
      let number = convert(String(decoding: scanner.bytes[token.range], as: UTF8.self)[...])
    else { throw start.problem(reason) }
    return number
  }

  /// Reads a string. Invalid UTF-8 is replaced by U+FFFD.
  ///
  /// - Throws: `JSONText.Problem` if the next value is not a valid string.
  package mutating func string() throws(JSONText.Problem) -> String {
    scanner.skipSpace()
    guard scanner.current == UInt8(ascii: "\"") else { throw problem("no string") }
    let contents = try scanner.validateString()
    return JSONScanner.unescaped(scanner.bytes.part(contents))
  }

  /// Skips a value of any type.
  ///
  /// - Returns: The bytes of the value without surrounding white space. The content of brackets is not validated.
  /// - Throws: `JSONText.Problem` if the value has no end.
  package mutating func verbatim() throws(JSONText.Problem) -> UnsafeRawBufferPointer {
    scanner.bytes.part(try scanner.skipValue())
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
