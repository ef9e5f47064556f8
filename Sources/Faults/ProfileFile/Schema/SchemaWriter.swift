import FaultModel
internal import APNSRules
internal import Notation

/// Writes the parts of the schema and keeps track of maps that still need a definition.
struct SchemaWriter {
  private var required: [MapDescription] = []
  private var known: Set<String> = []

  /// Requests the definition of a map.
  mutating func require(_ map: MapDescription) {
    if known.insert(map.name).inserted { required.append(map) }
  }

  /// Removes and returns a map that has no definition yet.
  mutating func nextRequired() -> MapDescription? {
    required.isEmpty ? nil : required.removeFirst()
  }

  static func reference(_ name: String) -> String { "#/$defs/\(name)" }

  // MARK: - Maps

  /// Writes the definition of a map with known keys.
  mutating func writeObject(_ map: MapDescription, to writer: inout JSONWriter) {
    var parts: [(name: String, bytes: [UInt8])] = []
    for field in map.fields {
      var part = JSONWriter()
      part.object { part in
        let text = field.summary + (field.defaultText.map { " Default: \($0)." } ?? "")
        part.member("description", text.replacing("`", with: ""))
        writeMembers(of: field.form, to: &part)
      }
      parts.append((field.name, part.bytes))
    }
    let required = map.fields.filter(\.isRequired).map(\.name)
    writer.object { writer in
      // A map without required keys may be left empty: `close:`.
      writer.member("type", required.isEmpty ? ["object", "null"] : ["object"])
      writer.member("additionalProperties", false)
      if !required.isEmpty { writer.member("required", required) }
      writer.objectMember("properties") { writer in
        for part in parts {
          writer.name(part.name)
          part.bytes.withUnsafeBytes { writer.verbatim($0) }
        }
      }
    }
  }

  // MARK: - Values

  private mutating func write(_ form: ValueForm, to writer: inout JSONWriter) {
    writer.object { writeMembers(of: form, to: &$0) }
  }

  /// Writes the members that describe a value into an object that may have other members.
  private mutating func writeMembers(of form: ValueForm, to writer: inout JSONWriter) {
    switch form {
    case .text, .name, .probability, .duration, .flag, .scalar, .time:
      writer.member("$ref", Self.reference(form.scalarName))
    case .json: writer.member("type", ["object", "array"])
    case .word(let words):
      Self.writeAnyOf(to: &writer) { $0.member("enum", words) }
    case .integer(let range):
      Self.writeAnyOf(to: &writer) { writer in
        writer.member("type", "integer")
        writer.member("minimum", range.lowerBound)
        if range.upperBound < .max { writer.member("maximum", range.upperBound) }
      }
    case .number(let range):
      Self.writeAnyOf(to: &writer) { writer in
        writer.member("type", "number")
        writer.name(range.isMinimumExcluded ? "exclusiveMinimum" : "minimum")
        writer.shortNumber(range.minimum)
        writer.name("maximum")
        writer.shortNumber(range.maximum)
      }
    case .list(let element):
      writer.member("type", "array")
      writer.name("items")
      write(element, to: &writer)
    case .map(let map):
      require(map)
      writer.member("$ref", Self.reference(map.name))
    case .named(let element):
      writer.member("type", ["object", "null"])
      writer.name("additionalProperties")
      write(element, to: &writer)
    case .settings: writer.member("$ref", Self.reference("apns"))
    case .match(.text(let words)) where !words.isEmpty:
      writer.member("examples", words)
      writer.member("$ref", Self.reference(ValueForm.Matcher.text([]).name))
    case .match(let matcher): writer.member("$ref", Self.reference(matcher.name))
    case .condition: writer.member("$ref", Self.reference(Condition.syntax.name))
    case .action: writer.member("$ref", Self.reference("action"))
    case .choice: writer.member("$ref", Self.reference("choice"))
    case .either(let one, let other):
      // One closure for both would borrow `self` twice.
      var parts: [[UInt8]] = []
      for form in [one, other] {
        var part = JSONWriter()
        write(form, to: &part)
        parts.append(part.bytes)
      }
      writer.arrayMember("anyOf") { writer in
        for part in parts { part.withUnsafeBytes { writer.verbatim($0) } }
      }
    }
  }

  /// Writes a value or a reference to a parameter.
  private static func writeAnyOf(to writer: inout JSONWriter, _ members: (inout JSONWriter) -> Void) {
    writer.arrayMember("anyOf") { writer in
      writer.object(members)
      writer.object { $0.member("$ref", reference("parameter_reference")) }
    }
  }

  // MARK: - Other definitions

  /// Writes the actions: each as a map with only the action, and as an alternative of `choose` with an optional
  /// weight.
  mutating func writeActions(to writer: inout JSONWriter) {
    for (definition, hasWeight) in [("action", false), ("choice", true)] {
      var parts: [(name: String, bytes: [UInt8])] = []
      for name in Action.Name.allCases {
        var part = JSONWriter()
        part.object { part in
          part.member("description", name.summary.replacing("`", with: ""))
          writeMembers(of: name.syntax.form, to: &part)
          if name == .choose { part.member("minItems", 1) }
        }
        parts.append((name.rawValue, part.bytes))
      }
      if hasWeight {
        var part = JSONWriter()
        part.object { part in
          part.member("description", "The probability relative to the other weights. Default: 1.")
          writeMembers(of: ProfileParser.weightSyntax.form, to: &part)
        }
        parts.append((ProfileParser.weight, part.bytes))
      }
      writer.objectMember(definition) { writer in
        writer.member("type", "object")
        writer.member("additionalProperties", false)
        writer.objectMember("properties") { writer in
          for part in parts {
            writer.name(part.name)
            part.bytes.withUnsafeBytes { writer.verbatim($0) }
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
    let matchers: [(ValueForm.Matcher, keys: [MatchKey])] = [
      Condition.Subject.topic, .address, .size, .tokenAge, .payload(pointer: ""),
    ].map { ($0.matcher, $0.matchKeys) }
    for (matcher, keys) in matchers {
      writer.objectMember(matcher.name) { writer in
        writer.arrayMember("anyOf") { writer in
          if let types = matcher.types {
            writer.object { $0.member("type", types) }
          }
          writer.object { writer in
            writer.member("type", "object")
            writer.member("minProperties", 1)
            writer.member("additionalProperties", false)
            writer.objectMember("properties") { writer in
              for key in keys {
                writer.objectMember(key.rawValue) { writer in
                  writer.member("$ref", Self.reference(MatchKey.description.name) + "/properties/\(key.rawValue)")
                }
              }
            }
          }
        }
      }
    }
  }

  /// Writes the definition of APNs settings, whose values are only described in words.
  static func writeSettings(to writer: inout JSONWriter) {
    writer.objectMember("apns") { writer in
      writer.member("type", ["object", "null"])
      writer.member("additionalProperties", false)
      writer.objectMember("properties") { writer in
        for setting in APNSSetting.allCases {
          writer.objectMember(setting.rawValue) { writer in
            writer.member("description", setting.summary.replacing("`", with: ""))
            writer.member("$ref", reference(ValueForm.scalar.scalarName))
          }
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
    define(ValueForm.text.scalarName) { $0.member("type", "string") }
    define(ValueForm.name.scalarName) { writer in
      writer.member("type", "string")
      writer.member("pattern", "^[a-z0-9][a-z0-9-]{0,63}$")
    }
    define(ValueForm.duration(isPositive: false).scalarName) { writer in
      writer.member("type", "string")
      writer.member("pattern", #"^(-?([0-9.]+(ns|us|µs|ms|s|m|h|d))+|\$\{[a-z0-9_]{1,64}\})$"#)
      writer.member("examples", ["500ms", "5s", "1h30m"])
    }
    define(ValueForm.time.scalarName) { writer in
      writer.member("type", "string")
      writer.member("examples", ["now", "-24h", "2026-01-31T12:00:00Z"])
    }
    define(ValueForm.scalar.scalarName) { $0.member("type", ["string", "number", "boolean"]) }
    define(ValueForm.probability.scalarName) { writer in
      writeAnyOf(to: &writer) { writer in
        writer.member("type", "number")
        writer.member("minimum", 0)
        writer.member("maximum", 1)
      }
    }
    define(ValueForm.flag.scalarName) { writer in
      writeAnyOf(to: &writer) { $0.member("type", "boolean") }
    }
  }
}

extension ValueForm {
  /// The name of the scalar's definition in the schema.
  fileprivate var scalarName: String {
    switch self {
    case .name: "name"
    case .probability: "probability_value"
    case .duration: "duration"
    case .time: "point_in_time"
    case .flag: "flag"
    case .scalar: "scalar"
    default: "text"
    }
  }
}

extension ValueForm.Matcher {
  /// The name of the definition in the schema.
  fileprivate var name: String {
    switch self {
    case .text: "match_text"
    case .address: "match_address"
    case .integer, .size: "match_number"
    case .duration: "match_duration"
    case .json: "match_json"
    }
  }

  /// The JSON types of a value to compare with; nil if there is none.
  fileprivate var types: [String]? {
    switch self {
    case .text, .address: ["string"]
    case .integer, .size: ["integer", "string"]
    case .json: ["string", "number", "boolean"]
    case .duration: nil
    }
  }
}

extension APNSSetting {
  /// A description in one sentence of Markdown.
  var summary: String {
    switch self {
    case .tokenMaxAge: "The maximum age of a provider token."
    case .tokenFuture: "How far in the future `iat` may be."
    case .expiredTokenCloses:
      "Whether a connection gets 403 `ExpiredProviderToken` for every request after the first one, also with a new token."
    case .tokenUpdateInterval: "How long a connection must use a provider token before the next one."
    case .freeTokenUpdates: "The number of faster changes before 429 `TooManyProviderTokenUpdates`."
    case .tokenUpdateScope: "What the changes are counted for."
    case .idleTimeout: "The idle time after which a connection is closed with GOAWAY `IdleTimeout`."
    case .firstStreams: "MAX_CONCURRENT_STREAMS of the first SETTINGS frame in token mode."
    case .maxStreams:
      "MAX_CONCURRENT_STREAMS after the first accepted provider token, and in certificate mode."
    case .throttleOn4xx: "Whether a rejection reduces MAX_CONCURRENT_STREAMS to 1 until the next accepted push."
    case .environmentKeyReason: "The reason for a key of the other environment."
    case .errorContentType: "Whether error responses have `content-type: application/json`."
    case .deviceRate: "The number of pushes to one device token in a time before 429 `TooManyRequests`."
    case .errorsBeforeGoaway: "The number of rejected pushes after which a connection is closed with GOAWAY."
    case .unregisteredAfter: "How long pushes to an unregistered device are still accepted before 410 `Unregistered`."
    case .unregisteredDelay:
      "The time between the first push accepted after an app was removed from a registered device and 410 `Unregistered`."
    case .onlineQueue:
      "Whether a push to an online device is lost if the next one arrives before the device has acknowledged it: 1 or off."
    case .acknowledgeAfter: "The time in which an online device acknowledges a push, with `online_queue`."
    case .backgroundBudget: "The number of background pushes that an app on a registered device handles in a time."
    case .liveActivityBudget:
      "The number of Live Activity updates with priority 10 that an app on a registered device handles in a time."
    case .pushToStartBudget: "The number of Live Activities that pushes can start on a registered device in a time."
    case .abandonedAfter: "The time without a further attempt after which a push has the finding `abandoned`."
    }
  }
}
