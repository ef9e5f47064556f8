import FaultModel
internal import APNSRules
internal import Notation

/// Writes the parts of the schema and keeps track of maps that still need a definition.
struct SchemaWriter {
  private var needed: [any FileKey.Type] = []
  private var known: Set<String> = []

  /// Requests the definition of a map.
  mutating func need(_ keys: any FileKey.Type) {
    if known.insert(keys.schemaName).inserted { needed.append(keys) }
  }

  /// Removes and returns a map that has no definition yet.
  mutating func nextNeeded() -> (any FileKey.Type)? {
    needed.isEmpty ? nil : needed.removeFirst()
  }

  static func reference(_ name: String) -> String { "#/$defs/\(name)" }

  // MARK: - Maps

  /// Writes the definition of a map with known keys.
  mutating func writeObject(_ keys: any FileKey.Type, to writer: inout JSONWriter) {
    write(keys, to: &writer)
  }

  private mutating func write<Key: FileKey>(_ keys: Key.Type, to writer: inout JSONWriter) {
    // Rules in files have no `ttl`.
    let keys = Key.allCases.filter { $0 as? RuleKey != .ttl }
    var parts: [(key: Key, bytes: [UInt8])] = []
    for key in keys {
      var part = JSONWriter()
      part.object { part in
        part.member("description", key.about)
        writeMembers(of: key.shape, to: &part)
      }
      parts.append((key, part.bytes))
    }
    writer.object { writer in
      // A map without required keys may be left empty: `close:`.
      writer.member("type", Key.required.isEmpty ? ["object", "null"] : ["object"])
      writer.member("additionalProperties", false)
      if !Key.required.isEmpty { writer.member("required", Key.required.map(\.rawValue)) }
      writer.objectMember("properties") { writer in
        for part in parts {
          writer.name(part.key.rawValue)
          part.bytes.withUnsafeBytes { writer.verbatim($0) }
        }
      }
    }
  }

  // MARK: - Shapes

  private mutating func write(_ shape: ValueSyntax, to writer: inout JSONWriter) {
    writer.object { writeMembers(of: shape, to: &$0) }
  }

  /// Writes the members that describe a value into an object that may have other members.
  private mutating func writeMembers(of shape: ValueSyntax, to writer: inout JSONWriter) {
    switch shape {
    case .text, .name, .probability, .duration, .flag, .scalar, .time, .number:
      writer.member("$ref", Self.reference(shape.scalarName))
    case .json: writer.member("type", ["object", "array"])
    case .word(let words):
      writer.arrayMember("anyOf") { writer in
        writer.object { $0.member("enum", words) }
        writer.object { $0.member("$ref", Self.reference("parameter_reference")) }
      }
    case .whole(let range):
      writer.arrayMember("anyOf") { writer in
        writer.object { writer in
          writer.member("type", "integer")
          writer.member("minimum", range.lowerBound)
          if range.upperBound < .max { writer.member("maximum", range.upperBound) }
        }
        writer.object { $0.member("$ref", Self.reference("parameter_reference")) }
      }
    case .list(let element):
      writer.member("type", "array")
      writer.name("items")
      write(element, to: &writer)
    case .map(let keys):
      need(keys)
      writer.member("$ref", Self.reference(keys.schemaName))
    case .named(let element):
      writer.member("type", ["object", "null"])
      writer.name("additionalProperties")
      write(element, to: &writer)
    case .settings: writer.member("$ref", Self.reference("apns"))
    case .match(.text(let words)) where !words.isEmpty:
      writer.member("examples", words)
      writer.member("$ref", Self.reference(ValueSyntax.Matcher.text([]).name))
    case .match(let matcher): writer.member("$ref", Self.reference(matcher.name))
    case .action: writer.member("$ref", Self.reference("action"))
    case .either(let one, let other):
      // One closure for both would borrow `self` twice.
      var parts: [[UInt8]] = []
      for shape in [one, other] {
        var part = JSONWriter()
        write(shape, to: &part)
        parts.append(part.bytes)
      }
      writer.arrayMember("anyOf") { writer in
        for part in parts { part.withUnsafeBytes { writer.verbatim($0) } }
      }
    }
  }

  // MARK: - Other definitions

  /// Writes the actions: each as a map with only the action, and as an alternative of `choose` with an optional
  /// weight.
  mutating func writeActions(to writer: inout JSONWriter) {
    for (definition, hasWeight) in [("action", false), ("choice", true)] {
      writer.objectMember(definition) { writer in
        writer.member("type", "object")
        writer.member("additionalProperties", false)
        writer.objectMember("properties") { writer in
          for name in Action.Name.allCases {
            writer.objectMember(name.rawValue) { writer in
              writer.member("description", name.about)
              if let keys = name.keys {
                writer.member("$ref", Self.reference(keys.schemaName))
              } else {
                writer.member("type", "array")
                writer.member("minItems", 1)
                writer.objectMember("items") { $0.member("$ref", Self.reference("choice")) }
              }
            }
          }
          if hasWeight {
            writer.objectMember(ProfileParser.weight) { writer in
              writer.member("description", "The probability relative to the other weights. Default: 1.")
              writer.member("$ref", Self.reference(ValueSyntax.number.scalarName))
            }
          }
        }
        writer.arrayMember("oneOf") { writer in
          for name in Action.Name.allCases { writer.object { $0.member("required", [name.rawValue]) } }
        }
      }
    }
  }

  /// Writes the definitions of requirements on values.
  func writeMatchers(to writer: inout JSONWriter) {
    let matchers: [(ValueSyntax.Matcher, forms: [MatchKey])] = [
      (.text([]), Condition.Subject.topic.forms), (.number, Condition.Subject.size.forms),
      (.duration, Condition.Subject.tokenAge.forms), (.json, MatchKey.allCases),
    ]
    for (matcher, forms) in matchers {
      writer.objectMember(matcher.name) { writer in
        writer.arrayMember("anyOf") { writer in
          if matcher != .duration {
            writer.object { writer in
              writer.member("type", matcher.types)
            }
          }
          writer.object { writer in
            writer.member("type", "object")
            writer.member("minProperties", 1)
            writer.member("additionalProperties", false)
            writer.objectMember("properties") { writer in
              for form in forms {
                writer.objectMember(form.rawValue) { writer in
                  writer.member("$ref", Self.reference(MatchKey.schemaName) + "/properties/\(form.rawValue)")
                }
              }
            }
          }
        }
      }
    }
  }

  /// Writes the definition of APNs settings, whose values are not described further.
  static func writeSettings(to writer: inout JSONWriter) {
    writer.objectMember("apns") { writer in
      writer.member("type", ["object", "null"])
      writer.member("additionalProperties", false)
      writer.objectMember("properties") { writer in
        for setting in APNSSetting.allCases {
          writer.objectMember(setting.rawValue) { $0.member("$ref", reference(ValueSyntax.scalar.scalarName)) }
        }
      }
    }
  }

  /// Writes the definitions of scalars.
  static func writeScalars(to writer: inout JSONWriter) {
    func define(_ name: String, _ members: (inout JSONWriter) -> Void) {
      writer.objectMember(name, members)
    }
    define("parameter_reference") { writer in
      writer.member("type", "string")
      writer.member("pattern", #"^\$\{[a-z0-9_]{1,64}\}$"#)
    }
    define(ValueSyntax.text.scalarName) { $0.member("type", "string") }
    define(ValueSyntax.name.scalarName) { writer in
      writer.member("type", "string")
      writer.member("pattern", "^[a-z0-9][a-z0-9-]{0,63}$")
    }
    define(ValueSyntax.duration.scalarName) { writer in
      writer.member("type", "string")
      writer.member("pattern", #"^(-?([0-9.]+(ns|us|µs|ms|s|m|h|d))+|\$\{[a-z0-9_]{1,64}\})$"#)
      writer.member("examples", ["500ms", "5s", "1h30m"])
    }
    define(ValueSyntax.time.scalarName) { writer in
      writer.arrayMember("anyOf") { writer in
        writer.object { writer in
          writer.member("type", "string")
          writer.member("examples", ["now", "-24h", "2026-01-31T12:00:00Z"])
        }
        writer.object { $0.member("$ref", reference(AgoKey.schemaName)) }
      }
    }
    define(ValueSyntax.scalar.scalarName) { $0.member("type", ["string", "number", "boolean"]) }
    for (shape, bounds) in [(ValueSyntax.number, nil), (.probability, (0, 1))] as [(ValueSyntax, (Int, Int)?)] {
      define(shape.scalarName) { writer in
        writer.arrayMember("anyOf") { writer in
          writer.object { writer in
            writer.member("type", "number")
            writer.member("minimum", bounds?.0 ?? 0)
            if let bounds { writer.member("maximum", bounds.1) }
          }
          writer.object { $0.member("$ref", reference("parameter_reference")) }
        }
      }
    }
    define(ValueSyntax.flag.scalarName) { writer in
      writer.arrayMember("anyOf") { writer in
        writer.object { $0.member("type", "boolean") }
        writer.object { $0.member("$ref", reference("parameter_reference")) }
      }
    }
  }
}

extension ValueSyntax {
  /// The name of the scalar's definition in the schema.
  fileprivate var scalarName: String {
    switch self {
    case .name: "name"
    case .number: "number"
    case .probability: "likelihood"
    case .duration: "duration"
    case .time: "point_in_time"
    case .flag: "flag"
    case .scalar: "scalar"
    default: "text"
    }
  }
}

extension ValueSyntax.Matcher {
  /// The name of the definition in the schema.
  fileprivate var name: String {
    switch self {
    case .text: "match_text"
    case .number: "match_number"
    case .duration: "match_duration"
    case .json: "match_json"
    }
  }

  /// The JSON types of a value to compare with.
  fileprivate var types: [String] {
    switch self {
    case .text, .duration: ["string"]
    case .number: ["integer", "string"]
    case .json: ["string", "number", "boolean"]
    }
  }
}
