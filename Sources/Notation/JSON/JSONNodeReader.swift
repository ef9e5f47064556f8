/// Reads JSON as nodes with positions, one element of a long array at a time: a document of any length needs no more
/// memory than its largest element.
///
/// The text is validated as it is read. Errors are `YAMLError`s, because the nodes are those of YAML, which contains
/// JSON.
package struct JSONNodeReader {
  private var scanner: JSONScanner
  private var line = 1
  /// The offset of the first byte of the current line.
  private var lineStart = 0
  /// The number of bytes in the current line, up to the current position, that continue a character.
  private var continuationBytes = 0

  /// The maximum nesting depth of a node.
  private let maxDepth: Int
  /// The maximum number of members of an object. Objects with more have arbitrary names, and are none of ours.
  private let maxMembers: Int

  /// Creates a reader at the first value in `bytes`; a byte order mark is skipped.
  package init(_ bytes: UnsafeRawBufferPointer, maxMembers: Int = 64, maxDepth: Int = 64) {
    scanner = JSONScanner(bytes)
    self.maxMembers = maxMembers
    self.maxDepth = maxDepth
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
      scanner.position = 3
      lineStart = 3
    }
  }

  /// Reads a whole document.
  ///
  /// - Throws: `YAMLError` if it is not one JSON value, has a duplicate name or is nested too deeply.
  package static func document(
    _ json: [UInt8], maxMembers: Int = 64, maxDepth: Int = 64
  ) throws(YAMLError) -> YAMLNode {
    let result = json.withUnsafeBytes { bytes -> Result<YAMLNode, YAMLError> in
      do throws(YAMLError) {
        var reader = JSONNodeReader(bytes, maxMembers: maxMembers, maxDepth: maxDepth)
        let node = try reader.node()
        try reader.end()
        return .success(node)
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  /// The offset of the next byte to read.
  package var offset: Int { scanner.position }

  /// The position of the next value.
  package mutating func position() -> TextPosition {
    skipSpace()
    return place
  }

  private var place: TextPosition {
    TextPosition(line: line, column: scanner.position - lineStart - continuationBytes + 1)
  }

  private func error(_ message: String, hint: String? = nil) -> YAMLError {
    YAMLError(at: place, "invalid JSON: \(message)", hint: hint)
  }

  /// Skips white space and counts lines.
  private mutating func skipSpace() {
    while let byte = scanner.current {
      switch byte {
      case 0x0A:
        line += 1
        lineStart = scanner.position + 1
        continuationBytes = 0
      case 0x20, 0x0D, 0x09: break
      default: return
      }
      scanner.position += 1
    }
  }

  private mutating func skip(_ character: Unicode.Scalar) -> Bool {
    skipSpace()
    return scanner.skipImmediate(character)
  }

  // MARK: - Values

  /// Whether the next value is an array.
  package mutating func isAtList() -> Bool {
    skipSpace()
    return scanner.current == UInt8(ascii: "[")
  }

  /// Reads the next value, which must be small enough for memory.
  ///
  /// - Throws: `YAMLError` if it is not valid JSON, has a duplicate name or is nested too deeply.
  package mutating func node() throws(YAMLError) -> YAMLNode { try node(depth: 0) }

  /// Reads a member or an element; an error names it by its pointer.
  private mutating func node(depth: Int, at pointer: @autoclosure () -> String) throws(YAMLError) -> YAMLNode {
    do throws(YAMLError) {
      return try node(depth: depth)
    } catch {
      var error = error
      error.pointer = pointer() + error.pointer
      throw error
    }
  }

  private static func pointer(to name: String) -> String {
    "/" + name.replacing("~", with: "~0").replacing("/", with: "~1")
  }

  private mutating func node(depth: Int) throws(YAMLError) -> YAMLNode {
    let position = position()
    guard depth <= maxDepth else { throw YAMLError(at: position, "nested deeper than \(maxDepth)") }
    switch scanner.current {
    case UInt8(ascii: "{"):
      var entries: [YAMLNode.Entry] = []
      try object { name, position, reader throws(YAMLError) in
        let value = try reader.node(depth: depth + 1, at: Self.pointer(to: name))
        entries.append(YAMLNode.Entry(key: name, position: position, value: value))
      }
      return YAMLNode(content: .map(entries), position: position)
    case UInt8(ascii: "["):
      var elements: [YAMLNode] = []
      try list { reader throws(YAMLError) in
        let value = try reader.node(depth: depth + 1, at: "/\(elements.count)")
        elements.append(value)
      }
      return YAMLNode(content: .list(elements), position: position)
    case UInt8(ascii: "\""):
      return YAMLNode(content: .scalar(YAMLNode.Scalar(text: try string(), isString: true)), position: position)
    default:
      return YAMLNode(content: .scalar(YAMLNode.Scalar(text: try word(), isString: false)), position: position)
    }
  }

  /// Reads an object: calls `member` with each name and its position to read the member's value.
  ///
  /// - Throws: `YAMLError`, including errors thrown by `member`.
  package mutating func object(
    _ member: (_ name: String, _ position: TextPosition, _ reader: inout JSONNodeReader) throws(YAMLError) -> Void
  ) throws(YAMLError) {
    guard skip("{") else { throw error("expected {") }
    if skip("}") { return }
    // Nearly all objects are small. In a large one, a list of the names would be searched too often.
    var (names, furtherNames) = ([String](), Set<String>())
    repeat {
      let position = position()
      guard scanner.current == UInt8(ascii: "\"") else {
        throw error("expected the name of a member in quotation marks")
      }
      let name = try string()
      guard names.count + furtherNames.count < maxMembers else {
        throw YAMLError(at: position, "an object with more than \(maxMembers) members")
      }
      guard !names.contains(name), !furtherNames.contains(name) else {
        throw YAMLError(
          at: position, pointer: Self.pointer(to: name), "duplicate key: \(name.prefix(80))", hint: "keep one of them")
      }
      if names.count < 64 { names.append(name) } else { furtherNames.insert(name) }
      guard skip(":") else { throw error("expected a colon after a name") }
      try member(name, position, &self)
    } while skip(",")
    guard skip("}") else { throw error("expected a comma or }") }
  }

  /// Reads an array: calls `element` to read each element.
  ///
  /// - Throws: `YAMLError`, including errors thrown by `element`.
  package mutating func list(
    _ element: (_ reader: inout JSONNodeReader) throws(YAMLError) -> Void
  ) throws(YAMLError) {
    guard skip("[") else { throw error("expected [") }
    if skip("]") { return }
    repeat { try element(&self) } while skip(",")
    guard skip("]") else { throw error("expected a comma or ]") }
  }

  /// Checks that nothing but white space follows.
  ///
  /// - Throws: `YAMLError` for any other text.
  package mutating func end() throws(YAMLError) {
    skipSpace()
    guard scanner.current == nil else { throw error("more text after the end of the document") }
  }

  // MARK: - Scalars

  private mutating func string() throws(YAMLError) -> String {
    let start = self
    let contents: Range<Int>
    do throws(JSONText.Problem) {
      contents = try scanner.validateString()
    } catch {
      scanner.position = error.offset
      countContinuationBytes(from: start.scanner.position)
      throw self.error(error.reason)
    }
    let bytes = scanner.bytes.part(contents)
    guard bytes.contains(where: { $0 >= 0x80 || $0 == UInt8(ascii: "\\") }) else {
      return String(decoding: bytes, as: UTF8.self)
    }
    guard String(validating: bytes, as: UTF8.self) != nil else {
      throw start.error("a string that is not UTF-8", hint: "save the file in UTF-8")
    }
    countContinuationBytes(from: contents.lowerBound)
    return JSONScanner.unescaped(bytes)
  }

  private mutating func countContinuationBytes(from start: Int) {
    continuationBytes += scanner.bytes[start..<scanner.position].count { $0 & 0xC0 == 0x80 }
  }

  /// Reads a number, `true`, `false` or `null`.
  private mutating func word() throws(YAMLError) -> String {
    let start = self
    guard let token = scanner.nextToken() else { throw error("the text ends where a value is expected") }
    let bytes = scanner.bytes.part(token.range)
    guard token.kind == .word, JSONText.problem(in: bytes) == nil else { throw start.error("expected a value") }
    return String(decoding: bytes, as: UTF8.self)
  }
}
