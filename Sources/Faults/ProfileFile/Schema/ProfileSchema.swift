import FaultModel
internal import APNSRules
internal import Notation

/// The JSON Schema (draft 2020-12) of profile files, generated from the keys that the parser uses. Editors use it
/// for completion and validation; checks that involve several values are left to `profile lint`.
package enum ProfileSchema {
  /// The schema as JSON in one line.
  package static let text = String(decoding: written.bytes, as: UTF8.self)

  /// The path under which servers publish the schema.
  package static let path = "/schema/fault-profile.json"

  private static var written: JSONWriter {
    var schema = SchemaWriter()
    var definitions: [(name: String, bytes: [UInt8])] = []
    schema.need(ProfileKey.self)
    schema.need(MatchKey.self)
    schema.need(AgoKey.self)
    for name in Action.Name.allCases { name.keys.map { schema.need($0) } }
    while let next = schema.nextNeeded() {
      var writer = JSONWriter()
      schema.writeObject(next, to: &writer)
      definitions.append((next.schemaName, writer.bytes))
    }
    var writer = JSONWriter(capacity: 65_536)
    writer.object { writer in
      writer.member("$schema", "https://json-schema.org/draft/2020-12/schema")
      writer.member("$id", path)
      writer.member("title", "Fault profile of apns-mock")
      writer.member("$ref", SchemaWriter.reference(ProfileKey.schemaName))
      writer.objectMember("$defs") { writer in
        for definition in definitions {
          writer.name(definition.name)
          definition.bytes.withUnsafeBytes { writer.verbatim($0) }
        }
        SchemaWriter.writeScalars(to: &writer)
        schema.writeActions(to: &writer)
        schema.writeMatchers(to: &writer)
        SchemaWriter.writeSettings(to: &writer)
      }
    }
    return writer
  }
}

/// The syntax of a value in a profile file. Only the JSON Schema for editors uses it; the parser has its own, more
/// precise checks.
indirect enum ValueSyntax: Sendable {
  /// Any text.
  case text
  /// A name of lower-case letters, digits and hyphens.
  case name
  /// One of a fixed set of words.
  case word([String])
  /// A whole number.
  case whole(ClosedRange<Int>)
  /// A number above zero.
  case number
  /// A number from 0 to 1.
  case probability
  /// A duration, such as `500ms` or `1h30m`.
  case duration
  /// A point in time: `now`, `-24h`, RFC 3339, or `{ago: …}`.
  case time
  /// True or false.
  case flag
  /// Any scalar: text, number or boolean.
  case scalar
  /// A map or list, sent as JSON.
  case json
  /// A list.
  case list(ValueSyntax)
  /// A map with these keys.
  case map(any FileKey.Type)
  /// A map with arbitrary keys.
  case named(ValueSyntax)
  /// A map whose keys are APNs settings.
  case settings
  /// A requirement on a value of the traffic.
  case match(Matcher)
  /// A map with one action.
  case action
  /// Either of two shapes.
  case either(ValueSyntax, ValueSyntax)

  /// The kinds of match for a value of the traffic.
  enum Matcher: Hashable, Sendable {
    /// Equality, `prefix`, `glob`, `in`, `present`. The associated words are examples of values.
    case text([String])
    /// Equality, `in`, `gt`, `lt`, `present`.
    case number
    /// `gt`, `lt`, `present`.
    case duration
    /// A JSON scalar, with all kinds of match.
    case json
  }
}

/// The keys of one kind of map in a profile file. Parser and schema use the same keys and therefore cannot diverge.
protocol FileKey: RawRepresentable<String>, CaseIterable, Hashable, Sendable {
  /// The name of the map's definition in the schema.
  static var schemaName: String { get }
  /// The required keys.
  static var required: [Self] { get }
  /// The syntax of the key's value.
  var shape: ValueSyntax { get }
  /// A description of the key in one line.
  var about: String { get }
}

extension FileKey {
  static var required: [Self] { [] }

  /// All keys as written in files.
  static var names: [String] { allCases.map(\.rawValue) }
}
