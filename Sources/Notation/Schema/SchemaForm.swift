/// The form of a value, for the JSON Schema and the reference page.
package indirect enum SchemaForm: Sendable {
  /// Any text; the pattern is a regular expression, the examples are values among others.
  case text(pattern: String? = nil, examples: [String] = [])
  /// One of a fixed set of words.
  case word([String])
  case integer(ClosedRange<Int>)
  case number(NumberRange)
  /// A number of bytes, with or without a unit, such as `4096` or `4K`.
  case size
  /// A duration, such as `500ms` or `1h30m`; if `isPositive`, longer than zero.
  case duration(isPositive: Bool)
  /// A point in time (RFC 3339).
  case time
  case null
  case flag
  /// Any scalar: text, number or boolean.
  case scalar
  /// A map or list, sent as JSON.
  case json
  case list(SchemaForm)
  case map(MapDescription)
  /// A map with arbitrary keys.
  case named(SchemaForm)
  /// A value described elsewhere: a definition of this name in the JSON Schema.
  case reference(String)
  case either(SchemaForm, SchemaForm)
}

/// The allowed values of a number.
package struct NumberRange: Sendable {
  package let minimum: Double
  /// Whether the minimum itself is not allowed.
  package let isMinimumExcluded: Bool
  package let maximum: Double

  package static func above(_ minimum: Double, to maximum: Double = 1e12) -> NumberRange {
    NumberRange(minimum: minimum, isMinimumExcluded: true, maximum: maximum)
  }

  package static func from(_ minimum: Double, to maximum: Double = 1e12) -> NumberRange {
    NumberRange(minimum: minimum, isMinimumExcluded: false, maximum: maximum)
  }

  func contains(_ value: Double) -> Bool {
    (isMinimumExcluded ? value > minimum : value >= minimum) && value <= maximum
  }
}

/// A description of a map with known keys.
package struct MapDescription: Sendable {
  /// The name of the map's definition in the JSON Schema.
  package let name: String
  package let fields: [FieldDescription]

  package init(name: String, fields: [FieldDescription]) {
    self.name = name
    self.fields = fields
  }

  /// Returns the description without a key.
  package func removing(_ name: String) -> MapDescription {
    MapDescription(name: self.name, fields: fields.filter { $0.name != name })
  }
}

/// A description of a key.
package struct FieldDescription: Sendable {
  package let name: String
  package let form: SchemaForm
  package let isRequired: Bool
  /// The default in Markdown; nil for none.
  package let defaultText: String?
  /// A sentence in Markdown.
  package let summary: String

  package init(_ name: String, _ form: SchemaForm, isRequired: Bool = false, default: String? = nil, _ summary: String)
  {
    self.name = name
    self.form = form
    self.isRequired = isRequired
    self.defaultText = `default`
    self.summary = summary
  }
}
