internal import Yams

extension YAMLNode {
  /// Limits on a text, which bound the time and memory of parsing even for hostile input.
  package struct Limits: Sendable {
    /// The maximum length in bytes.
    package var length: Int
    /// The maximum nesting depth.
    package var depth: Int
    /// The maximum number of values, with aliases expanded.
    package var values: Int
    /// Whether a text with many keys that are not plain words is rejected before it is parsed. They cost the parser
    /// much time; but a text that only looks like it, with many question marks, is rejected as well.
    package var rejectsCompoundKeys: Bool

    /// The limits on a file of the user who runs the program.
    package static let localFile = Limits(length: 4 << 20, depth: 64, values: 100_000, rejectsCompoundKeys: false)

    /// Creates limits.
    package init(length: Int, depth: Int, values: Int, rejectsCompoundKeys: Bool) {
      self.length = length
      self.depth = depth
      self.values = values
      self.rejectsCompoundKeys = rejectsCompoundKeys
    }
  }

  /// Parses YAML, including JSON; returns nil if the text contains nothing but comments.
  ///
  /// The type of a plain scalar is determined when its value is read, not by YAML's type rules, which differ between
  /// YAML 1.1 and 1.2.
  package static func parse(_ text: String, limits: Limits = .localFile) throws(YAMLError) -> YAMLNode? {
    try limits.check(length: text.utf8.count)
    if let node = json(text, limits: limits) { return node }
    // The parser counts a byte order mark as a column.
    let text = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
    if limits.rejectsCompoundKeys {
      var keys = CompoundKeyScanner(text)
      if let index = keys.firstBeyondLimit() {
        throw YAMLError(at: TextPosition(of: index, in: text), "keys must be scalars, not lists, maps or aliases")
      }
    }
    let root: Node?
    do {
      // The basic resolver keeps all scalars as they are.
      root = try Parser(yaml: text, resolver: .basic, encoding: .utf8).singleRoot()
    } catch {
      throw YAMLError(error, in: text)
    }
    guard let root else { return nil }
    var reader = YAMLReader(limits: limits)
    return try reader.node(root, depth: 0)
  }

  /// Parses a JSON object; returns nil for anything else and beyond the limits, so that the YAML parser names the problem.
  private static func json(_ text: String, limits: Limits) -> YAMLNode? {
    guard text.utf8.first(where: { !" \t\r\n".utf8.contains($0) }) == UInt8(ascii: "{") else { return nil }
    guard
      let node = try? JSONNodeReader.document(Array(text.utf8), maxMembers: limits.values, maxDepth: limits.depth),
      node.valueCount <= limits.values
    else { return nil }
    return node
  }

  /// The number of values, including keys.
  private var valueCount: Int {
    switch content {
    case .scalar: 1
    case .list(let elements): elements.reduce(1) { $0 + $1.valueCount }
    case .map(let entries): entries.reduce(1) { $0 + 1 + $1.value.valueCount }
    }
  }

  /// Decodes bytes as UTF-8.
  package static func text(_ bytes: [UInt8], limits: Limits = .localFile) throws(YAMLError) -> String {
    try limits.check(length: bytes.count)
    if let text = String(validating: bytes, as: UTF8.self) { return text }
    // Find the first replacement character that is not in the input.
    let repaired = String(decoding: bytes, as: UTF8.self)
    var offset = 0
    var end = repaired.unicodeScalars.startIndex
    for scalar in repaired.unicodeScalars {
      let width = UTF8.width(scalar)
      if scalar == "\u{FFFD}", offset + width > bytes.count || bytes[offset] != 0xEF || bytes[offset + 1] != 0xBF {
        break
      }
      offset += width
      end = repaired.unicodeScalars.index(after: end)
    }
    throw YAMLError(at: TextPosition(of: end, in: repaired), "invalid UTF-8", hint: "save the file in UTF-8")
  }
}

extension YAMLNode.Limits {
  fileprivate func check(length count: Int) throws(YAMLError) {
    guard count <= length else {
      throw YAMLError(at: nil, "longer than \(length / 1024) KiB", hint: "check that it is the right file")
    }
  }
}

/// Converts the parser's nodes.
private struct YAMLReader {
  let limits: YAMLNode.Limits
  private var values = 0

  init(limits: YAMLNode.Limits) { self.limits = limits }

  mutating func node(_ node: Node, depth: Int) throws(YAMLError) -> YAMLNode {
    let position = node.mark.map(TextPosition.init) ?? TextPosition(line: 1, column: 1)
    values += 1
    guard values <= limits.values else { throw YAMLError(at: position, "more than \(limits.values) values") }
    guard depth <= limits.depth else { throw YAMLError(at: position, "nested deeper than \(limits.depth)") }
    switch node {
    case .scalar(let scalar):
      return YAMLNode(content: .scalar(try self.scalar(scalar, at: position)), position: position)
    case .sequence(let sequence):
      try checkTag(sequence.tag, is: "tag:yaml.org,2002:seq", at: position)
      var list: [YAMLNode] = []
      list.reserveCapacity(sequence.count)
      for element in sequence { list.append(try self.node(element, depth: depth + 1)) }
      return YAMLNode(content: .list(list), position: position)
    case .mapping(let mapping):
      try checkTag(mapping.tag, is: "tag:yaml.org,2002:map", at: position)
      var entries: [YAMLNode.Entry] = []
      entries.reserveCapacity(mapping.count)
      for (key, value) in mapping {
        let keyNode = try self.node(key, depth: depth + 1)
        guard let text = keyNode.text else {
          throw YAMLError(at: keyNode.position, "a key must be a scalar, not \(keyNode.kind)")
        }
        let value = try self.node(value, depth: depth + 1)
        entries.append(YAMLNode.Entry(key: text, position: keyNode.position, value: value))
      }
      return YAMLNode(content: .map(entries), position: position)
    case .alias: throw YAMLError(at: position, "an alias (*NAME) without an anchor")
    }
  }

  private func scalar(_ scalar: Node.Scalar, at position: TextPosition) throws(YAMLError) -> YAMLNode.Scalar {
    let isQuoted =
      switch scalar.style {
      case .singleQuoted, .doubleQuoted, .literal, .folded: true
      case .any, .plain: false
      }
    if scalar.tag.rawValue == "!" { return YAMLNode.Scalar(text: scalar.string, isString: true) }
    try checkTag(scalar.tag, is: "tag:yaml.org,2002:str", at: position)
    return YAMLNode.Scalar(text: scalar.string, isString: isQuoted || !scalar.tag.rawValue.isEmpty)
  }

  private func checkTag(_ tag: Tag, is usual: String, at position: TextPosition) throws(YAMLError) {
    guard tag.rawValue.isEmpty || tag.rawValue == usual else {
      throw YAMLError(at: position, "tags (\(tag.rawValue)) are not supported", hint: "remove it")
    }
  }
}

extension YAMLError {
  /// Creates an error from the parser's.
  fileprivate init(_ error: any Error, in text: String) {
    switch error as? YamlError {
    // The parser has no separate case for this error.
    case .composer(_, let problem, let mark, _) where mark.line > 1 && problem.contains("another document"):
      self.init(
        at: TextPosition(mark), "the file contains a second document", hint: "move it to a file of its own")
    case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
      .composer(_, let problem, let mark, _):
      self.init(TextPosition(mark), problem, in: text)
    case .duplicatedKeysInMapping(let keys, let context):
      let keys = keys.map { String($0.prefix(80)) }.joined(separator: ", ")
      self.init(at: TextPosition(context.mark), "duplicate keys: \(keys)", hint: "keep one of them")
    case .reader(let problem, let offset, _, _):
      let index = offset.flatMap { text.index(text.startIndex, offsetBy: $0, limitedBy: text.endIndex) }
      self.init(at: index.map { TextPosition(of: $0, in: text) }, "invalid YAML: \(problem)")
    default: self.init(at: nil, "invalid YAML")
    }
  }

  /// Creates an error of the parser, in words that name what to change if that can be told from the text.
  private init(_ position: TextPosition, _ problem: String, in text: String) {
    let lines = text.split(separator: "\n", maxSplits: position.line, omittingEmptySubsequences: false)
    let line = lines.dropFirst(position.line - 1).first?.unicodeScalars ?? "".unicodeScalars[...]
    let character = line.dropFirst(position.column - 1).first
    let isTab = character == "\t" || problem.contains("tab character")
    // The parser may have noticed a tab in the indentation only behind it.
    if isTab || problem.contains("cannot start any token"),
      let tab = line.prefix(while: { $0 == " " || $0 == "\t" }).firstIndex(of: "\t")
    {
      let column = line.distance(from: line.startIndex, to: tab) + 1
      self.init(
        at: TextPosition(line: position.line, column: column), "invalid YAML: a tab in the indentation",
        hint: "indent with spaces")
    } else if isTab {
      self.init(at: position, "invalid YAML: a tab", hint: "use spaces")
    } else if let character, problem.contains("cannot start any token") {
      self.init(
        at: position, "invalid YAML: a value cannot begin with \(character)", hint: "put it in quotation marks")
    } else if problem.contains("mapping values are not allowed") {
      self.init(
        at: position, "invalid YAML: a colon that does not follow a key",
        hint: "check the indentation, or put a text with a colon in quotation marks")
    } else if problem.contains("did not find expected ','"),
      lines.dropFirst(max(0, position.line - 2)).prefix(2).contains(where: { $0.contains("//") || $0.contains("/*") })
    {
      self.init(
        at: position, "invalid JSON or YAML", hint: "remove comments: JSON has none, those of YAML begin with #")
    } else {
      self.init(at: position, "invalid YAML: \(problem)")
    }
  }
}

extension TextPosition {
  fileprivate init(_ mark: Mark) { self.init(line: mark.line, column: mark.column) }

  fileprivate init(of index: String.Index, in text: String) {
    var line = 1
    var column = 1
    for scalar in text.unicodeScalars[..<min(index, text.endIndex)] {
      if scalar == "\n" {
        line += 1
        column = 1
      } else {
        column += 1
      }
    }
    self.init(line: line, column: column)
  }
}

/// Finds possible map keys that are not plain words: lists, maps and aliases.
///
/// No file of ours has such keys, but they must be found before the YAML is parsed: the parser compares the keys of
/// a map, in time proportional to the size of their contents, and again for each enclosing map; aliases multiply
/// that. Because a match may be plain text, as in "is it so ?", a few are allowed, which is harmless.
private struct CompoundKeyScanner {
  /// The maximum number of such keys.
  static let limit = 16
  /// The maximum number of aliases in a text that has such keys. Aliases alone are harmless.
  static let aliasLimit = 4

  private let bytes: Substring.UTF8View
  private var keys = 0
  private var aliases = 0

  init(_ text: String) { bytes = text[...].utf8 }

  /// Returns the position of the first key or alias beyond the limits; nil if there is none.
  mutating func firstBeyondLimit() -> String.Index? {
    var index = bytes.startIndex
    var before = UInt8(ascii: "\n")
    while index < bytes.endIndex {
      let byte = bytes[index]
      if before == UInt8(ascii: "\n"), let end = endOfComment(from: index) {
        index = end
        continue
      }
      scan(at: byte, index, after: before)
      if keys > Self.limit || keys > 0 && aliases > Self.aliasLimit { return index }
      before = byte
      index = bytes.index(after: index)
    }
    return nil
  }

  private mutating func scan(at byte: UInt8, _ index: String.Index, after before: UInt8) {
    let next = bytes.index(after: index)
    switch byte {
    case UInt8(ascii: "?") where Self.canBegin(after: before): keys += 1
    case UInt8(ascii: "]"), UInt8(ascii: "}"):
      if isKey(endingAt: next) { keys += 1 }
    case UInt8(ascii: "*") where Self.canBegin(after: before):
      let end = bytes[next...].firstIndex { !Self.isNameLetter($0) } ?? bytes.endIndex
      guard end > next else { return }
      aliases += 1
      if isKey(endingAt: end) { keys += 1 }
    default: break
    }
  }

  /// Returns whether a YAML token may begin after a byte. Not after a quotation mark, which begins a quoted text.
  private static func canBegin(after byte: UInt8) -> Bool {
    byte <= UInt8(ascii: " ") || byte >= 0x80 || "[{,?:".utf8.contains(byte)
  }

  private func isKey(endingAt index: String.Index) -> Bool {
    bytes[index...].first { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "\t") } == UInt8(ascii: ":")
  }

  private static func isNameLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
      || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
  }

  /// Returns the end of a line that is only a comment. A line with a quotation mark does not count, because it may
  /// be the last line of a quoted text.
  private func endOfComment(from index: String.Index) -> String.Index? {
    let rest = bytes[index...].drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    guard rest.first == UInt8(ascii: "#") else { return nil }
    let line = rest.prefix { $0 != UInt8(ascii: "\n") }
    return line.contains { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "'") } ? nil : line.endIndex
  }
}
