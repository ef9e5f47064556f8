public import Notation

/// A JSON value. What lies in a list or an object is read when somebody asks for it, so that the depth of a document
/// costs nothing.
public enum JSONValue: Equatable, Sendable {
  /// `null`.
  case null
  /// `true` or `false`.
  case flag(Bool)
  /// As it is written.
  case number(String)
  /// Without quotation marks and escapes.
  case text(String)
  /// An array.
  case list(JSONStructure)
  /// An object.
  case object(JSONStructure)

  /// - Parameter json: one value in which `JSONText.problem` finds nothing.
  public init(_ json: ArraySlice<UInt8>) {
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

  /// The value that a pointer found.
  public init(_ value: JSONPointer.Value) {
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

  /// Writes it as the next value.
  public func write(to writer: inout JSONWriter) {
    switch self {
    case .null: writer.null()
    case .flag(let flag): writer.bool(flag)
    case .number(var text): text.withUTF8 { writer.verbatim(UnsafeRawBufferPointer($0)) }
    case .text(let text): writer.string(text)
    case .list(let structure), .object(let structure): structure.json.withUnsafeBytes { writer.verbatim($0) }
    }
  }
}

/// A list or an object, as it is written.
public struct JSONStructure: Equatable, Sendable {
  fileprivate let json: ArraySlice<UInt8>

  fileprivate init(_ json: ArraySlice<UInt8>) { self.json = json }

  /// The elements of a list.
  public var elements: [JSONValue] { parts.map(JSONValue.init) }

  /// The members of an object in their order, as often as they stand there.
  public var entries: [(name: String, value: JSONValue)] {
    var entries: [(name: String, value: JSONValue)] = []
    var parts = parts.makeIterator()
    while let name = parts.next(), let value = parts.next() {
      if case .text(let name) = JSONValue(name) { entries.append((name, JSONValue(value))) }
    }
    return entries
  }

  /// The members of an object; of several with one name the last.
  public var members: [String: JSONValue] {
    entries.reduce(into: [:]) { $0[$1.name] = $1.value }
  }

  /// What stands between the brackets, at commas and colons cut into pieces, without the white space around them.
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
