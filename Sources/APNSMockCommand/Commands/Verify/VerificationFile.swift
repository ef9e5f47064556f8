import FaultModel
import Faults
import Notation
import Yams

/// A file with expectations in JSON or YAML.
struct VerificationFile {
  /// The file's name in messages.
  let name: String
  private let text: String
  /// The content as JSON.
  let json: [UInt8]

  /// Reads a file; `-` is standard input.
  ///
  /// - Throws: `CommandFailure` with status `usage` if the content is neither JSON nor YAML.
  init(path: String) throws {
    try self.init(try Files.contents(of: path), name: path == "-" ? "stdin" : path)
  }

  /// Parses the content of a file.
  ///
  /// - Parameter name: The file's name in messages.
  init(_ bytes: [UInt8], name: String) throws {
    self.name = name
    // The parser counts a byte order mark as a column, and JSON has none.
    let bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw CommandFailure(.usage, lines: ["\(name): the file is not encoded in UTF-8. Save it in UTF-8"])
    }
    self.text = text
    if bytes.withUnsafeBytes({ JSONText.problem(in: $0) }) == nil {
      json = bytes
    } else {
      var writing = YAMLAsJSON(file: name)
      json = try writing.json(of: text)
    }
  }

  /// Returns the request body, with another timeout if one is specified.
  func body(timeout: String?) -> [UInt8] {
    guard let timeout, case .object(let object) = JSONValue(json[...]) else { return json }
    return JSONWriter.object { writer in
      for (name, value) in object.entries where name != "timeout" {
        writer.name(name)
        value.write(to: &writer)
      }
      writer.member("timeout", timeout)
    }
  }

  /// An error in the file.
  struct Mistake: Decodable {
    var pointer: String
    var message: String
    var hint: String
  }

  /// Returns a failure with one line per error, sorted by location, in the format of compilers.
  func failure(_ mistakes: [Mistake]) -> CommandFailure {
    let root = try? compose(yaml: text, .basic)
    let marked = mistakes.map { mistake in (mistake, root.flatMap { Self.mark(of: mistake.pointer, in: $0) }) }
    let sorted = marked.sorted { ($0.1?.line ?? 0, $0.1?.column ?? 0) < ($1.1?.line ?? 0, $1.1?.column ?? 0) }
    return CommandFailure(
      .usage,
      lines: sorted.map { mistake, mark in
        let place = mark.map { "\(name):\($0.line):\($0.column)" } ?? name
        let pointer = mistake.pointer.isEmpty ? "" : "\(mistake.pointer): "
        return "\(place): \(pointer)\(mistake.message). \(mistake.hint)".onOneLine
      })
  }

  /// Returns the location of the value at a JSON pointer: its key in a map, the value itself in a list. If the value
  /// does not exist, returns the location of the nearest enclosing one.
  private static func mark(of pointer: String, in root: Node) -> Mark? {
    var node = root
    var mark = root.mark
    for part in pointer.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
      let name = String(part).replacing("~1", with: "/").replacing("~0", with: "~")
      if let entry = node.mapping?.first(where: { $0.key.scalar?.string == name }) {
        mark = entry.key.mark
        node = entry.value
      } else if let list = node.sequence, let index = Int(name), list.indices.contains(index) {
        node = list[index]
        mark = node.mark
      } else {
        break
      }
    }
    return mark
  }
}

/// Converts YAML to JSON. Plain scalars have the types of JSON: numbers, `true`, `false`, `null`, else strings. So
/// `no` and `0123` stay strings, which YAML 1.1 parsers would convert.
private struct YAMLAsJSON {
  /// The largest number of values, including those that aliases expand to.
  private static let limit = 100_000
  private static let depthLimit = 64

  let file: String
  private var values = 0

  init(file: String) { self.file = file }

  mutating func json(of text: String) throws -> [UInt8] {
    let root: Node?
    do {
      // The basic resolver keeps all scalars as strings; `write` determines their types.
      root = try compose(yaml: text, .basic)
    } catch let error as YamlError {
      throw syntaxError(error)
    }
    guard let root else { throw failure(nil, "the file is empty. Add expectations") }
    var writer = JSONWriter()
    var problem: CommandFailure?
    write(root, to: &writer, depth: 0, &problem)
    if let problem { throw problem }
    return writer.bytes
  }

  private mutating func write(_ node: Node, to writer: inout JSONWriter, depth: Int, _ problem: inout CommandFailure?) {
    values += 1
    if values > Self.limit || depth > Self.depthLimit {
      problem = problem ?? failure(node.mark, "the file is too large. Check that it is the right one")
    }
    guard problem == nil else { return writer.null() }
    switch node {
    case .scalar(let scalar): write(scalar, to: &writer)
    case .sequence(let list):
      writer.array { writer in
        for element in list { write(element, to: &writer, depth: depth + 1, &problem) }
      }
    case .mapping(let map):
      writer.object { writer in
        for (key, value) in map {
          if key.scalar == nil {
            problem = problem ?? failure(key.mark, "a key must be a string. Replace it by a word")
          }
          writer.name(key.scalar?.string ?? "")
          write(value, to: &writer, depth: depth + 1, &problem)
        }
      }
    case .alias: problem = problem ?? failure(node.mark, "the alias has no anchor. Replace it by the value")
    }
  }

  private func write(_ scalar: Node.Scalar, to writer: inout JSONWriter) {
    let isPlain = scalar.style == .plain || scalar.style == .any
    guard isPlain, scalar.tag.rawValue.isEmpty else { return writer.string(scalar.string) }
    if ["", "~"].contains(scalar.string) { return writer.null() }
    let bytes = Array(scalar.string.utf8)
    // A plain scalar cannot be an object or array, so valid JSON is a number, `true`, `false` or `null`.
    if bytes.withUnsafeBytes({ JSONText.problem(in: $0) }) == nil {
      bytes.withUnsafeBytes { writer.verbatim($0) }
    } else {
      writer.string(scalar.string)
    }
  }

  private func failure(_ mark: Mark?, _ message: String) -> CommandFailure {
    let place = mark.map { "\(file):\($0.line):\($0.column)" } ?? file
    return CommandFailure(.usage, lines: ["\(place): \(message)"])
  }

  private func syntaxError(_ error: YamlError) -> CommandFailure {
    switch error {
    case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
      .composer(_, let problem, let mark, _):
      return failure(mark, "neither JSON nor YAML: \(problem)")
    case .duplicatedKeysInMapping(let names, let context):
      return failure(context.mark, "duplicate keys: \(names.joined(separator: ", ")). Keep one of them")
    default: return failure(nil, "neither JSON nor YAML: \(error)")
    }
  }
}
