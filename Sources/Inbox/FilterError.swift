internal import Notation

/// Why a filter cannot be read.
public struct FilterError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The name of the field, as it was written.
  public let field: String
  /// The value it was to be compared with; nil if the name is what is wrong.
  public let value: String?
  /// What is wrong, with field and value, and where.
  public private(set) var message: String
  /// How to repair it.
  public let hint: String
  /// Where in the text of a query it is wrong; nil for a parameter.
  public private(set) var place: Place?

  /// A word in the text of a query.
  public struct Place: Sendable, Equatable {
    /// Its first character, counted from 1 in Unicode scalars.
    public let column: Int
    /// The word as it was written.
    public let word: String
  }

  /// An error about a value.
  init(field: String, value: String, hint: String) {
    self.field = field
    self.value = value
    message = "\(field) cannot be \"\(Self.shown(value))\""
    self.hint = hint
  }

  /// An error about something else.
  init(name: String, message: String, hint: String) {
    field = name
    value = nil
    self.message = message
    self.hint = hint
  }

  /// An error about a field that does not exist; the hint has a guess and the fields there are.
  ///
  /// - Parameter further: names that are allowed at this place besides the fields of a filter.
  init(unknownField field: String, further: [String]) {
    self.field = field
    value = nil
    let names = FilterField.names + further
    message = "there is no field \"\(Self.shown(field))\" to filter by"
    // Nobody's slip is as long as that, and looking for the nearest takes time.
    let guess =
      Spelling.nearest(to: String(field.prefix(40)), among: names + FilterField.aliases.map(\.name))
      .map { "did you mean \($0)? " } ?? ""
    let short = FilterField.aliases.map { "\($0.name) for \($0.field.rawValue)" }.joined(separator: ", ")
    hint = "\(guess)The fields are \(names.joined(separator: ", ")). In short: \(short)."
  }

  /// The same error, at this place.
  func at(column: Int, word: String) -> FilterError {
    var error = self
    let word = Self.shown(word)
    error.place = Place(column: column, word: word)
    error.message += " (column \(column) of the query: \(word))"
    return error
  }

  /// The beginning of a text that may be long.
  private static func shown(_ text: String) -> String {
    text.unicodeScalars.count > 80 ? String(text.unicodeScalars.prefix(80)) + "…" : text
  }

  /// What is wrong and how to repair it.
  public var description: String { "\(message). \(hint)" }
}
