/// The schema of a map with known keys, whose values are properties of `Root`. One declaration parses the map, writes
/// it and describes it in the JSON Schema and on the reference page.
package struct MapSchema<Root> {
  /// The name of the map's definition in the JSON Schema.
  package let name: String
  /// The values of absent keys. Those of required keys are placeholders.
  package let initial: Root
  /// The keys in the order in which they are parsed, written and described.
  package let fields: [Field<Root>]
  /// Checks values that depend on each other. Returns false after recording an error.
  private let validate: @Sendable (CheckedMap<Root>, Root) -> Bool

  package init(
    _ name: String, _ initial: Root, _ fields: Field<Root>...,
    validate: @escaping @Sendable (CheckedMap<Root>, Root) -> Bool = { _, _ in true }
  ) {
    self.init(name, initial, fields: fields, validate: validate)
  }

  package init(
    _ name: String, _ initial: Root, fields: [Field<Root>],
    validate: @escaping @Sendable (CheckedMap<Root>, Root) -> Bool = { _, _ in true }
  ) {
    self.name = name
    self.initial = initial
    self.fields = fields
    self.validate = validate
  }

  /// A description for the JSON Schema and the reference page.
  package var description: MapDescription {
    MapDescription(name: name, fields: fields.map { $0.description(initial: initial) })
  }

  /// Returns the key of a property as written in files; empty if the property has none.
  package func name(of property: PartialKeyPath<Root>) -> String {
    fields.first { $0.property == property }?.name ?? ""
  }

  /// Parses the map; returns nil after recording an error.
  package func parse(_ node: SchemaNode, _ parser: SchemaParser) -> Root? {
    guard let map = parseKeys(node, parser) else { return nil }
    var root = initial
    guard map.parse(into: &root), validate(map, root) else { return nil }
    return root
  }

  /// Checks the keys of the map without parsing their values. Records unknown keys and missing required keys.
  ///
  /// - Parameter excluded: The properties whose keys are not allowed here.
  package func parseKeys(
    _ node: SchemaNode, _ parser: SchemaParser, excluding excluded: [PartialKeyPath<Root>] = []
  ) -> CheckedMap<Root>? {
    guard let entries = parser.parseEntries(node) else { return nil }
    let fields = excluded.isEmpty ? fields : fields.filter { field in !excluded.contains { $0 == field.property } }
    var values: [SchemaNode] = []
    for entry in entries {
      if let field = fields.first(where: { $0.name == entry.key }) {
        let mayBeNull = !parser.ignoresNull || field.isRequired && !parser.isRequestBody
        guard mayBeNull || !entry.value.isEmpty else { continue }
        values.append(node.member(entry))
      } else {
        parser.failUnknown(entry, in: node, among: fields.map(\.name))
      }
    }
    for field in fields where field.isRequired && !values.contains(where: { $0.key == field.name }) {
      parser.failMissing(field.name, in: node, example: field.example)
    }
    return CheckedMap(schema: self, node: node, parser: parser, values: values)
  }

  /// Writes the keys and values as members of an object.
  package func writeMembers(of root: Root, to writer: inout JSONWriter) {
    for field in fields { field.write(root, initial, &writer) }
  }
}

extension MapSchema: Sendable where Root: Sendable {}

/// A map whose keys are known and complete, and whose values are not parsed yet.
package struct CheckedMap<Root> {
  package let schema: MapSchema<Root>
  package let node: SchemaNode
  package let parser: SchemaParser
  /// The unparsed values that are present, in the order of the document.
  fileprivate let values: [SchemaNode]

  /// Whether the map has no known keys.
  package var isEmpty: Bool { values.isEmpty }

  /// The unparsed value of a property; nil if its key is absent.
  package subscript(property: PartialKeyPath<Root>) -> SchemaNode? { self[schema.name(of: property)] }

  /// The unparsed value of a key; nil if it is absent.
  package subscript(name: String) -> SchemaNode? { values.first { $0.key == name } }

  /// Returns whether the key of a property is present.
  package func has(_ property: PartialKeyPath<Root>) -> Bool { self[property] != nil }

  /// Parses the values that are present. Returns false if one is invalid or a required one is missing; the others are
  /// assigned nevertheless.
  ///
  /// - Parameter isIncluded: Whether to parse the key of a property.
  package func parse(into root: inout Root, where isIncluded: (PartialKeyPath<Root>) -> Bool = { _ in true }) -> Bool {
    var isValid = true
    for field in schema.fields where isIncluded(field.property) {
      if let value = self[field.name] {
        if !field.parse(parser, value, &root) { isValid = false }
      } else if field.isRequired {
        isValid = false
      }
    }
    return isValid
  }

  /// Records an error at the key of a property, or at the map if the key is absent. Returns false.
  @discardableResult
  package func fail(at property: PartialKeyPath<Root>, _ message: String, hint: String? = nil) -> Bool {
    let (position, path) = location(of: property)
    parser.fail(at: position, path, message, hint: hint)
    return false
  }

  /// Records a warning at the key of a property.
  package func warn(at property: PartialKeyPath<Root>, _ message: String, hint: String? = nil) {
    let (position, path) = location(of: property)
    parser.warn(at: position, path, message, hint: hint)
  }

  /// Returns the position of a property's key, or that of the map if the key is absent, and the path of the key.
  package func location(of property: PartialKeyPath<Root>) -> (position: TextPosition, path: String) {
    (self[property]?.keyPosition ?? node.position, node.path(of: schema.name(of: property)))
  }
}

/// A key of a map: its value is parsed into a property of `Root` and written from it.
package struct Field<Root>: Sendable {
  /// When a key is written.
  package enum Writing: Sendable {
    case always
    /// Only if the value differs from the default.
    case unlessDefault
    case when(@Sendable (Root) -> Bool)
  }

  /// The key.
  package let name: String
  /// The property that the value is stored in; `\.self` if the value is stored elsewhere.
  package let property: any PartialKeyPath<Root> & Sendable
  let form: SchemaForm
  fileprivate(set) var isRequired = false
  /// A value, for the error about a missing key.
  fileprivate(set) var example: String?
  /// Returns the default in Markdown; nil for no default.
  let defaultText: @Sendable (Root) -> String?
  /// A sentence in Markdown.
  let summary: String
  /// Parses the value; returns false after recording an error.
  let parse: @Sendable (SchemaParser, SchemaNode, inout Root) -> Bool
  /// Writes key and value unless they may be omitted. The second argument has the defaults.
  let write: @Sendable (Root, Root, inout JSONWriter) -> Void

  /// Creates a required key.
  package static func required<Value>(
    _ name: String, _ property: any WritableKeyPath<Root, Value> & Sendable, _ schema: Schema<Value>,
    example: String? = nil, _ summary: String
  ) -> Field {
    var field = key(name, property, schema, default: { _ in nil }, summary) { _, _ in true }
    field.isRequired = true
    field.example = example
    return field
  }

  /// Creates a key whose value is nil if it is absent.
  ///
  /// - Parameter text: The meaning of an absent key.
  package static func optional<Value>(
    _ name: String, _ property: any WritableKeyPath<Root, Value?> & Sendable, _ schema: Schema<Value>,
    default text: String? = nil, _ summary: String
  ) -> Field {
    key(name, property, schema.optional, default: { _ in text }, summary) { root, _ in root[keyPath: property] != nil }
  }

  /// Creates a key with a default, which is the value of the property in `MapSchema.initial`.
  ///
  /// - Parameter text: The default in words, if the initial value does not say it.
  package static func defaulted<Value: Equatable & Sendable>(
    _ name: String, _ property: any WritableKeyPath<Root, Value> & Sendable, _ schema: Schema<Value>,
    default text: String? = nil, writing: Writing = .always, _ summary: String
  ) -> Field {
    key(name, property, schema, default: { text ?? schema.markdown($0[keyPath: property]) }, summary) { root, initial in
      switch writing {
      case .always: true
      case .unlessDefault: root[keyPath: property] != initial[keyPath: property]
      case .when(let condition): condition(root)
      }
    }
  }

  /// Creates a key with its own parsing and writing. `parse` changes the value built so far; `write` writes the key and
  /// its value, or nothing.
  package static func custom<Value>(
    _ name: String, _ property: any KeyPath<Root, Value> & Sendable, _ form: SchemaForm, default text: String? = nil,
    _ summary: String, parse: @escaping @Sendable (SchemaParser, SchemaNode, inout Root) -> Bool,
    write: @escaping @Sendable (Root, inout JSONWriter) -> Void = { _, _ in }
  ) -> Field {
    Field(
      name: name, property: property, form: form, defaultText: { _ in text }, summary: summary, parse: parse,
      write: { root, _, writer in write(root, &writer) })
  }

  private static func key<Value>(
    _ name: String, _ property: any WritableKeyPath<Root, Value> & Sendable, _ schema: Schema<Value>,
    default text: @escaping @Sendable (Root) -> String?, _ summary: String,
    isWritten: @escaping @Sendable (Root, Root) -> Bool
  ) -> Field {
    Field(
      name: name, property: property, form: schema.form, defaultText: text, summary: summary,
      parse: { parser, node, root in
        guard let value = schema.parse(parser, node) else { return false }
        root[keyPath: property] = value
        return true
      },
      write: { root, initial, writer in
        guard isWritten(root, initial) else { return }
        writer.name(name)
        schema.write(root[keyPath: property], &writer)
      })
  }

  fileprivate func description(initial: Root) -> FieldDescription {
    FieldDescription(name, form, isRequired: isRequired, default: defaultText(initial), summary)
  }
}
