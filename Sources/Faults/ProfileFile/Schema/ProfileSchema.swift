import FaultModel
internal import APNSRules
internal import Notation

/// The JSON Schema (draft 2020-12) of profile files, generated from the syntax that the parser uses. Editors use it
/// for completion and validation; checks that involve several values are left to `profile lint`.
package enum ProfileSchema {
  /// The schema as JSON in one line.
  package static let text = String(decoding: written.bytes, as: UTF8.self)

  /// The path under which servers publish the schema.
  package static let path = "/schema/fault-profile.json"

  private static var written: JSONWriter {
    var schema = SchemaWriter()
    var definitions: [(name: String, bytes: [UInt8])] = []
    schema.require(Profile.syntax.description)
    schema.require(Condition.syntax.description)
    schema.require(MatchKey.description)
    for name in Action.Name.allCases {
      if case .map(let parameters) = name.syntax.form { schema.require(parameters) }
    }
    while let next = schema.nextRequired() {
      var writer = JSONWriter()
      schema.writeObject(next, to: &writer)
      definitions.append((next.name, writer.bytes))
    }
    var writer = JSONWriter(capacity: 65_536)
    writer.object { writer in
      writer.member("$schema", "https://json-schema.org/draft/2020-12/schema")
      writer.member("$id", path)
      writer.member("title", "Fault profile of apns-mock")
      writer.member("$ref", SchemaWriter.reference(Profile.syntax.name))
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
