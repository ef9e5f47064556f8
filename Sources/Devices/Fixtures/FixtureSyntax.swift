package import APNSRules
internal import Notation

/// The values that a fixture file may omit.
package struct FixtureDefaults: Sendable {
  /// The environment of apps on devices and of channels.
  package var environment: PushEnvironment
  /// The team that owns the apps.
  package var teamID: String

  /// Creates defaults.
  package init(environment: PushEnvironment, teamID: String) {
    self.environment = environment
    self.teamID = teamID
  }
}

/// A map of a fixture file: one declaration by which it is read, written and described.
struct FixtureMap<Root>: Sendable {
  /// The name of the definition in the JSON Schema.
  let name: String
  /// The value before the keys are read.
  let initial: @Sendable (FixtureDefaults) -> Root
  /// The keys in the order in which they are written and described.
  let keys: [FixtureKey<Root>]

  init(_ name: String, _ initial: @escaping @Sendable (FixtureDefaults) -> Root, _ keys: FixtureKey<Root>...) {
    self.name = name
    self.initial = initial
    self.keys = keys
  }

  /// Reads the map. Returns nil after adding a problem.
  func read(_ node: YAMLNode, _ context: FixtureContext) -> Root? {
    guard let entries = context.reporting({ () throws(YAMLError) in try node.entries() }) else { return nil }
    var root = initial(context.defaults)
    var isValid = true
    for entry in entries {
      guard let key = keys.first(where: { $0.name == entry.key }) else {
        context.addUnknown(entry.key, at: entry.position, among: keys.map(\.name))
        isValid = false
        continue
      }
      if context.reporting({ () throws(YAMLError) in try key.read(entry.value, &root, context) }) == nil {
        isValid = false
      }
    }
    for key in keys where key.isRequired && !entries.contains(where: { $0.key == key.name }) {
      context.add(YAMLError(at: node.position, "\(key.name) is missing", hint: "add \(key.name): \(key.example)"))
      isValid = false
    }
    return isValid ? root : nil
  }

  /// Writes the map as an object.
  func write(_ root: Root, to writer: inout JSONWriter) {
    writer.object { writeMembers(of: root, to: &$0) }
  }

  /// Writes the keys and values as members of an object.
  func writeMembers(of root: Root, to writer: inout JSONWriter) {
    for key in keys { key.write(root, &writer) }
  }

  /// Writes the definition of the map in the JSON Schema.
  func writeDefinition(to writer: inout JSONWriter) {
    writer.objectMember(name) { writer in
      writer.member("type", "object")
      writer.member("additionalProperties", false)
      let required = keys.filter(\.isRequired).map(\.name)
      if !required.isEmpty { writer.member("required", required) }
      writer.objectMember("properties") { writer in
        for key in keys {
          writer.objectMember(key.name) { writer in
            writer.member("description", key.summary)
            key.writeForm(&writer)
          }
        }
      }
    }
  }
}

/// A key of a map in a fixture file.
struct FixtureKey<Root>: Sendable {
  let name: String
  let isRequired: Bool
  /// A value, for hints.
  let example: String
  /// A description in one sentence, for the schema.
  let summary: String
  /// Reads the value into the root.
  let read: @Sendable (YAMLNode, inout Root, FixtureContext) throws(YAMLError) -> Void
  /// Writes the key and its value.
  let write: @Sendable (Root, inout JSONWriter) -> Void
  /// Writes the members of the schema that describe the value.
  let writeForm: @Sendable (inout JSONWriter) -> Void

  init<Value>(
    _ name: String, _ property: any WritableKeyPath<Root, Value> & Sendable, _ value: FixtureValue<Value>,
    isRequired: Bool = false, example: String = "", _ summary: String
  ) {
    self.name = name
    self.isRequired = isRequired
    self.example = example
    self.summary = summary
    read = { node, root, context throws(YAMLError) in
      // A key without a value, as in `apps:`, has the default.
      guard isRequired || !node.isEmpty else { return }
      root[keyPath: property] = try value.read(node, context)
    }
    write = { root, writer in
      writer.name(name)
      value.write(root[keyPath: property], &writer)
    }
    writeForm = value.writeForm
  }
}

/// The syntax of a value in a fixture file.
struct FixtureValue<Value>: Sendable {
  /// Reads the value; problems of its parts are added to the context.
  let read: @Sendable (YAMLNode, FixtureContext) throws(YAMLError) -> Value
  let write: @Sendable (Value, inout JSONWriter) -> Void
  let writeForm: @Sendable (inout JSONWriter) -> Void
}

extension FixtureValue<String> {
  /// A string that must meet a condition.
  ///
  /// - Parameters:
  ///   - pattern: The regular expression in the JSON Schema.
  ///   - problem: Returns what is wrong with a text and how to correct it; nil for a valid text.
  static func text(
    pattern: String, _ problem: @escaping @Sendable (String) -> (message: String, hint: String)?
  ) -> FixtureValue {
    FixtureValue(
      read: { node, _ throws(YAMLError) in
        let text = try node.scalar("a string").text
        if let (message, hint) = problem(text) { throw YAMLError(at: node.position, message, hint: hint) }
        return text
      }, write: { $1.string($0) },
      writeForm: { writer in
        writer.member("type", "string")
        writer.member("pattern", pattern)
      })
  }
}

extension FixtureValue<Bool> {
  static let flag = FixtureValue(
    read: { node, _ throws(YAMLError) in
      guard let text = node.text, let flag = try? Notation.Value.flag(text) else {
        throw YAMLError(at: node.position, "expected true or false, not \(node.kind)", hint: "write true or false")
      }
      return flag
    }, write: { $1.bool($0) }, writeForm: { $0.member("type", "boolean") })
}

extension FixtureValue<Int> {
  static func integer(_ range: ClosedRange<Int>) -> FixtureValue {
    FixtureValue(
      read: { node, _ throws(YAMLError) in
        guard let number = Int(try node.scalar("a number").text), range.contains(number) else {
          throw YAMLError(
            at: node.position, "\"\((node.text ?? "").shortened)\" is not allowed",
            hint: "write \(range.map(String.init).joinedWithOr)")
        }
        return number
      }, write: { $1.integer($0) },
      writeForm: { writer in
        writer.member("type", "integer")
        writer.member("minimum", range.lowerBound)
        writer.member("maximum", range.upperBound)
      })
  }
}

extension FixtureValue where Value: RawRepresentable<String> & CaseIterable & Sendable {
  /// A value of an enumeration.
  ///
  /// - Parameter synonyms: Further names.
  static func word(_ synonyms: [String: Value] = [:]) -> FixtureValue {
    FixtureValue(
      read: { node, _ throws(YAMLError) in
        let names = Value.allCases.map(\.rawValue)
        let text = try node.scalar(names.joinedWithOr).text
        guard let word = Value(rawValue: text) ?? synonyms[text] else {
          throw YAMLError(
            at: node.position, "unknown value \"\(text.shortened)\"",
            hint: FixtureContext.guess(text, among: names) ?? "it is one of \(names.joined(separator: ", "))")
        }
        return word
      }, write: { $1.string($0.rawValue) },
      writeForm: { $0.member("enum", Value.allCases.map(\.rawValue)) })
  }
}

extension FixtureValue {
  /// A list of maps.
  static func list<Element: Sendable>(of map: FixtureMap<Element>) -> FixtureValue where Value == [Element] {
    FixtureValue(
      read: { node, context throws(YAMLError) in
        try node.elements().compactMap { map.read($0, context) }
      },
      write: { elements, writer in
        writer.array { writer in
          for element in elements { map.write(element, to: &writer) }
        }
      },
      writeForm: { writer in
        writer.member("type", "array")
        writer.objectMember("items") { $0.member("$ref", "#/$defs/\(map.name)") }
      })
  }
}

/// Collects the problems of a fixture file, with their positions.
final class FixtureContext {
  let defaults: FixtureDefaults
  let problems: ProblemList
  /// The name of the file.
  let file: String
  /// The element of a list that is being read, and its path, such as `devices[3]`.
  var element: (node: YAMLNode, section: String, index: Int)?
  /// The number of problems of this file, including those that were omitted from the list.
  private(set) var count = 0

  init(file: String, defaults: FixtureDefaults, problems: ProblemList) {
    self.file = file
    self.defaults = defaults
    self.problems = problems
  }

  func add(_ error: YAMLError) {
    count += 1
    guard !problems.isFull else { return problems.add(FileProblem(file: file, "")) }
    problems.add(error, file: file, path: error.position.map(path) ?? "")
  }

  func addUnknown(_ key: String, at position: TextPosition, among names: [String]) {
    add(
      YAMLError(
        at: position, "unknown key \"\(key.shortened)\"",
        hint: Self.guess(key, among: names) ?? "expected one of \(names.joined(separator: ", "))"))
  }

  /// Returns the result of `read`; nil after adding the error it throws.
  func reporting<Value>(_ read: () throws(YAMLError) -> Value) -> Value? {
    do throws(YAMLError) {
      return try read()
    } catch {
      add(error)
      return nil
    }
  }

  /// Returns a hint such as `did you mean "liveactivity"?` if a name is similar enough.
  static func guess(_ word: String, among names: some Sequence<String>) -> String? {
    Spelling.nearest(to: word, among: names).map { "did you mean \"\($0)\"?" }
  }

  /// Returns the path of the value at a position in the current element.
  func path(to position: TextPosition) -> String {
    guard let element else { return "" }
    let start = "\(element.section)[\(element.index)]"
    return start + (element.node.path(to: position) ?? "")
  }
}

extension YAMLNode {
  /// Returns the path of the value, or key, at a position: `.apps[0].state`; nil if nothing begins there.
  fileprivate func path(to position: TextPosition) -> String? {
    if self.position == position { return "" }
    switch content {
    case .map(let entries):
      for entry in entries {
        if entry.position == position { return "." + entry.key.shortened }
        if let rest = entry.value.path(to: position) { return "." + entry.key.shortened + rest }
      }
    case .list(let elements):
      for (index, element) in elements.enumerated() {
        if let rest = element.path(to: position) { return "[\(index)]" + rest }
      }
    case .scalar: break
    }
    return nil
  }
}

extension String {
  /// The text shortened for a message: at most 80 characters, without line breaks.
  var shortened: String {
    let line = String(map { $0.isNewline ? " " : $0 })
    return line.count <= 80 ? line : line.prefix(79) + "…"
  }
}
