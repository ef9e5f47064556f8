internal import APNSMockRules
internal import APNSMockNotation
internal import APNSMockTLSEngine

/// The text of `provider.yaml`, for adding and removing entries without changing the rest of the text.
struct ProviderKeysText {
  /// The full text.
  let text: String
  /// The entries of the list.
  let items: [YAMLNode]
  /// The value of `keys`; nil if there is no such field.
  private let keys: YAMLNode?

  /// Parses the text.
  ///
  /// - Throws: `YAMLError` if the text is not YAML or `keys` is not a list.
  init(_ text: String) throws(YAMLError) {
    self.text = text
    keys = try YAMLNode.parse(text)?.fields(allowed: ["keys"])["keys"]
    guard let keys, !keys.isEmpty else {
      items = []
      return
    }
    guard case .list(let items) = keys.content else {
      throw YAMLError(
        at: keys.position, "keys: expected a list, not \(keys.kind)",
        hint: "write each key as a list item: - key_id: …")
    }
    self.items = items
  }

  /// Returns the text with an entry added after the last one.
  ///
  /// - Throws: `YAMLError` if the position for the entry cannot be determined.
  func adding(_ entry: ProviderKeyEntry) throws -> String {
    let lineEnd = text.unicodeScalars.contains("\r") ? "\r\n" : "\n"
    var lines = self.lines
    var added = try Self.lines(of: entry)
    if let hyphen = try listColumn() {
      added = added.map { String(repeating: " ", count: hyphen) + $0 }
      if !items.isEmpty { added.insert("", at: 0) }
    } else {
      added = added.map { "  " + $0 }
      if let keys {
        removeMark(of: keys, in: &lines)
      } else {
        added.insert("keys:", at: 0)
      }
    }
    // The last line is empty if the text ends with a line break. Two empty lines need no third.
    if lines.last?.isEmpty == true { lines.removeLast() }
    if added.first == "", lines.last.map(Self.isBlank) == true { added.removeFirst() }
    let kept = lines.map { String($0) }
    return (kept + added.map { lineEnd == "\n" ? $0 : $0 + "\r" } + [""]).joined(separator: "\n")
  }

  /// Returns the text without the entry at `index`. Comments above and below it are kept.
  ///
  /// - Throws: `YAMLError` if the lines of the entry cannot be determined.
  func removing(at index: Int) throws -> String {
    guard let hyphen = try listColumn() else { return text }
    let line = items[index].position.line
    var lines = self.lines
    // The hyphen may be on a line of its own above the entry.
    let first = lines.prefix(line).lastIndex { $0.dropFirst(hyphen).first == "-" } ?? line - 1
    let isOutside = { (line: Line) in !Self.isBlank(line) && !Self.isComment(line) && Self.indentation(line) <= hyphen }
    var end = lines[(first + 1)...].firstIndex(where: isOutside) ?? lines.count
    while end > first + 1, Self.isBlank(lines[end - 1]) || Self.isComment(lines[end - 1]) { end -= 1 }
    let leavesGap = first > 0 && Self.isBlank(lines[first - 1]) && (end == lines.count || Self.isBlank(lines[end]))
    lines.removeSubrange((leavesGap ? first - 1 : first)..<end)
    return lines.map { String($0) }.joined(separator: "\n")
  }

  // MARK: - Lines

  // Unicode scalars, because Swift treats CR LF as one character, which a split at `\n` would not find. A carriage
  // return stays at the end of its line.
  private typealias Line = Substring.UnicodeScalarView

  private var lines: [Line] {
    text[...].unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
  }

  /// Returns the indentation of the list's hyphens; nil if the list is empty.
  private func listColumn() throws(YAMLError) -> Int? {
    guard let keys, !items.isEmpty else { return nil }
    let position = keys.position
    guard lines.indices.contains(position.line - 1),
      lines[position.line - 1].dropFirst(position.column - 1).first == "-"
    else {
      throw YAMLError(
        at: position, "keys: a list in brackets must be edited by hand",
        hint: "write each key as a list item (- key_id: …), then retry")
    }
    return position.column - 1
  }

  /// Removes the notation for an empty list: `[]`, `~` or `null`.
  private func removeMark(of keys: YAMLNode, in lines: inout [Line]) {
    let position = keys.position
    guard lines.indices.contains(position.line - 1) else { return }
    let line = lines[position.line - 1]
    let before = line.prefix(position.column - 1)
    let after = line.dropFirst(position.column - 1)
    for word in ["[]", "~", "null"] where after.starts(with: word.unicodeScalars) {
      let rest = after.dropFirst(word.unicodeScalars.count)
      let isAlone = rest.allSatisfy { $0.properties.isWhitespace }
      let kept =
        isAlone ? String(before.reversed().drop { $0 == " " }.reversed().map { Character($0) }) : String(before)
      lines[position.line - 1] = (kept + String(rest))[...].unicodeScalars
    }
  }

  private static func isBlank(_ line: Line) -> Bool { line.allSatisfy { $0.properties.isWhitespace } }
  private static func isComment(_ line: Line) -> Bool { line.first { !$0.properties.isWhitespace } == "#" }
  private static func indentation(_ line: Line) -> Int { line.prefix { $0 == " " }.count }

  // MARK: - Writing

  /// Returns the lines of an entry, beginning with its hyphen.
  private static func lines(of entry: ProviderKeyEntry) throws -> [String] {
    var lines = ["- key_id: \(quoted(entry.keyID))", "  team_id: \(quoted(entry.teamID))"]
    if let environment = entry.environment { lines.append("  environment: \(environment.rawValue)") }
    for (name, topics) in [("topics", entry.topics), ("team_topics", entry.teamTopics)] {
      if let topics { lines.append("  \(name): [\(topics.map(quoted).joined(separator: ", "))]") }
    }
    if let related = entry.relatedKeyID { lines.append("  related_key_id: \(quoted(related))") }
    lines.append("  public_key: |")
    return lines + (try entry.publicKey.pem).split(separator: "\n").map { "    " + $0 }
  }

  /// Returns `text` as a YAML scalar, quoted if necessary.
  private static func quoted(_ text: String) -> String {
    // A text that begins with a letter is not a number, and YAML's reserved words have at most five letters.
    let isPlain =
      text.utf8.count > 5 && text.first?.isLetter == true
      && text.utf8.allSatisfy {
        (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0) || ".-_".utf8.contains($0)
      }
    return isPlain ? text : "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }
}
