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
  package init(field: String, value: String, hint: String) {
    self.field = field
    self.value = value
    message = "\(field) cannot be \"\(Self.shown(value))\""
    self.hint = hint
  }

  /// An error about something else.
  package init(name: String, message: String, hint: String) {
    field = name
    value = nil
    self.message = message
    self.hint = hint
  }

  /// The same error, at this place.
  package func at(column: Int, word: String) -> FilterError {
    var error = self
    let word = Self.shown(word)
    error.place = Place(column: column, word: word)
    error.message += " (column \(column) of the query: \(word))"
    return error
  }

  /// The beginning of a text that may be long.
  package static func shown(_ text: String) -> String {
    text.unicodeScalars.count > 80 ? String(text.unicodeScalars.prefix(80)) + "…" : text
  }

  /// What is wrong and how to repair it.
  public var description: String { "\(message). \(hint)" }
}
