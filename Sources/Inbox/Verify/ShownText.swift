internal import Faults
internal import Notation

/// Formats values for reports: short, on one line, with invisible characters escaped.
enum ShownText {
  /// The maximum length of a value, in Unicode scalars.
  static let limit = 80

  /// Returns a text in quotation marks.
  static func quoted(_ text: String) -> String { "\"" + escaped(text.unicodeScalars.prefix(limit), text) + "\"" }

  /// Returns a text without quotation marks.
  static func shortened(_ text: String) -> String { escaped(text.unicodeScalars.prefix(limit), text) }

  /// Returns a sentence on one line, at most four times the limit.
  static func line(_ text: String) -> String { escaped(text.unicodeScalars.prefix(4 * limit), text) }

  /// Returns a value: texts in quotation marks, everything else as JSON.
  static func value(_ value: JSONValue) -> String {
    if case .text(let text) = value { return quoted(text) }
    return shortened(json(value))
  }

  /// Returns two texts in quotation marks. If they are long, both start shortly before their first difference.
  static func quoted(_ one: String, _ other: String) -> (String, String) {
    let (first, second) = (Array(one.unicodeScalars), Array(other.unicodeScalars))
    guard max(first.count, second.count) > limit else { return (quoted(one), quoted(other)) }
    let same = zip(first, second).prefix { $0 == $1 }.count
    let start = same < limit - 20 ? 0 : same - 20
    func part(_ scalars: [Unicode.Scalar]) -> String {
      let rest = scalars.dropFirst(start)
      return "\"" + (start > 0 ? "…" : "") + rest.prefix(limit).map(escaped).joined()
        + (rest.count > limit ? "…" : "") + "\""
    }
    return (part(first), part(second))
  }

  /// Returns a list such as `seq 4711` or `seq 3, 4 and 5 more`.
  static func seqs(_ seqs: [Int], of count: Int? = nil) -> String {
    let shown = seqs.prefix(5)
    let rest = (count ?? seqs.count) - shown.count
    return "seq " + shown.map(String.init).joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
  }

  static func json(_ value: JSONValue) -> String {
    var writer = JSONWriter(capacity: 64)
    value.write(to: &writer)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  private static func escaped(_ scalars: String.UnicodeScalarView.SubSequence, _ whole: String) -> String {
    scalars.map(escaped).joined() + (scalars.endIndex < whole.unicodeScalars.endIndex ? "…" : "")
  }

  /// Escapes line breaks, and characters that are invisible or reverse the following text.
  private static func escaped(_ scalar: Unicode.Scalar) -> String {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator, .format: scalar.escaped(asASCII: true)
    case .spaceSeparator where scalar != " ": scalar.escaped(asASCII: true)
    default: String(Character(scalar))
    }
  }
}
