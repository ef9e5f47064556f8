import APNSMockFaultModel
import APNSMockFaults
import APNSMockNotation

/// A parsed JSON document, for comparing the results of two parsers.
indirect enum JSONTree: Equatable {
  case null
  case flag(Bool)
  case number(String)
  case text(String)
  case list([JSONTree])
  case object([Member])

  struct Member: Equatable {
    let name: String
    let value: JSONTree
  }

  /// Reads the next value of a `JSONReader`, the streaming parser.
  init(_ reader: inout JSONReader, depth: Int = 0) throws(JSONText.Problem) {
    // Invalid JSON may be nested more deeply.
    guard depth <= JSONText.maxDepth else { throw reader.problem("nested too deep") }
    var ahead = reader
    let written = try ahead.verbatim()
    switch written.first {
    case UInt8(ascii: "{"):
      var members: [Member] = []
      try reader.object { name, reader throws(JSONText.Problem) in
        members.append(Member(name: name, value: try JSONTree(&reader, depth: depth + 1)))
      }
      self = .object(members)
    case UInt8(ascii: "["):
      var elements: [JSONTree] = []
      try reader.list { reader throws(JSONText.Problem) in elements.append(try JSONTree(&reader, depth: depth + 1)) }
      self = .list(elements)
    case UInt8(ascii: "\""): self = .text(try reader.string())
    case UInt8(ascii: "t"), UInt8(ascii: "f"): self = .flag(try reader.flag())
    case UInt8(ascii: "n"):
      guard reader.readNullIfPresent() else { throw reader.problem("no null") }
      self = .null
    default:
      reader = ahead
      self = .number(String(decoding: written, as: UTF8.self))
    }
  }

  /// Converts a `JSONValue`, which parses its parts on access.
  init(_ value: JSONValue) {
    switch value {
    case .null: self = .null
    case .flag(let flag): self = .flag(flag)
    case .number(let text): self = .number(text)
    case .text(let text): self = .text(text)
    case .list(let list): self = .list(list.elements.map(JSONTree.init))
    case .object(let object):
      self = .object(object.entries.map { Member(name: $0.name, value: JSONTree($0.value)) })
    }
  }

  /// Compares texts by bytes: for Swift, texts with different Unicode normal forms are equal.
  static func == (one: JSONTree, other: JSONTree) -> Bool {
    switch (one, other) {
    case (.null, .null): true
    case (.flag(let one), .flag(let other)): one == other
    case (.number(let one), .number(let other)), (.text(let one), .text(let other)): one.utf8.elementsEqual(other.utf8)
    case (.list(let one), .list(let other)): one == other
    case (.object(let one), .object(let other)):
      one.count == other.count
        && zip(one, other).allSatisfy { $0.name.utf8.elementsEqual($1.name.utf8) && $0.value == $1.value }
    default: false
    }
  }

  /// Calls `visit` with at most `limit` values and their JSON pointers. Of members with equal names, only the last
  /// one is visited, because a pointer refers to it.
  func visit(_ limit: Int, _ visit: (String, JSONTree) -> Void) {
    var waiting: [(pointer: String, value: JSONTree)] = [("", self)]
    var count = 0
    while let (pointer, value) = waiting.popLast(), count < limit {
      count += 1
      visit(pointer, value)
      switch value {
      case .list(let elements):
        for (index, element) in elements.enumerated().prefix(limit) { waiting.append(("\(pointer)/\(index)", element)) }
      case .object(let members):
        for (index, member) in members.enumerated().prefix(limit) {
          // Compared by bytes, as pointers are.
          let isLast = !members[(index + 1)...].contains { $0.name.utf8.elementsEqual(member.name.utf8) }
          guard isLast else { continue }
          let token = member.name.replacing("~", with: "~0").replacing("/", with: "~1")
          waiting.append(("\(pointer)/\(token)", member.value))
        }
      default: break
      }
    }
  }
}
