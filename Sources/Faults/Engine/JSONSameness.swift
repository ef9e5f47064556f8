internal import Notation

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
