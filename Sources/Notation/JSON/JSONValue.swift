/// A JSON value. Arrays and objects are parsed only when their contents are accessed, so that deep nesting costs
/// nothing.
package enum JSONValue: Equatable, Sendable {
  /// `null`.
  case null
  /// `true` or `false`.
  case flag(Bool)
  /// A number as written.
  case number(String)
  /// A string, unescaped.
  case text(String)
  /// An array.
  case list(JSONStructure)
  /// An object.
  case object(JSONStructure)

  /// Parses a value.
  ///
  /// - Parameter json: One value, validated with `JSONText.problem`.
  package init(_ json: ArraySlice<UInt8>) {
    self = json.withUnsafeBytes { bytes in
      var scanner = JSONScanner(bytes)
      guard let range = try? scanner.skipValue() else { return .null }
      let value = json[json.startIndex + range.lowerBound..<json.startIndex + range.upperBound]
      return JSONValue(bytes.part(range), copy: value)
    }
  }

  /// Creates the value of a node.
  package init(_ node: YAMLNode) {
    var writer = JSONWriter()
    node.write(to: &writer)
    self.init(writer.bytes[...])
  }

  /// The value as a node without a position. Of members with the same name, the last one counts. What is nested deeper than any
  /// document that a schema describes counts as null, because each level is scanned again.
  package var node: YAMLNode { node(depth: 64) }

  private func node(depth: Int) -> YAMLNode {
    guard depth > 0 else { return JSONValue.null.node }
    let position = TextPosition(line: 1, column: 1)
    let content: YAMLNode.Content =
      switch self {
      case .null: .scalar(YAMLNode.Scalar(text: "null", isString: false))
      case .flag(let flag): .scalar(YAMLNode.Scalar(text: String(flag), isString: false))
      case .number(let text): .scalar(YAMLNode.Scalar(text: text, isString: false))
      case .text(let text): .scalar(YAMLNode.Scalar(text: text, isString: true))
      case .list(let list): .list(list.elements.map { $0.node(depth: depth - 1) })
      case .object(let object):
        .map(
          object.members.sorted { $0.key < $1.key }
            .map { YAMLNode.Entry(key: $0.key, position: position, value: $0.value.node(depth: depth - 1)) })
      }
    return YAMLNode(content: content, position: position)
  }

  /// Parses a value without surrounding white space.
  init(_ json: UnsafeRawBufferPointer) { self.init(json, copy: ArraySlice(json)) }

  /// - Parameter copy: The same bytes, which an array or an object keeps.
  fileprivate init(_ json: UnsafeRawBufferPointer, copy: @autoclosure () -> ArraySlice<UInt8>) {
    switch json.first {
    case UInt8(ascii: "{"): self = .object(JSONStructure(copy()))
    case UInt8(ascii: "["): self = .list(JSONStructure(copy()))
    case UInt8(ascii: "\""):
      self = .text(JSONScanner.unescaped(UnsafeRawBufferPointer(rebasing: json.dropFirst().dropLast())))
    case UInt8(ascii: "t"): self = .flag(true)
    case UInt8(ascii: "f"): self = .flag(false)
    case UInt8(ascii: "n"), nil: self = .null
    default: self = .number(String(decoding: json, as: UTF8.self))
    }
  }

  /// Writes the value to `writer`.
  package func write(to writer: inout JSONWriter) {
    switch self {
    case .null: writer.null()
    case .flag(let flag): writer.bool(flag)
    case .number(let text): writer.verbatim(Array(text.utf8))
    case .text(let text): writer.string(text)
    case .list(let structure), .object(let structure): structure.json.withUnsafeBytes { writer.verbatim($0) }
    }
  }
}

/// An unparsed JSON array or object.
package struct JSONStructure: Equatable, Sendable {
  /// The array or object as written.
  package let json: ArraySlice<UInt8>

  fileprivate init(_ json: ArraySlice<UInt8>) { self.json = json }

  /// The elements of an array.
  package var elements: [JSONValue] {
    let ranges = json.withUnsafeBytes { bytes in
      var ranges: [Range<Int>] = []
      var scanner = JSONScanner(bytes)
      guard scanner.enterArray() else { return ranges }
      while let element = scanner.nextElement() { ranges.append(element) }
      return ranges
    }
    return ranges.map(value)
  }

  /// The members of an object in order, including duplicates.
  package var entries: [(name: String, value: JSONValue)] {
    let members = json.withUnsafeBytes { bytes in
      var members: [(name: String, value: Range<Int>)] = []
      var scanner = JSONScanner(bytes)
      guard scanner.enterObject() else { return members }
      while let (name, value) = scanner.nextMember() {
        members.append((JSONScanner.unescaped(bytes.part(name)), value))
      }
      return members
    }
    return members.map { ($0.name, value($0.value)) }
  }

  /// The members of an object; of duplicate names, the last one.
  package var members: [String: JSONValue] {
    entries.reduce(into: [:]) { $0[$1.name] = $1.value }
  }

  private func value(_ range: Range<Int>) -> JSONValue {
    let value = json[json.startIndex + range.lowerBound..<json.startIndex + range.upperBound]
    return value.withUnsafeBytes { JSONValue($0, copy: value) }
  }
}

extension JSONValue {
  /// Returns whether two values are equal: numbers by value, strings byte by byte, members in any order. `3` does
  /// not equal `"3"`.
  ///
  /// The time is proportional to this value's depth multiplied by the length of `other`.
  package func isSame(as other: JSONValue) -> Bool {
    switch (self, other) {
    case (.null, .null): return true
    case (.flag(let one), .flag(let other)): return one == other
    // Compare UTF-8: Swift treats strings in different normalization forms as equal.
    case (.text(let one), .text(let other)): return one.utf8.elementsEqual(other.utf8)
    case (.number(let one), .number(let other)):
      guard let first = QueryNumber(one), let second = QueryNumber(other) else { return one == other }
      return first == second
    case (.list(let one), .list(let other)):
      let (first, second) = (one.elements, other.elements)
      return first.count == second.count && zip(first, second).allSatisfy { $0.isSame(as: $1) }
    case (.object(let one), .object(let other)):
      let (first, second) = (one.members, other.members)
      return first.count == second.count && first.allSatisfy { name, value in second[name].map(value.isSame) ?? false }
    default: return false
    }
  }

  /// The maximum nesting depth of arrays and objects.
  package var depth: Int {
    let parts: [JSONValue]
    switch self {
    case .list(let list): parts = list.elements
    case .object(let object): parts = object.entries.map(\.value)
    default: return 0
    }
    return 1 + (parts.map(\.depth).max() ?? 0)
  }
}
