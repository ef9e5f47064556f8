internal import Notation

/// The syntax of a map with known keys, whose values are properties of `Root`. One declaration parses the map, writes
/// it and describes it in the JSON Schema and on the reference page.
struct MapSyntax<Root> {
  /// The name of the map's definition in the JSON Schema.
  let name: String
  /// The values of absent keys. Those of required keys are placeholders.
  let initial: Root
  /// The keys in the order in which they are parsed, written and described.
  let fields: [Field<Root>]
  /// Checks values that depend on each other. Returns false after recording an error.
  private let validate: @Sendable (CheckedMap<Root>, Root) -> Bool

  init(
    _ name: String, _ initial: Root, _ fields: Field<Root>...,
    validate: @escaping @Sendable (CheckedMap<Root>, Root) -> Bool = { _, _ in true }
  ) {
    self.init(name, initial, fields: fields, validate: validate)
  }

  init(
    _ name: String, _ initial: Root, fields: [Field<Root>],
    validate: @escaping @Sendable (CheckedMap<Root>, Root) -> Bool = { _, _ in true }
  ) {
    self.name = name
    self.initial = initial
    self.fields = fields
    self.validate = validate
  }

  /// A description for the JSON Schema and the reference page.
  var description: MapDescription {
    MapDescription(name: name, fields: fields.map { $0.description(initial: initial) })
  }

  /// Returns the key of a property as written in files; empty if the property has none.
  func name(of property: PartialKeyPath<Root>) -> String {
    fields.first { $0.property == property }?.name ?? ""
  }

  /// Parses the map; returns nil after recording an error.
  func parse(_ node: ProfileNode, _ parser: ProfileParser) -> Root? {
    guard let map = parseKeys(node, parser) else { return nil }
    var root = initial
    guard map.parse(into: &root), validate(map, root) else { return nil }
    return root
  }

  /// Checks the keys of the map without parsing their values. Records unknown keys and missing required keys.
  ///
  /// - Parameter excluded: The properties whose keys are not allowed here.
  func parseKeys(
    _ node: ProfileNode, _ parser: ProfileParser, excluding excluded: [PartialKeyPath<Root>] = []
  ) -> CheckedMap<Root>? {
    guard let entries = parser.parseEntries(node) else { return nil }
    let fields = fields.filter { field in !excluded.contains { $0 == field.property } }
    var values: [String: ProfileNode] = [:]
    for entry in entries {
      if fields.contains(where: { $0.name == entry.key }) {
        values[entry.key] = node.member(entry)
      } else {
        parser.failUnknown(entry, in: node, among: fields.map(\.name))
      }
    }
    for field in fields where field.isRequired && values[field.name] == nil {
      parser.fail(node, "\(field.name) is missing")
    }
    return CheckedMap(syntax: self, node: node, parser: parser, values: values)
  }

  /// Writes the keys and values as members of an object.
  func writeMembers(of root: Root, to writer: inout JSONWriter) {
    for field in fields { field.write(root, initial, &writer) }
  }
}

extension MapSyntax: Sendable where Root: Sendable {}

/// A map of a profile file whose keys are known and complete, and whose values are not parsed yet.
struct CheckedMap<Root> {
  let syntax: MapSyntax<Root>
  let node: ProfileNode
  let parser: ProfileParser
  fileprivate let values: [String: ProfileNode]

  /// Whether the map has no known keys.
  var isEmpty: Bool { values.isEmpty }

  /// The unparsed value of a property; nil if its key is absent.
  subscript(property: PartialKeyPath<Root>) -> ProfileNode? { values[syntax.name(of: property)] }

  /// The unparsed value of a key; nil if it is absent.
  subscript(name: String) -> ProfileNode? { values[name] }

  /// Returns whether the key of a property is present.
  func has(_ property: PartialKeyPath<Root>) -> Bool { self[property] != nil }

  /// Parses the values that are present. Returns false if one is invalid or a required one is missing; the others are
  /// assigned nevertheless.
  ///
  /// - Parameter isIncluded: Whether to parse the key of a property.
  func parse(into root: inout Root, where isIncluded: (PartialKeyPath<Root>) -> Bool = { _ in true }) -> Bool {
    var isValid = true
    for field in syntax.fields where isIncluded(field.property) {
      if let value = values[field.name] {
        if !field.parse(parser, value, &root) { isValid = false }
      } else if field.isRequired {
        isValid = false
      }
    }
    return isValid
  }

  /// Records an error at the key of a property, or at the map if the key is absent. Returns false.
  @discardableResult
  func fail(at property: PartialKeyPath<Root>, _ message: String, hint: String? = nil) -> Bool {
    let (position, path) = location(of: property)
    parser.fail(at: position, path, message, hint: hint)
    return false
  }

  /// Records a warning at the key of a property.
  func warn(at property: PartialKeyPath<Root>, _ message: String, hint: String? = nil) {
    let (position, path) = location(of: property)
    parser.warn(at: position, path, message, hint: hint)
  }

  /// Returns the position of a property's key, or that of the map if the key is absent, and the path of the key.
  func location(of property: PartialKeyPath<Root>) -> (position: TextPosition, path: String) {
    (self[property]?.keyPosition ?? node.position, node.path(of: syntax.name(of: property)))
  }
}

/// A key of a map: its value is parsed into a property of `Root` and written from it.
struct Field<Root>: Sendable {
  /// When a key is written.
  enum Writing: Sendable {
    case always
    /// Only if the value differs from the default.
    case unlessDefault
    case when(@Sendable (Root) -> Bool)
  }

  /// The key.
  let name: String
  /// The property that the value is stored in; `\.self` if the value is stored elsewhere.
  let property: any PartialKeyPath<Root> & Sendable
  let form: ValueForm
  var isRequired = false
  /// Returns the default in Markdown; nil for no default.
  let defaultText: @Sendable (Root) -> String?
  /// A sentence in Markdown.
  let summary: String
  /// Parses the value; returns false after recording an error.
  let parse: @Sendable (ProfileParser, ProfileNode, inout Root) -> Bool
  /// Writes key and value unless they may be omitted. The second argument has the defaults.
  let write: @Sendable (Root, Root, inout JSONWriter) -> Void

  /// Creates a required key.
  static func required<Value>(
    _ name: String, _ property: any WritableKeyPath<Root, Value> & Sendable, _ syntax: Syntax<Value>, _ summary: String
  ) -> Field {
    var field = key(name, property, syntax, default: { _ in nil }, summary) { _, _ in true }
    field.isRequired = true
    return field
  }

  /// Creates a key whose value is nil if it is absent.
  ///
  /// - Parameter text: The meaning of an absent key.
  static func optional<Value>(
    _ name: String, _ property: any WritableKeyPath<Root, Value?> & Sendable, _ syntax: Syntax<Value>,
    default text: String? = nil, _ summary: String
  ) -> Field {
    key(name, property, syntax.optional, default: { _ in text }, summary) { root, _ in root[keyPath: property] != nil }
  }

  /// Creates a key with a default, which is the value of the property in `MapSyntax.initial`.
  ///
  /// - Parameter text: The default in words, if the initial value does not say it.
  static func defaulted<Value: Equatable & Sendable>(
    _ name: String, _ property: any WritableKeyPath<Root, Value> & Sendable, _ syntax: Syntax<Value>,
    default text: String? = nil, writing: Writing = .always, _ summary: String
  ) -> Field {
    key(name, property, syntax, default: { text ?? syntax.markdown($0[keyPath: property]) }, summary) { root, initial in
      switch writing {
      case .always: true
      case .unlessDefault: root[keyPath: property] != initial[keyPath: property]
      case .when(let condition): condition(root)
      }
    }
  }

  /// Creates a key with its own parsing and writing. `parse` changes the value built so far; `write` writes the key and
  /// its value, or nothing.
  static func custom<Value>(
    _ name: String, _ property: any KeyPath<Root, Value> & Sendable, _ form: ValueForm, default text: String? = nil,
    _ summary: String, parse: @escaping @Sendable (ProfileParser, ProfileNode, inout Root) -> Bool,
    write: @escaping @Sendable (Root, inout JSONWriter) -> Void
  ) -> Field {
    Field(
      name: name, property: property, form: form, defaultText: { _ in text }, summary: summary, parse: parse,
      write: { root, _, writer in write(root, &writer) })
  }

  private static func key<Value>(
    _ name: String, _ property: any WritableKeyPath<Root, Value> & Sendable, _ syntax: Syntax<Value>,
    default text: @escaping @Sendable (Root) -> String?, _ summary: String,
    isWritten: @escaping @Sendable (Root, Root) -> Bool
  ) -> Field {
    Field(
      name: name, property: property, form: syntax.form, defaultText: text, summary: summary,
      parse: { parser, node, root in
        guard let value = syntax.parse(parser, node) else { return false }
        root[keyPath: property] = value
        return true
      },
      write: { root, initial, writer in
        guard isWritten(root, initial) else { return }
        writer.name(name)
        syntax.write(root[keyPath: property], &writer)
      })
  }

  func description(initial: Root) -> FieldDescription {
    FieldDescription(
      name: name, form: form, isRequired: isRequired, defaultText: defaultText(initial), summary: summary)
  }
}

/// A description of a map with known keys.
struct MapDescription: Sendable {
  /// The name of the map's definition in the JSON Schema.
  let name: String
  let fields: [FieldDescription]

  /// Returns the description without a key.
  func removing(_ name: String) -> MapDescription {
    MapDescription(name: self.name, fields: fields.filter { $0.name != name })
  }
}

/// A description of a key.
struct FieldDescription: Sendable {
  let name: String
  let form: ValueForm
  let isRequired: Bool
  /// The default in Markdown; nil for none.
  let defaultText: String?
  /// A sentence in Markdown.
  let summary: String
}
