import FaultModel
internal import Notation

/// Parses the values of one file and records all problems with them.
///
/// Each parsing method returns nil after adding a problem. The caller continues with the next value, so that one
/// pass finds all problems.
final class ProfileParser {
  /// A value and its path.
  struct Located {
    let node: YAMLNode
    let path: String

    /// Returns the value of an entry.
    func member(_ entry: YAMLNode.Entry) -> Located {
      Located(node: entry.value, path: path.isEmpty ? entry.key : "\(path).\(entry.key)")
    }

    /// Returns an element of the list.
    func element(_ index: Int, _ node: YAMLNode) -> Located { Located(node: node, path: "\(path)[\(index)]") }
  }

  /// A map with known keys.
  struct Map<Key: FileKey> {
    let place: Located
    private let entries: [Key: YAMLNode.Entry]

    init(_ place: Located, _ entries: [Key: YAMLNode.Entry]) {
      self.place = place
      self.entries = entries
    }

    /// The value of a key.
    subscript(key: Key) -> Located? { entries[key].map(place.member) }

    /// Returns whether a key is present.
    func has(_ key: Key) -> Bool { entries[key] != nil }

    /// Returns the position of a key, or that of the map if the key is absent.
    func position(of key: Key) -> TextPosition { entries[key]?.position ?? place.node.position }

    /// Returns the path of a key.
    func path(of key: Key) -> String { place.path.isEmpty ? key.rawValue : "\(place.path).\(key.rawValue)" }

    /// Whether the map is empty.
    var isEmpty: Bool { entries.isEmpty }
  }

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

  init(file: String, problems: ProblemList, parameters: ParameterSet) {
    self.file = file
    self.problems = problems
    self.parameters = parameters
  }

  // MARK: - Problems

  func fail(_ place: Located, _ message: String, hint: String? = nil) {
    fail(at: place.node.position, place.path, message, hint: hint)
  }

  func fail(at position: TextPosition, _ path: String, _ message: String, hint: String? = nil) {
    problems.add(ProfileProblem(file: file, at: position, path: path, message, hint: hint))
  }

  func warn(_ place: Located, _ message: String, hint: String? = nil) {
    warn(at: place.node.position, place.path, message, hint: hint)
  }

  func warn(at position: TextPosition, _ path: String, _ message: String, hint: String? = nil) {
    problems.add(ProfileProblem(.warning, file: file, at: position, path: path, message, hint: hint))
  }

  /// Returns the value of an accessor, or nil after recording its error.
  func value<Value>(at place: Located, _ access: (YAMLNode) throws(YAMLError) -> Value) -> Value? {
    do throws(YAMLError) {
      return try access(place.node)
    } catch {
      problems.add(error, file: file, path: place.path)
      return nil
    }
  }

  // MARK: - Structure

  /// Returns the entries of a map; an empty value, as in `close:`, has none.
  func entries(_ place: Located) -> [YAMLNode.Entry]? {
    value(at: place) { node throws(YAMLError) in try node.entries() }
  }

  /// Parses a map with known keys. Unknown keys and missing required keys are problems.
  func map<Key: FileKey>(_ place: Located, _ type: Key.Type = Key.self, without refused: [Key] = []) -> Map<Key>? {
    guard let entries = entries(place) else { return nil }
    var known: [Key: YAMLNode.Entry] = [:]
    for entry in entries {
      if let key = Key(rawValue: entry.key), !refused.contains(key), Key.allCases.contains(key) {
        known[key] = entry
      } else {
        failUnknown(entry, in: place, among: Key.allCases.filter { !refused.contains($0) }.map(\.rawValue))
      }
    }
    for key in Key.required where known[key] == nil {
      fail(place, "\(key.rawValue) is missing")
    }
    return Map(place, known)
  }

  /// Records an unknown key.
  func failUnknown(_ entry: YAMLNode.Entry, in place: Located, among names: [String]) {
    guard !problems.isFull else { return }
    fail(
      at: entry.position, place.member(entry).path.shortened, "unknown",
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
  func list(_ place: Located) -> [Located]? {
    value(at: place) { node throws(YAMLError) in try node.elements() }?.enumerated().map(place.element)
  }

  /// Returns the elements of a list, or the value itself if it is not a list.
  func listOrOne(_ place: Located) -> [Located]? {
    guard case .list = place.node.content else { return [place] }
    return list(place)
  }
}

extension String {
  /// The text shortened for a message: at most 80 characters, without line breaks.
  var shortened: String {
    let line = String(map { $0.isNewline ? " " : $0 })
    return line.count <= 80 ? line : line.prefix(79) + "…"
  }
}
