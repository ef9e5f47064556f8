import FaultModel
internal import Notation

/// Parses the values of one file and records all problems with them.
///
/// Each parsing method returns nil after adding a problem. The caller continues with the next value, so that one
/// pass finds all problems.
final class ProfileParser {
  /// A scalar, or the value of the parameter it refers to.
  struct Scalar {
    let text: String
    /// Whether the value is a string; otherwise it may have any type.
    let isString: Bool
    /// The name of the parameter.
    var parameter: String?
  }

  /// The name of the file in problems.
  let file: String
  let problems: ProblemList
  let parameters: ParameterSet
  /// The injection point of the rule that is being parsed; nil if it is invalid, or outside of rules.
  var injectionPoint: InjectionPoint?
  /// The stage of the rule that is being parsed.
  var stage = Rule.Stage.afterValidation

  init(file: String, problems: ProblemList, parameters: ParameterSet) {
    self.file = file
    self.problems = problems
    self.parameters = parameters
  }

  // MARK: - Problems

  func fail(_ node: ProfileNode, _ message: String, hint: String? = nil) {
    fail(at: node.position, node.path, message, hint: hint)
  }

  func fail(at position: TextPosition, _ path: String, _ message: String, hint: String? = nil) {
    problems.add(ProfileProblem(file: file, at: position, path: path, message, hint: hint))
  }

  func warn(_ node: ProfileNode, _ message: String, hint: String? = nil) {
    warn(at: node.position, node.path, message, hint: hint)
  }

  func warn(at position: TextPosition, _ path: String, _ message: String, hint: String? = nil) {
    problems.add(ProfileProblem(.warning, file: file, at: position, path: path, message, hint: hint))
  }

  /// Returns the value of an accessor, or nil after recording its error.
  func value<Value>(at node: ProfileNode, _ access: (YAMLNode) throws(YAMLError) -> Value) -> Value? {
    do throws(YAMLError) {
      return try access(node.yaml)
    } catch {
      problems.add(error, file: file, path: node.path)
      return nil
    }
  }

  // MARK: - Structure

  /// Returns the entries of a map; an empty value, as in `close:`, has none.
  func parseEntries(_ node: ProfileNode) -> [YAMLNode.Entry]? {
    value(at: node) { yaml throws(YAMLError) in try yaml.entries() }
  }

  /// Records an unknown key.
  func failUnknown(_ entry: YAMLNode.Entry, in node: ProfileNode, among names: [String]) {
    guard !problems.isFull else { return }
    fail(
      at: entry.position, node.member(entry).path.shortened, "unknown",
      hint: Self.guess(entry.key, among: names)
        ?? (names.isEmpty ? "no keys are allowed here" : "expected one of \(names.joined(separator: ", "))"))
  }

  /// Returns a hint such as `did you mean "probability"?` if a name is similar enough.
  static func guess(_ word: String, among names: some Sequence<String>) -> String? {
    if let canonical = synonyms[word.lowercased()], names.contains(canonical) {
      return "did you mean \"\(canonical)\"?"
    }
    return Spelling.nearest(to: word, among: names).map { "did you mean \"\($0)\"?" }
  }

  /// Names that other tools use. YAML 1.1 reads `on` as true.
  private static let synonyms = [
    "on": "at", "true": "at", "if": "when", "match": "when", "action": "do", "actions": "do", "parameters": "params",
    "knobs": "params", "include": "extends", "description": "summary", "chance": "probability", "rate": "probability",
    "token": "device_token", "rst_stream": "reset_stream", "go_away": "goaway", "sleep": "delay", "timeout": "hang",
    "server_name": "sni", "equal": "equals", "regex": "glob", "<<": "extends",
  ]

  /// Returns the elements of a list.
  func parseList(_ node: ProfileNode) -> [ProfileNode]? {
    value(at: node) { yaml throws(YAMLError) in try yaml.elements() }?.enumerated().map(node.element)
  }

  /// Returns the elements of a list, or the value itself if it is not a list.
  func parseListOrValue(_ node: ProfileNode) -> [ProfileNode]? {
    guard case .list = node.content else { return [node] }
    return parseList(node)
  }
}

/// A value of a profile file and its path.
struct ProfileNode {
  let yaml: YAMLNode
  /// The path, such as `rules[0].trigger`; empty for the whole file.
  let path: String
  /// The position of the value's key, or of the value itself if it has no key.
  let keyPosition: TextPosition

  /// Creates the node of a whole file.
  init(root: YAMLNode) { self.init(root, path: "", keyPosition: root.position) }

  private init(_ yaml: YAMLNode, path: String, keyPosition: TextPosition) {
    self.yaml = yaml
    self.path = path
    self.keyPosition = keyPosition
  }

  var content: YAMLNode.Content { yaml.content }
  var position: TextPosition { yaml.position }
  var isEmpty: Bool { yaml.isEmpty }
  /// A description of the value's type, for messages.
  var kind: String { yaml.kind }

  /// Returns the path of a key of this map.
  func path(of key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }

  /// Returns the value of an entry of this map.
  func member(_ entry: YAMLNode.Entry) -> ProfileNode {
    ProfileNode(entry.value, path: path(of: entry.key), keyPosition: entry.position)
  }

  /// Returns an element of this list.
  func element(_ index: Int, _ element: YAMLNode) -> ProfileNode {
    ProfileNode(element, path: "\(path)[\(index)]", keyPosition: element.position)
  }
}

extension String {
  /// The text shortened for a message: at most 80 characters, without line breaks.
  var shortened: String {
    let line = String(map { $0.isNewline ? " " : $0 })
    return line.count <= 80 ? line : line.prefix(79) + "…"
  }
}
