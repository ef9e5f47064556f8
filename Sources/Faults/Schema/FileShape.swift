/// The syntax of a value in a profile file. Only the JSON Schema for editors uses it; the parser has its own, more
/// precise checks.
indirect enum FileShape: Sendable {
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
  case list(FileShape)
  /// A map with these keys.
  case map(any FileKey.Type)
  /// A map with arbitrary keys.
  case named(FileShape)
  /// A map whose keys are APNs settings.
  case settings
  /// A requirement on a value of the traffic.
  case match(Matcher)
  /// A map with one action.
  case action
  /// Either of two shapes.
  case either(FileShape, FileShape)

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
  var shape: FileShape { get }
  /// A description of the key in one line.
  var about: String { get }
}

extension FileKey {
  static var required: [Self] { [] }

  /// All keys as written in files.
  static var names: [String] { allCases.map(\.rawValue) }
}
