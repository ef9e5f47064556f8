import Faults
import Notation
import Yams

/// A file that says what is expected: JSON, or the same as YAML.
struct VerificationFile {
  /// How messages call it.
  let name: String
  private let text: String
  /// It as JSON.
  let json: [UInt8]

  /// Reads a file; `-` is standard input.
  ///
  /// - Throws: `CommandFailure` with status `usage` for what is neither JSON nor YAML.
  init(path: String) throws {
    try self.init(try Files.contents(of: path), name: path == "-" ? "stdin" : path)
  }

  /// - Parameter name: how messages call it.
  init(_ bytes: [UInt8], name: String) throws {
    self.name = name
    // The parser counts a byte order mark as a column, and JSON has none.
    let bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw CommandFailure(.usage, lines: ["\(name): this is not UTF-8. Save the file in that encoding"])
    }
    self.text = text
    if bytes.withUnsafeBytes({ JSONText.problem(in: $0) }) == nil {
      json = bytes
    } else {
      var writing = YAMLAsJSON(file: name)
      json = try writing.json(of: text)
    }
  }

  /// The document as it is sent: with another time-out, if there is one.
  func body(timeout: String?) -> [UInt8] {
    guard let timeout, case .object(let object) = JSONValue(json[...]) else { return json }
    var writer = JSONWriter(capacity: json.count)
    writer.object { writer in
      for (name, value) in object.entries where name != "timeout" {
        writer.name(name)
        value.write(to: &writer)
      }
      writer.member("timeout", timeout)
    }
    return writer.bytes
  }

  /// Something that is wrong in it.
  struct Mistake: Decodable {
    var pointer: String
    var message: String
    var hint: String
  }

  /// The failure that tells all of it, a line each, as compilers do.
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

  /// Where the value stands that a pointer names: its key in a map, itself in a list. Of what is not there, the nearest
  /// around it.
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

/// Writes YAML as JSON. Words without quotation marks are what they are in JSON: numbers, `true`, `false` and `null`, and
/// else texts. So `no` and `0123` stay as they are written, which readers of YAML 1.1 would change.
private struct YAMLAsJSON {
  /// More values than these are not written; each alias counts as what it stands for.
  private static let limit = 100_000
  private static let depthLimit = 64

  let file: String
  private var values = 0

  init(file: String) { self.file = file }

  mutating func json(of text: String) throws -> [UInt8] {
    let root: Node?
    do {
      // Without resolver everything is text; what it is otherwise is decided here.
      root = try compose(yaml: text, .basic)
    } catch let error as YamlError {
      throw syntaxError(error)
    }
    guard let root else { throw failure(nil, "there is nothing in it. Say what is expected") }
    var writer = JSONWriter()
    var problem: CommandFailure?
    write(root, to: &writer, depth: 0, &problem)
    if let problem { throw problem }
    return writer.bytes
  }

  private mutating func write(_ node: Node, to writer: inout JSONWriter, depth: Int, _ problem: inout CommandFailure?) {
    values += 1
    if values > Self.limit || depth > Self.depthLimit {
      problem = problem ?? failure(node.mark, "this is too large. See whether it is the right file")
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
          if key.scalar == nil { problem = problem ?? failure(key.mark, "a name stands here. Make it a word") }
          writer.name(key.scalar?.string ?? "")
          write(value, to: &writer, depth: depth + 1, &problem)
        }
      }
    case .alias: problem = problem ?? failure(node.mark, "an alias of nothing. Write what it stands for")
    }
  }

  private func write(_ scalar: Node.Scalar, to writer: inout JSONWriter) {
    let isPlain = scalar.style == .plain || scalar.style == .any
    guard isPlain, scalar.tag.rawValue.isEmpty else { return writer.string(scalar.string) }
    if ["", "~"].contains(scalar.string) { return writer.null() }
    let bytes = Array(scalar.string.utf8)
    // What is JSON and no structure, which no plain word can be, is a number or one of the three words.
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
      return failure(context.mark, "more than once in this map: \(names.joined(separator: ", ")). Leave one of them")
    default: return failure(nil, "neither JSON nor YAML: \(error)")
    }
  }
}
