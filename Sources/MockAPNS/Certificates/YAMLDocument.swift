internal import Yams

/// Parses a YAML file and reports errors with line numbers.
struct YAMLDocument {
  /// The file's path, for messages.
  let path: String

  /// Returns the document's root; nil if it contains nothing but comments.
  func root(of text: String) throws -> Node? {
    do {
      // The basic resolver keeps every scalar as text: 0123456789 is a valid key id.
      let root = try Yams.compose(yaml: text, .basic)
      return root.flatMap { isBlank($0) ? nil : $0 }
    } catch let error as YamlError {
      throw syntaxError(error)
    }
  }

  /// Returns the fields of a mapping by name.
  ///
  /// - Throws: `CertificateFolderError` for a field that is not in `allowed`.
  func fields(of node: Node, allowed: [String], what: String) throws -> [String: Node] {
    guard let mapping = node.mapping else {
      throw error(node, "\(what) is not a mapping", "write 'name: value' lines: \(allowed.joined(separator: ", "))")
    }
    var fields: [String: Node] = [:]
    for (key, value) in mapping {
      let name = key.scalar?.string ?? ""
      guard allowed.contains(name) else {
        throw error(key, "\(what) has no '\(name)'", "it may have: \(allowed.joined(separator: ", "))")
      }
      fields[name] = value
    }
    return fields
  }

  /// Returns the text of a field; nil if it is absent or blank.
  func text(_ node: Node?, _ name: String) throws -> String? {
    guard let node, !isBlank(node) else { return nil }
    guard let scalar = node.scalar else { throw error(node, "'\(name)' is not a string", "write \(name): value") }
    return scalar.string
  }

  /// Returns the texts of a list field; nil if it is absent or blank.
  func texts(_ node: Node?, _ name: String) throws -> [String]? {
    guard let node, !isBlank(node) else { return nil }
    guard let nodes = node.sequence, !nodes.isEmpty else {
      throw error(node, "'\(name)' is not a list of strings", "write \(name): [first, second], or omit it")
    }
    return try nodes.map { element in
      guard let text = try text(element, name) else {
        throw error(element, "'\(name)' has an empty element", "remove it")
      }
      return text
    }
  }

  /// Returns whether a node is empty or null.
  func isBlank(_ node: Node) -> Bool {
    guard let scalar = node.scalar else { return false }
    return scalar.style == .plain && ["", "~", "null"].contains(scalar.string)
  }

  /// Returns the line that a node begins on, from 1.
  func line(_ node: Node) -> Int { node.mark?.line ?? 1 }

  /// Returns an error with the position of a node.
  func error(_ node: Node, _ problem: String, _ repair: String) -> CertificateFolderError {
    CertificateFolderError(place: "\(path):\(line(node))", problem: problem, repair: repair)
  }

  private func syntaxError(_ error: YamlError) -> CertificateFolderError {
    let repair = "correct the line; lists and mappings are indented by spaces, never by tabs"
    switch error {
    case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
      .composer(_, let problem, let mark, _):
      return CertificateFolderError(place: "\(path):\(mark.line)", problem: "not YAML: \(problem)", repair: repair)
    case .duplicatedKeysInMapping(let names, let context):
      let names = names.map { "'\($0)'" }.joined(separator: ", ")
      return CertificateFolderError(
        place: "\(path):\(context.mark.line)", problem: "\(names) is duplicated in one entry",
        repair: "remove one of the two")
    default:
      return CertificateFolderError(place: path, problem: "not YAML: \(error)", repair: repair)
    }
  }
}
