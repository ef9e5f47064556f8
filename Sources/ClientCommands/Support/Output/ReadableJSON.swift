import APNSMockNotation

/// JSON as text for people: a member per line, without quotation marks and braces. Null and empty values are left out.
enum ReadableJSON {
  /// Returns the members of an object, one per line.
  ///
  /// - Parameter json: A valid JSON object.
  static func text(_ json: [UInt8]) -> String {
    var lines: [String] = []
    if case .object(let object) = JSONValue(json[...]) { append(object.entries, to: &lines, depth: 0) }
    return lines.joined(separator: "\n")
  }

  private static func append(
    _ members: [(name: String, value: JSONValue)], to lines: inout [String], depth: Int
  ) {
    let width = members.reduce(0) { width, member in
      line(member.value) == nil ? width : max(width, member.name.count)
    }
    for (name, value) in members {
      if let line = line(value) {
        let gap = String(repeating: " ", count: max(0, width - name.count) + 2)
        lines.append(indentation(depth) + name.onOneLine + gap + line)
      } else if let nested = nested(name, value, depth: depth + 1), !nested.isEmpty {
        lines.append(indentation(depth) + name.onOneLine)
        lines += nested
      }
    }
  }

  /// Returns a value that fits on one line; nil for others.
  private static func line(_ value: JSONValue) -> String? {
    switch value {
    case .null, .object: return nil
    case .flag(let flag): return flag ? "yes" : "no"
    case .number(let number): return number
    case .text(let text): return text.onOneLine
    case .list(let list):
      let parts = list.elements.map(line)
      return parts.isEmpty || parts.contains(nil)
        || list.elements.contains { if case .list = $0 { true } else { false } }
        ? nil : parts.compactMap(\.self).joined(separator: ", ")
    }
  }

  /// Returns the lines of an object or an array; nil for null.
  private static func nested(_ name: String, _ value: JSONValue, depth: Int) -> [String]? {
    var lines: [String] = []
    switch value {
    // A payload is shown as it was sent.
    case .object(let object) where name == "payload", .list(let object) where name == "payload":
      let text = String(decoding: JSONLayout.indented(Array(object.json)), as: UTF8.self)
      return text.split(separator: "\n").map { indentation(depth) + $0 }
    case .object(let object): append(object.entries, to: &lines, depth: depth)
    case .list(let list): append(list.elements, to: &lines, depth: depth)
    default: return nil
    }
    return lines
  }

  private static func append(_ elements: [JSONValue], to lines: inout [String], depth: Int) {
    let pairs = elements.compactMap(pair)
    guard pairs.count != elements.count else { return append(pairs, to: &lines, depth: depth) }
    for element in elements {
      guard case .object(let object) = element else {
        lines.append(indentation(depth) + (line(element) ?? "–"))
        continue
      }
      let members = object.entries.compactMap { member in line(member.value).map { "\(member.name.onOneLine) \($0)" } }
      lines.append(indentation(depth) + members.joined(separator: ", "))
    }
  }

  /// Returns an array of a name and a value, such as a header field, or a check with its result; nil for others.
  private static func pair(_ element: JSONValue) -> (name: String, value: JSONValue)? {
    switch element {
    case .list(let list):
      let parts = list.elements
      guard parts.count == 2, case .text(let name) = parts[0] else { return nil }
      return (name, parts[1])
    case .object(let object):
      let members = object.members
      guard case .text(let name)? = members["check"], case .flag(let isPassed)? = members["ok"] else { return nil }
      guard case .text(let detail)? = members["detail"] else { return (name, .text(isPassed ? "ok" : "failed")) }
      return (name, .text((isPassed ? "ok: " : "failed: ") + detail))
    default: return nil
    }
  }

  private static func indentation(_ depth: Int) -> String { String(repeating: "  ", count: depth) }
}
