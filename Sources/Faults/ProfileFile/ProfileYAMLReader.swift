import FaultModel
internal import Yams

/// Parses YAML, including JSON, into `FileNode`s.
///
/// The type of an unquoted scalar is determined when its value is read, not by YAML's type rules, which differ
/// between YAML 1.1 and 1.2. Time and memory are bounded even for hostile input by limits on its length, its depth,
/// the number of its values (with aliases expanded) and the number of its keys that are not plain words.
struct ProfileYAMLReader {
  /// The maximum length of a text in bytes.
  static let lengthLimit = 256 * 1024
  /// The maximum nesting depth.
  static let depthLimit = 32
  /// The maximum number of values.
  static let valueLimit = 20_000

  private let file: String
  private let problems: ProblemList
  private var values = 0

  /// Parses a text; returns nil after adding problems.
  ///
  /// - Parameter file: the name of the file in problems.
  static func read(_ text: String, file: String, problems: ProblemList) -> FileNode? {
    var reader = ProfileYAMLReader(file: file, problems: problems)
    return reader.read(text)
  }

  /// Decodes bytes as UTF-8; returns nil after adding a problem.
  static func text(_ bytes: [UInt8], file: String, problems: ProblemList) -> String? {
    guard bytes.count <= lengthLimit else {
      problems.add(tooLong(file: file))
      return nil
    }
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
    problems.add(
      ProfileProblem(
        file: file, at: position(of: end, in: repaired), "this is not UTF-8",
        hint: "save the file in that encoding"))
    return nil
  }

  private static func tooLong(file: String) -> ProfileProblem {
    ProfileProblem(
      file: file, "longer than \(lengthLimit / 1024) KiB", hint: "check that it is the right file")
  }

  private init(file: String, problems: ProblemList) {
    self.file = file
    self.problems = problems
  }

  private func fail(_ position: FilePosition?, _ message: String, hint: String? = nil) {
    problems.add(ProfileProblem(file: file, at: position, message, hint: hint))
  }

  private mutating func read(_ text: String) -> FileNode? {
    guard text.utf8.count <= Self.lengthLimit else {
      problems.add(Self.tooLong(file: file))
      return nil
    }
    // The parser counts a byte order mark as a column.
    let text = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
    var keys = CompoundKeyScanner(text)
    if let place = keys.firstBeyondLimit() {
      fail(Self.position(of: place, in: text), "keys must be scalars, not lists, maps or aliases")
      return nil
    }
    do {
      guard let root = try Parser(yaml: text, resolver: .basic, encoding: .utf8).singleRoot() else {
        fail(nil, "the file is empty", hint: "a profile is a map: name: my-profile, rules: […]")
        return nil
      }
      return try node(root, depth: 0)
    } catch is Stop {
      return nil
    } catch {
      report(error, in: text)
      return nil
    }
  }

  /// Stops parsing after a problem was recorded.
  private struct Stop: Error {}

  private mutating func node(_ node: Node, depth: Int) throws(Stop) -> FileNode {
    let position = node.mark.map { FilePosition(line: $0.line, column: $0.column) } ?? FilePosition(line: 1, column: 1)
    values += 1
    guard values <= Self.valueLimit else {
      fail(position, "more than \(Self.valueLimit) values")
      throw Stop()
    }
    guard depth <= Self.depthLimit else {
      fail(position, "nested deeper than \(Self.depthLimit)")
      throw Stop()
    }
    switch node {
    case .scalar(let scalar):
      return FileNode(content: .scalar(try self.scalar(scalar, at: position)), position: position)
    case .sequence(let sequence):
      try checkTag(sequence.tag, is: "tag:yaml.org,2002:seq", at: position)
      var list: [FileNode] = []
      list.reserveCapacity(sequence.count)
      for element in sequence { list.append(try self.node(element, depth: depth + 1)) }
      return FileNode(content: .list(list), position: position)
    case .mapping(let mapping):
      try checkTag(mapping.tag, is: "tag:yaml.org,2002:map", at: position)
      var entries: [FileNode.Entry] = []
      entries.reserveCapacity(mapping.count)
      for (key, value) in mapping {
        let keyNode = try self.node(key, depth: depth + 1)
        guard case .scalar(let word) = keyNode.content else {
          fail(keyNode.position, "a key must be a scalar, not \(keyNode.kind)")
          throw Stop()
        }
        let value = try self.node(value, depth: depth + 1)
        entries.append(FileNode.Entry(key: word.text, position: keyNode.position, value: value))
      }
      return FileNode(content: .map(entries), position: position)
    case .alias:
      fail(position, "an alias (*NAME) without an anchor")
      throw Stop()
    }
  }

  private func scalar(_ scalar: Node.Scalar, at position: FilePosition) throws(Stop) -> FileNode.Scalar {
    let isQuoted =
      switch scalar.style {
      case .singleQuoted, .doubleQuoted, .literal, .folded: true
      case .any, .plain: false
      }
    switch scalar.tag.rawValue {
    case "": return FileNode.Scalar(text: scalar.string, isText: isQuoted)
    case "!", "tag:yaml.org,2002:str": return FileNode.Scalar(text: scalar.string, isText: true)
    default:
      fail(position, "tags (\(scalar.tag.rawValue)) are not supported", hint: "remove it")
      throw Stop()
    }
  }

  private func checkTag(_ tag: Tag, is usual: String, at position: FilePosition) throws(Stop) {
    guard tag.rawValue.isEmpty || tag.rawValue == usual else {
      fail(position, "tags (\(tag.rawValue)) are not supported", hint: "remove it")
      throw Stop()
    }
  }

  // MARK: - Errors of the parser

  private func report(_ error: any Error, in text: String) {
    switch error as? YamlError {
    case .composer(_, _, let mark, _) where mark.line > 1 && error.isSecondDocument:
      fail(
        FilePosition(line: mark.line, column: mark.column), "the file contains a second document",
        hint: "write each profile in its own file")
    case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
      .composer(_, let problem, let mark, _):
      fail(FilePosition(line: mark.line, column: mark.column), "this is not YAML: \(problem)")
    case .duplicatedKeysInMapping(let keys, let context):
      fail(
        FilePosition(line: context.mark.line, column: context.mark.column),
        "more than once in this map: \(keys.map { String($0.prefix(80)) }.joined(separator: ", "))")
    case .reader(let problem, let offset, _, _):
      let place = offset.flatMap { text.index(text.startIndex, offsetBy: $0, limitedBy: text.endIndex) }
      fail(place.map { Self.position(of: $0, in: text) }, "this is not YAML: \(problem)")
    default: fail(nil, "this is not YAML")
    }
  }

  private static func position(of index: String.Index, in text: String) -> FilePosition {
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
    return FilePosition(line: line, column: column)
  }
}

extension Error {
  /// Yams has no separate case for this error.
  fileprivate var isSecondDocument: Bool {
    guard case .composer(_, let problem, _, _) = self as? YamlError else { return false }
    return problem.contains("another document")
  }
}
