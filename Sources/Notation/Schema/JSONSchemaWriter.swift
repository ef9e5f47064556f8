/// Writes a JSON Schema (draft 2020-12) from the schemas that a parser uses. Checks that involve several values are
/// left to the parser.
package final class JSONSchemaWriter {
  /// The pattern of a reference to a parameter, which may take the place of any value that is not a text; nil for
  /// documents without parameters.
  private let parameter: String?
  /// Whether null counts as an absent key.
  private let allowsNull: Bool
  /// The path of the definitions, to which a name is appended.
  private let definitions: String
  /// The maps that a form refers to and that still need a definition.
  private var required: [MapDescription] = []
  private var known: Set<String> = []

  private init(parameter: String? = nil, allowsNull: Bool, definitions: String = "#/$defs/") {
    self.parameter = parameter
    self.allowsNull = allowsNull
    self.definitions = definitions
  }

  /// Returns the schema of a document as JSON in one line.
  ///
  /// - Parameters:
  ///   - path: The path under which servers publish it.
  ///   - root: The whole document.
  ///   - parameter: The pattern of a reference to a parameter; nil for documents without parameters.
  ///   - allowsNull: Whether null counts as an absent key.
  ///   - definitions: Writes the definitions of `SchemaForm.reference`, as members of an object.
  package static func text(
    title: String, path: String, root: MapDescription, parameter: String? = nil, allowsNull: Bool = false,
    definitions: (JSONSchemaWriter, inout JSONWriter) -> Void = { _, _ in }
  ) -> String {
    let schema = JSONSchemaWriter(parameter: parameter, allowsNull: allowsNull)
    schema.require(root)
    var writer = JSONWriter(capacity: 65_536)
    writer.object { writer in
      writer.member("$schema", "https://json-schema.org/draft/2020-12/schema")
      writer.member("$id", path)
      writer.member("title", title)
      writer.member("$ref", schema.reference(root.name))
      writer.objectMember("$defs") { writer in
        definitions(schema, &writer)
        schema.writeRequiredMaps(to: &writer)
      }
    }
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// Returns an OpenAPI description in JSON that has only the definitions of a map and of the maps in it. Null counts
  /// as an absent key.
  package static func components(of root: MapDescription) -> String {
    let schema = JSONSchemaWriter(allowsNull: true, definitions: "#/components/schemas/")
    schema.require(root)
    var writer = JSONWriter()
    writer.object { writer in
      writer.objectMember("components") { $0.objectMember("schemas", schema.writeRequiredMaps) }
    }
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  private func writeRequiredMaps(to writer: inout JSONWriter) {
    while !required.isEmpty {
      let map = required.removeFirst()
      writer.name(map.name)
      write(map, to: &writer)
    }
  }

  /// Requests the definition of a map.
  package func require(_ map: MapDescription) {
    if known.insert(map.name).inserted { required.append(map) }
  }

  package func reference(_ name: String) -> String { definitions + name }

  /// Writes a map with known keys as the next value.
  ///
  /// - Parameter members: Writes further members of the definition.
  package func write(
    _ map: MapDescription, to writer: inout JSONWriter, and members: (inout JSONWriter) -> Void = { _ in }
  ) {
    let required = map.fields.filter(\.isRequired).map(\.name)
    writer.object { writer in
      // A map without required keys may be left empty: `close:`. Where null is an absent key, the key says so.
      writer.member("type", required.isEmpty && !allowsNull ? ["object", "null"] : ["object"])
      writer.member("additionalProperties", false)
      if !required.isEmpty { writer.member("required", required) }
      writer.objectMember("properties") { writer in
        for field in map.fields {
          writer.objectMember(field.name) { writer in
            let text = field.summary + (field.defaultText.map { " Default: \($0)." } ?? "")
            if !text.isEmpty { writer.member("description", text.replacing("`", with: "")) }
            writeMembers(of: field.form, orNull: allowsNull && !field.isRequired, to: &writer)
          }
        }
      }
      members(&writer)
    }
  }

  /// Writes the members that describe a value into an object that may have other members.
  ///
  /// - Parameter orNull: Whether null is allowed too.
  package func writeMembers(of form: SchemaForm, orNull: Bool = false, to writer: inout JSONWriter) {
    if orNull {
      switch form {
      case .word, .map, .reference, .either: return writeMembers(of: .either(form, .null), to: &writer)
      default: break
      }
    }
    let type = { (writer: inout JSONWriter, names: [String]) in
      let names = orNull ? names + ["null"] : names
      if names.count == 1 { writer.member("type", names[0]) } else { writer.member("type", names) }
    }
    switch form {
    case .text(let pattern, let examples):
      type(&writer, ["string"])
      if let pattern { writer.member("pattern", pattern) }
      if !examples.isEmpty { writer.member("examples", examples) }
    case .word(let words): writeValueOrParameter(to: &writer) { $0.member("enum", words) }
    case .integer(let range):
      writeValueOrParameter(to: &writer) { writer in
        type(&writer, ["integer"])
        writer.member("minimum", range.lowerBound)
        if range.upperBound < .max { writer.member("maximum", range.upperBound) }
      }
    case .number(let range):
      writeValueOrParameter(to: &writer) { writer in
        type(&writer, ["number"])
        writer.name(range.isMinimumExcluded ? "exclusiveMinimum" : "minimum")
        writer.shortNumber(range.minimum)
        writer.name("maximum")
        writer.shortNumber(range.maximum)
      }
    case .size: type(&writer, ["integer", "string"])
    case .duration:
      writeValueOrParameter(to: &writer) { writer in
        type(&writer, ["string"])
        writer.member("pattern", "^(-?([0-9.]+(ns|us|µs|ms|s|m|h|d))+)$")
        writer.member("examples", ["500ms", "5s", "1h30m"])
      }
    case .time:
      type(&writer, ["string"])
      writer.member("format", "date-time")
    case .null: writer.member("type", "null")
    case .flag: writeValueOrParameter(to: &writer) { type(&$0, ["boolean"]) }
    case .scalar: type(&writer, ["string", "number", "boolean"])
    case .json: type(&writer, ["object", "array"])
    case .list(let element):
      type(&writer, ["array"])
      writer.objectMember("items") { writeMembers(of: element, to: &$0) }
    case .map(let map):
      require(map)
      writer.member("$ref", reference(map.name))
    case .named(let element):
      writer.member("type", ["object", "null"])
      writer.objectMember("additionalProperties") { writeMembers(of: element, to: &$0) }
    case .reference(let name): writer.member("$ref", reference(name))
    case .either(let one, let other):
      writer.arrayMember("anyOf") { writer in
        writer.object { writeMembers(of: one, to: &$0) }
        writer.object { writeMembers(of: other, to: &$0) }
      }
    }
  }

  private func writeValueOrParameter(to writer: inout JSONWriter, _ members: (inout JSONWriter) -> Void) {
    guard let parameter else { return members(&writer) }
    writer.arrayMember("anyOf") { writer in
      writer.object(members)
      writer.object { writer in
        writer.member("type", "string")
        writer.member("pattern", parameter)
      }
    }
  }
}
