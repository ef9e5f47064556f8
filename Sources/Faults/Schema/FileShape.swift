/// What a value of a profile file looks like. The parser judges values by itself, and better; this is what an editor is
/// told about them.
indirect enum FileShape: Sendable {
  /// Any text.
  case text
  /// A name of lower-case letters, digits and hyphens.
  case name
  /// One of some words.
  case word([String])
  /// A whole number.
  case whole(ClosedRange<Int>)
  /// A number above zero.
  case number
  /// From 0 to 1.
  case probability
  /// `500ms`, `1h30m`.
  case duration
  /// A point in time: `now`, `-24h`, RFC 3339, or how long ago.
  case time
  /// True or false.
  case flag
  /// Text, number, truth value: whatever one word can be.
  case scalar
  /// Any JSON value in a map, written as JSON.
  case json
  /// A list.
  case list(FileShape)
  /// A map with these keys.
  case map(any FileKey.Type)
  /// A map with keys of the writer's choice.
  case named(FileShape)
  /// A map whose keys are settings of APNs.
  case settings
  /// What a value of the traffic must be, as `Matcher` says.
  case match(Matcher)
  /// A map with one action.
  case action
  /// One or the other.
  case either(FileShape, FileShape)

  /// What can be asked of a value of the traffic.
  enum Matcher: Hashable, Sendable {
    /// Equality, `prefix`, `glob`, `in`, `present`; the words are those that can come, empty for any.
    case text([String])
    /// Equality, `in`, `gt`, `lt`, `present`.
    case number
    /// `gt`, `lt`, `present`.
    case duration
    /// A scalar of JSON: everything that text and number can.
    case json
  }
}

/// The keys of one kind of map in a profile file. The parser takes values out of a map by these, so a key that the schema
/// has and the parser does not, or the other way round, cannot be.
protocol FileKey: RawRepresentable<String>, CaseIterable, Hashable, Sendable {
  /// What such a map is called in the schema.
  static var schemaName: String { get }
  /// The keys that must be there.
  static var required: [Self] { get }
  /// What its value looks like.
  var shape: FileShape { get }
  /// What it is for, in one line.
  var about: String { get }
}

extension FileKey {
  static var required: [Self] { [] }

  /// All of them as they are written.
  static var names: [String] { allCases.map(\.rawValue) }
}
