/// A position in a text.
package struct TextPosition: Sendable, Equatable {
  /// The line, from 1.
  package let line: Int
  /// The column, from 1, in Unicode scalars.
  package let column: Int

  /// Creates a position.
  package init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }
}

/// An error in YAML text, or a value of another type than expected.
package struct YAMLError: Error, Sendable, Equatable {
  /// The position of the error; nil if it concerns the whole text.
  package let position: TextPosition?
  /// A description of the error.
  package let message: String
  /// A suggestion for fixing the error, if there is one.
  package let hint: String?
  /// The JSON pointer of the value with the error; empty if it is not known.
  package var pointer: String

  /// Creates an error.
  package init(at position: TextPosition?, pointer: String = "", _ message: String, hint: String? = nil) {
    self.position = position
    self.pointer = pointer
    self.message = message
    self.hint = hint
  }
}

/// A YAML value with its position, after tags, anchors and styles were processed.
package struct YAMLNode: Sendable {
  /// The value.
  package enum Content: Sendable {
    case scalar(Scalar)
    case list([YAMLNode])
    case map([Entry])
  }

  /// An unparsed scalar.
  package struct Scalar: Sendable, Equatable {
    /// The text.
    package let text: String
    /// Whether the scalar is certainly a string because it was quoted or a block scalar. A plain scalar may have any
    /// type.
    package let isString: Bool
  }

  /// A key of a map and its value.
  package struct Entry: Sendable {
    /// The key.
    package let key: String
    /// The position of the key.
    package let position: TextPosition
    /// The value.
    package let value: YAMLNode
  }

  /// The value.
  package let content: Content
  /// The position of its first character.
  package let position: TextPosition

  /// Whether the value is absent, as in `close:`, or null.
  package var isEmpty: Bool {
    guard case .scalar(let scalar) = content else { return false }
    return !scalar.isString && YAMLScalarKind(scalar.text) == .null
  }

  /// A description of the value's type, for messages.
  package var kind: String {
    switch content {
    case .scalar(let scalar):
      if scalar.isString { return "a string" }
      return switch YAMLScalarKind(scalar.text) {
      case .null: "nothing"
      case .boolean: "a Boolean"
      case .number: "a number"
      case .time: "a time"
      case .string: "a string"
      }
    case .list: return "a list"
    case .map: return "a map"
    }
  }

  // MARK: - Values

  /// Returns the entries of a map; an empty value, as in `close:`, has none.
  package func entries() throws(YAMLError) -> [Entry] {
    if case .map(let entries) = content { return entries }
    guard isEmpty else { throw error(expected: "a map") }
    return []
  }

  /// Returns the elements of a list.
  package func elements() throws(YAMLError) -> [YAMLNode] {
    guard case .list(let elements) = content else { throw error(expected: "a list") }
    return elements
  }

  /// Returns a scalar that is present.
  ///
  /// - Parameter expected: A description of the expected value, for messages.
  package func scalar(_ expected: String = "one value") throws(YAMLError) -> Scalar {
    guard case .scalar(let scalar) = content else { throw error(expected: expected) }
    guard !isEmpty else { throw YAMLError(at: position, "\(expected) is missing") }
    return scalar
  }

  /// The value of a key; nil if this is not a map or has no such key.
  package subscript(key: String) -> YAMLNode? {
    guard case .map(let entries) = content else { return nil }
    return entries.first { $0.key == key }?.value
  }

  /// The text of a scalar; nil for a list or map.
  package var text: String? {
    guard case .scalar(let scalar) = content else { return nil }
    return scalar.text
  }

  private func error(expected: String) -> YAMLError {
    YAMLError(at: position, "expected \(expected), not \(kind)")
  }

  /// Returns the position of the value at a JSON pointer: its key in a map, the value itself in a list. If the value
  /// does not exist, returns the position of the nearest enclosing one.
  package func position(atPointer pointer: String) -> TextPosition {
    var node = self
    var position = position
    for part in pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
      let name = String(part).replacing("~1", with: "/").replacing("~0", with: "~")
      switch node.content {
      case .map(let entries):
        guard let entry = entries.first(where: { $0.key == name }) else { return position }
        position = entry.position
        node = entry.value
      case .list(let elements):
        guard let index = Int(name), elements.indices.contains(index) else { return position }
        node = elements[index]
        position = node.position
      case .scalar: return position
      }
    }
    return position
  }

  // MARK: - JSON

  /// Writes the value as JSON. Plain scalars have the types of JSON: numbers, `true`, `false`, null, else strings. So
  /// `no` and `0123` become strings, although YAML 1.1 has other types for them.
  ///
  /// - Parameter keepsPlainScalars: Whether plain scalars that are not strings to YAML are written as they are, so
  ///   that the result is YAML with the same meaning instead of JSON.
  package func write(to writer: inout JSONWriter, keepsPlainScalars: Bool = false) {
    switch content {
    case .map(let entries):
      writer.object { writer in
        for entry in entries {
          writer.name(entry.key)
          entry.value.write(to: &writer, keepsPlainScalars: keepsPlainScalars)
        }
      }
    case .list(let elements):
      writer.array { writer in
        for element in elements { element.write(to: &writer, keepsPlainScalars: keepsPlainScalars) }
      }
    case .scalar(let scalar):
      guard !scalar.isString else { return writer.string(scalar.text) }
      guard !["", "~"].contains(scalar.text) else { return writer.null() }
      // A plain scalar cannot be an object or array, so valid JSON is a number, `true`, `false` or `null`.
      let bytes = Array(scalar.text.utf8)
      let isVerbatim = JSONText.problem(in: bytes) == nil || keepsPlainScalars && YAMLScalarKind(scalar.text) != .string
      if isVerbatim { writer.verbatim(bytes) } else { writer.string(scalar.text) }
    }
  }
}

/// The type that YAML parsers assign to a plain (unquoted) scalar.
///
/// YAML 1.1 and 1.2 disagree, so this is the union: a scalar is a string only if both read it as one.
package enum YAMLScalarKind: Equatable, Sendable {
  case null, boolean, number, time, string

  /// Determines the type of a plain scalar.
  package init(_ text: String) {
    switch text.lowercased() {
    case "", "~", "null": self = .null
    case "true", "false", "yes", "no", "on", "off", "y", "n": self = .boolean
    case ".inf", "+.inf", "-.inf", ".nan": self = .number
    default:
      let bytes = Array(text.utf8)
      if Self.isNumber(bytes[...]) {
        self = .number
      } else {
        self = Self.isTime(bytes) ? .time : .string
      }
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

  /// Matches `12`, `0410`, `1_000`, `0x1F`, `0o17`, `0b101`, `1.5`, `.5`, `1e9`, `12:30`, `1:02:03.5`, each
  /// optionally with a sign.
  private static func isNumber(_ text: ArraySlice<UInt8>) -> Bool {
    var rest = text
    if let sign = rest.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { rest.removeFirst() }
    guard let first = rest.first, isDigit(first) || first == UInt8(ascii: ".") else { return false }
    if rest.count > 2, first == UInt8(ascii: "0") {
      let digits = rest.dropFirst(2)
      switch rest[rest.startIndex + 1] {
      case UInt8(ascii: "x"): return digits.allSatisfy { Hexadecimal.isDigit($0) || $0 == UInt8(ascii: "_") }
      case UInt8(ascii: "o"):
        return digits.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "7") ~= $0 || $0 == UInt8(ascii: "_") }
      case UInt8(ascii: "b"): return digits.allSatisfy { "01_".utf8.contains($0) }
      default: break
      }
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
  private static func isTime(_ text: [UInt8]) -> Bool {
    let parts = text.prefix(10).split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].count == 4, parts[0].allSatisfy(isDigit), (1...2).contains(parts[1].count),
      parts[1].allSatisfy(isDigit), let first = parts[2].first, isDigit(first)
    else { return false }
    return parts[2].allSatisfy { isDigit($0) || "Tt ".utf8.contains($0) }
  }
}

extension YAMLNode {
  /// Reads a document in JSON or YAML.
  ///
  /// - Returns: The document as JSON, and its root with positions; nil for JSON that the YAML parser rejects.
  /// - Throws: `YAMLError` if it is neither, or if it is empty.
  package static func document(_ bytes: [UInt8]) throws(YAMLError) -> (json: [UInt8], root: YAMLNode?) {
    let text = try text(bytes)
    if JSONText.problem(in: bytes) == nil { return (bytes, try? parse(text)) }
    guard let root = try parse(text) else { throw YAMLError(at: nil, "the file is empty", hint: "add expectations") }
    var writer = JSONWriter()
    root.write(to: &writer)
    return (writer.bytes, root)
  }
}
