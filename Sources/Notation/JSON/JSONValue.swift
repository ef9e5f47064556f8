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
    let json = json.drop { $0 <= UInt8(ascii: " ") }
    switch json.withUnsafeBytes({ JSONPointer("")?.value(in: $0) }) {
    case .string(let text): self = .text(text)
    case .number(let text): self = .number(text)
    case .word("true"): self = .flag(true)
    case .word("false"): self = .flag(false)
    case .structure where json.first == UInt8(ascii: "["): self = .list(JSONStructure(json))
    case .structure: self = .object(JSONStructure(json))
    case .word, nil: self = .null
    }
  }

  /// Creates a value from the result of a JSON pointer.
  package init(_ value: JSONPointer.Value) {
    switch value {
    case .string(let text): self = .text(text)
    case .number(let text): self = .number(text)
    case .word("true"): self = .flag(true)
    case .word("false"): self = .flag(false)
    case .word: self = .null
    case .structure(let text):
      let json = Array(text.utf8)[...]
      self = json.first == UInt8(ascii: "[") ? .list(JSONStructure(json)) : .object(JSONStructure(json))
    }
  }

  /// Writes the value to `writer`.
  package func write(to writer: inout JSONWriter) {
    switch self {
    case .null: writer.null()
    case .flag(let flag): writer.bool(flag)
    case .number(var text): text.withUTF8 { writer.verbatim(UnsafeRawBufferPointer($0)) }
    case .text(let text): writer.string(text)
    case .list(let structure), .object(let structure): structure.json.withUnsafeBytes { writer.verbatim($0) }
    }
  }
}

/// An unparsed JSON array or object.
package struct JSONStructure: Equatable, Sendable {
  fileprivate let json: ArraySlice<UInt8>

  fileprivate init(_ json: ArraySlice<UInt8>) { self.json = json }

  /// The elements of an array.
  package var elements: [JSONValue] { parts.map(JSONValue.init) }

  /// The members of an object in order, including duplicates.
  package var entries: [(name: String, value: JSONValue)] {
    var entries: [(name: String, value: JSONValue)] = []
    var parts = parts.makeIterator()
    while let name = parts.next(), let value = parts.next() {
      if case .text(let name) = JSONValue(name) { entries.append((name, JSONValue(value))) }
    }
    return entries
  }

  /// The members of an object; of duplicate names, the last one.
  package var members: [String: JSONValue] {
    entries.reduce(into: [:]) { $0[$1.name] = $1.value }
  }

  /// The contents, split at commas and colons, without the surrounding white space.
  private var parts: [ArraySlice<UInt8>] {
    var parts: [ArraySlice<UInt8>] = []
    var depth = 0
    var isInString = false
    var position = json.startIndex
    var start: Int?
    var end = position
    while position < json.endIndex {
      let byte = json[position]
      if isInString {
        if byte == UInt8(ascii: "\\") { position += 1 }
        if byte == UInt8(ascii: "\"") { isInString = false }
      } else {
        switch byte {
        case UInt8(ascii: "\""): isInString = true
        case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
        case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
        default: break
        }
      }
      position += 1
      let isOpening = position == json.startIndex + 1
      let isSeparator = !isInString && depth == 1 && (byte == UInt8(ascii: ",") || byte == UInt8(ascii: ":"))
      if isSeparator || depth == 0 {
        if let start { parts.append(json[start..<end]) }
        start = nil
      } else if !isOpening, isInString || byte > UInt8(ascii: " ") {
        start = start ?? position - 1
        end = min(position, json.endIndex)
      }
    }
    return parts
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
