/// Parses the values of one document by their schemas and records all problems with them.
///
/// Each parsing method returns nil after adding a problem. The caller continues with the next value, so that one
/// pass finds all problems.
package final class SchemaParser {
  /// A scalar, or the value of the parameter it refers to.
  package struct Scalar {
    package let text: String
    /// Whether the value is a string; otherwise it may have any type.
    package let isString: Bool
    /// The name of the parameter.
    package let parameter: String?

    package init(text: String, isString: Bool, parameter: String? = nil) {
      self.text = text
      self.isString = isString
      self.parameter = parameter
    }
  }

  /// Returns the value of the parameter that a scalar refers to, the scalar itself if it refers to none, or nil after
  /// recording an error.
  package typealias Resolve = (SchemaParser, SchemaNode, Scalar, ScalarType) -> Scalar?

  /// The name of the document in problems.
  package let file: String
  package let problems: ProblemList
  /// What the parsers of one kind of document need.
  package let context: AnyObject?
  private let resolve: Resolve?
  /// Whether a key whose value is null, or absent as in `apps:`, counts as absent.
  let ignoresNull: Bool
  /// Whether the document is the JSON object in the body of a request: its values must have the types of JSON, and
  /// problems are worded for its sender, who sees the message and the hint alone.
  let isRequestBody: Bool

  /// - Parameter resolve: Resolves references to parameters; nil if the document cannot have any.
  package init(
    file: String, problems: ProblemList = ProblemList(), context: AnyObject? = nil, ignoresNull: Bool = false,
    isRequestBody: Bool = false, resolve: Resolve? = nil
  ) {
    self.isRequestBody = isRequestBody
    self.file = file
    self.problems = problems
    self.context = context
    self.ignoresNull = ignoresNull
    self.resolve = resolve
  }

  // MARK: - Problems

  package func fail(_ node: SchemaNode, _ message: String, hint: String? = nil) {
    // Do not compute the path of a problem that is omitted.
    fail(at: node.position, problems.isFull ? "" : node.path, message, hint: hint)
  }

  /// Records an invalid value, including the parameter it comes from.
  package func fail(_ node: SchemaNode, _ scalar: Scalar, _ message: String, hint: String? = nil) {
    fail(node, scalar.parameter.map { "\(message) (parameter \"\($0)\")" } ?? message, hint: hint)
  }

  package func fail(at position: TextPosition, _ path: String, _ message: String, hint: String? = nil) {
    problems.add(FileProblem(file: file, at: position, path: path, message, hint: hint))
  }

  package func warn(_ node: SchemaNode, _ message: String, hint: String? = nil) {
    warn(at: node.position, node.path, message, hint: hint)
  }

  package func warn(at position: TextPosition, _ path: String, _ message: String, hint: String? = nil) {
    problems.add(FileProblem(.warning, file: file, at: position, path: path, message, hint: hint))
  }

  /// Returns the value of an accessor, or nil after recording its error.
  package func value<Value>(at node: SchemaNode, _ access: (YAMLNode) throws(YAMLError) -> Value) -> Value? {
    do throws(YAMLError) {
      return try access(node.yaml)
    } catch {
      problems.add(error, file: file, path: node.path)
      return nil
    }
  }

  // MARK: - Structure

  /// Returns the entries of a map; an empty value, as in `close:`, has none.
  package func parseEntries(_ node: SchemaNode) -> [YAMLNode.Entry]? {
    value(at: node) { yaml throws(YAMLError) in try yaml.entries() }
  }

  /// Records an unknown key.
  package func failUnknown(_ entry: YAMLNode.Entry, in node: SchemaNode, among names: [String]) {
    failUnknown(entry.key, at: entry.position, problems.isFull ? "" : node.member(entry).path, among: names)
  }

  /// Records an unknown key.
  ///
  /// - Parameters:
  ///   - path: The path of the key.
  ///   - message: What is wrong with it.
  package func failUnknown(
    _ key: String, at position: TextPosition, _ path: String, among names: [String], _ message: String = "unknown"
  ) {
    // Do not compare a key whose problem is omitted with all names. Of a request body, only the first is reported.
    guard !problems.isFull, !isRequestBody || !problems.hasErrors else {
      return problems.add(FileProblem(file: file, ""))
    }
    if isRequestBody {
      let guess = Self.nearest(to: key, among: names).map { "Did you mean \($0)? " } ?? ""
      return fail(
        at: position, path, "the body has an unknown member \"\(path)\"",
        hint: names.isEmpty
          ? "Send {} or no body." : "\(guess)The members are \(Spelling.choices(for: key, among: names)).")
    }
    // A JSON pointer is sent back to find the place, so it is shortened only if it is longer than any real one.
    let isPointer = path.hasPrefix("/") && path.utf8.count <= 1000
    fail(
      at: position, isPointer ? path : path.shortened, message,
      hint: Self.guess(key, among: names)
        ?? (names.isEmpty ? "no keys are allowed here" : "expected one of \(Spelling.choices(for: key, among: names))"))
  }

  /// Records a missing key.
  func failMissing(_ name: String, in node: SchemaNode, example: String?) {
    if isRequestBody {
      fail(node, "the body lacks \(name)", hint: example.map { "Add it, such as \(name): \($0)." })
    } else {
      fail(node, "\(name) is missing", hint: example.map { "add \(name): \($0)" })
    }
  }

  /// Records that a member of a request has another type than `wanted`.
  package func failType(_ node: SchemaNode, _ wanted: String) {
    fail(node, "\(node.path) must be \(wanted)", hint: "Change it to \(wanted), or omit it.")
  }

  /// Returns a hint such as `did you mean "probability"?` if a name is similar enough.
  package static func guess(_ word: String, among names: some Sequence<String>) -> String? {
    nearest(to: word, among: names).map { "did you mean \"\($0)\"?" }
  }

  /// Returns the name that a word was probably meant to be: a synonym, or else a similar name; nil for none.
  package static func nearest(to word: String, among names: some Sequence<String>) -> String? {
    // No name is as long, and a word of a megabyte would be compared with each.
    let word = String(word.prefix(40))
    if let canonical = synonyms[word.lowercased()], names.contains(canonical) { return canonical }
    return Spelling.nearest(to: word, among: names)
  }

  /// Names that other tools use. YAML 1.1 reads `on` as true.
  private static let synonyms = [
    "on": "at", "true": "at", "if": "when", "match": "when", "action": "do", "actions": "do", "parameters": "params",
    "knobs": "params", "include": "extends", "description": "summary", "chance": "probability", "rate": "probability",
    "token": "device_token", "rst_stream": "reset_stream", "go_away": "goaway", "sleep": "delay", "timeout": "hang",
    "server_name": "sni", "equal": "equals", "regex": "glob", "<<": "extends", "device_token": "token",
    "app_id": "bundle_id", "profile": "name", "query": "scope",
  ]

  /// Returns the elements of a list.
  package func parseList(_ node: SchemaNode) -> [SchemaNode]? {
    value(at: node) { yaml throws(YAMLError) in try yaml.elements() }?.enumerated().map(node.element)
  }

  /// Returns the elements of a list, or the value itself if it is not a list.
  package func parseListOrValue(_ node: SchemaNode) -> [SchemaNode]? {
    guard case .list = node.content else { return [node] }
    return parseList(node)
  }

  /// Returns a scalar, or the value of the parameter it refers to.
  package func parseScalar(_ node: SchemaNode, as type: ScalarType) -> Scalar? {
    if isRequestBody {
      guard case .scalar(let scalar) = node.content, !node.isEmpty, type.allows(isString: scalar.isString) else {
        failType(node, type.memberDescription)
        return nil
      }
      return Scalar(text: scalar.text, isString: scalar.isString)
    }
    guard let scalar = value(at: node, { yaml throws(YAMLError) in try yaml.scalar(type.description) }) else {
      return nil
    }
    let written = Scalar(text: scalar.text, isString: scalar.isString)
    guard let resolve else { return written }
    return resolve(self, node, written, type)
  }
}

/// A value of a document and its path.
package struct SchemaNode {
  /// The way from the root of the document to the value.
  private indirect enum Location {
    case root(PathFormat)
    case member(Location, String)
    case element(Location, Int)

    /// The path and its format.
    var path: (text: String, format: PathFormat) {
      switch self {
      case .root(let format): return ("", format)
      case .member(let map, let key):
        let (path, format) = map.path
        switch format {
        case .keys: return (path.isEmpty ? key : "\(path).\(key)", format)
        case .pointer: return ("\(path)/\(key.replacing("~", with: "~0").replacing("/", with: "~1"))", format)
        }
      case .element(let list, let index):
        let (path, format) = list.path
        return (format == .keys ? "\(path)[\(index)]" : "\(path)/\(index)", format)
      }
    }
  }

  /// The format of paths.
  package enum PathFormat {
    /// Keys and indices, such as `rules[0].trigger`.
    case keys
    /// A JSON pointer, such as `/expect/0/match`.
    case pointer
  }

  package let yaml: YAMLNode
  private let location: Location
  /// The position of the value's key, or of the value itself if it has no key.
  package let keyPosition: TextPosition

  /// Creates the node of a whole document.
  package init(root: YAMLNode, paths: PathFormat = .keys) {
    self.init(root, .root(paths), keyPosition: root.position)
  }

  /// Creates the node of an element of a list at the top of a document.
  package init(element: YAMLNode, _ index: Int, of key: String) {
    self.init(element, .element(.member(.root(.keys), key), index), keyPosition: element.position)
  }

  private init(_ yaml: YAMLNode, _ location: Location, keyPosition: TextPosition) {
    self.yaml = yaml
    self.location = location
    self.keyPosition = keyPosition
  }

  package var content: YAMLNode.Content { yaml.content }
  package var position: TextPosition { yaml.position }
  package var isEmpty: Bool { yaml.isEmpty }
  /// A description of the value's type, for messages.
  package var kind: String { yaml.kind }

  /// The path; empty for the whole document.
  package var path: String { location.path.text }

  /// The value's key in its map; empty for an element of a list or the whole document.
  var key: String { if case .member(_, let key) = location { key } else { "" } }

  /// Returns the path of a key of this map.
  package func path(of key: String) -> String { Location.member(location, key).path.text }

  /// The value of a key; nil if this is not a map or has no such key.
  package subscript(key: String) -> SchemaNode? {
    guard case .map(let entries) = content else { return nil }
    return entries.first { $0.key == key }.map(member)
  }

  /// The members of a map; empty for other values.
  package var members: [SchemaNode] { ((try? yaml.entries()) ?? []).map(member) }

  /// The elements of a list; empty for other values.
  package var elements: [SchemaNode] { ((try? yaml.elements()) ?? []).enumerated().map(element) }

  /// Returns the value of an entry of this map.
  package func member(_ entry: YAMLNode.Entry) -> SchemaNode {
    SchemaNode(entry.value, .member(location, entry.key), keyPosition: entry.position)
  }

  /// Returns an element of this list.
  package func element(_ index: Int, _ element: YAMLNode) -> SchemaNode {
    SchemaNode(element, .element(location, index), keyPosition: element.position)
  }
}

extension String {
  /// The text shortened for a message: at most 80 characters, without line breaks.
  package var shortened: String {
    let line = String(map { $0.isNewline ? " " : $0 })
    return line.count <= 80 ? line : line.prefix(79) + "…"
  }
}
