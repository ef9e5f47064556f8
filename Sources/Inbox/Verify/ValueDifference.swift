internal import Faults
internal import Notation

/// Explains differences between values that are easily mistaken for equal.
enum ValueDifference {
  /// Returns a short explanation; nil if the values are simply different.
  static func hint(wanted: JSONValue, found: JSONValue) -> String? {
    switch (wanted, found) {
    case (.text(let wanted), .text(let found)): hint(wanted: wanted, found: found)
    case (.number(let wanted), .text(let found)) where same(wanted, found): "a string, not a number"
    case (.text(let wanted), .number(let found)) where same(wanted, found): "a number, not a string"
    case (.flag(let wanted), .text(let found)) where found.lowercased() == String(wanted): "a string, not a Boolean"
    case (.text(let wanted), .flag(let found)) where wanted.lowercased() == String(found): "a Boolean, not a string"
    case (.flag(true), .number("1")), (.flag(false), .number("0")): "a number, not a truth value"
    case (.number("1"), .flag(true)), (.number("0"), .flag(false)): "a truth value, not a number"
    case (_, .list(let list)) where list.elements.count == 1 && list.elements.contains { wanted.isSame(as: $0) }:
      "in a list"
    default: nil
    }
  }

  private static func same(_ one: String, _ other: String) -> Bool {
    guard let one = QueryNumber(one), let other = QueryNumber(other) else { return false }
    return one == other
  }

  private static func hint(wanted: String, found: String) -> String? {
    if wanted.utf8.elementsEqual(found.utf8) { return nil }
    // String comparison ignores differences of Unicode normalization.
    if wanted == found { return "another Unicode normal form" }
    if let hint = edgeHint(wanted, found) { return hint }
    if wanted.lowercased() == found.lowercased() { return "upper and lower case" }
    let (plainWanted, plainFound) = (wanted.collapsed, found.collapsed)
    if plainWanted == plainFound { return "white space" }
    if plainWanted.lowercased() == plainFound.lowercased() { return "white space, and upper and lower case" }
    if wanted.visible == found.visible { return "an invisible character" }
    return nil
  }

  /// Returns a hint about white space at the ends.
  private static func edgeHint(_ wanted: String, _ found: String) -> String? {
    if wanted.withoutEndSpace == found.withoutEndSpace {
      return wanted.unicodeScalars.count < found.unicodeScalars.count ? "trailing space" : "trailing space is missing"
    }
    if wanted.withoutStartSpace == found.withoutStartSpace {
      return wanted.unicodeScalars.count < found.unicodeScalars.count ? "leading space" : "leading space is missing"
    }
    return wanted.withoutStartSpace.withoutEndSpace == found.withoutStartSpace.withoutEndSpace
      ? "space at both ends" : nil
  }

  /// Returns why a payload has no value at a pointer; nil if no reason is known.
  static func hint(pointer: String, in record: Record) -> String? {
    if record.payloadProblem != nil { return "the body is not JSON" }
    var parent = pointer[...]
    while let slash = parent.lastIndex(of: "/") {
      let name = String(parent[parent.index(after: slash)...]).replacing("~1", with: "/").replacing("~0", with: "~")
      parent = parent[..<slash]
      guard let value = JSONPointer(String(parent)).flatMap({ pointer in record.withBody { pointer.value(in: $0) } })
      else { continue }
      let place = parent.isEmpty ? "the payload" : ShownText.shortened(String(parent))
      switch JSONValue(value) {
      case .object(let object):
        let near = Spelling.nearest(to: String(name.prefix(40)), among: object.entries.map(\.name))
        return near.map { "\(place) has \(ShownText.quoted($0))" }
      case .list(let list): return "\(place) is a list of \(list.elements.count)"
      case .text: return "\(place) is a string"
      case .number: return "\(place) is a number"
      case .flag: return "\(place) is a truth value"
      case .null: return "\(place) is null"
      }
    }
    return nil
  }
}

extension String {
  fileprivate var withoutEndSpace: String {
    var scalars = unicodeScalars
    while let last = scalars.last, last.properties.isWhitespace { scalars.removeLast() }
    return String(scalars)
  }

  fileprivate var withoutStartSpace: String {
    String(String.UnicodeScalarView(unicodeScalars.drop { $0.properties.isWhitespace }))
  }

  /// The string with each run of white space replaced by one space.
  fileprivate var collapsed: String {
    unicodeScalars.split { $0.properties.isWhitespace }.map { String($0) }.joined(separator: " ")
  }

  /// The string without characters of no width.
  fileprivate var visible: String {
    String(
      String.UnicodeScalarView(
        unicodeScalars.filter { scalar in
          scalar.properties.generalCategory != .format && scalar.properties.generalCategory != .control
        }))
  }
}
