/// An error in a filter.
package struct FilterError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The name of the field as written.
  package let field: String
  /// The invalid value; nil if the error is not about a value.
  package let value: String?
  /// The description of the error, with field, value and position.
  package private(set) var message: String
  /// The fix.
  package let hint: String
  /// The position in the text of a query; nil for a parameter.
  package private(set) var place: Place?

  /// The position of a word in the text of a query.
  package struct Place: Sendable, Equatable {
    /// The position of the first character, from 1 in Unicode scalars.
    package let column: Int
    /// The word as written.
    package let word: String
  }

  /// Creates an error about a value.
  package init(field: String, value: String, hint: String) {
    self.field = field
    self.value = value
    message = "\(field) cannot be \"\(Self.shown(value))\""
    self.hint = hint
  }

  /// Creates an error that is not about a value.
  package init(name: String, message: String, hint: String) {
    field = name
    value = nil
    self.message = message
    self.hint = hint
  }

  /// Returns the same error with a position.
  package func at(column: Int, word: String) -> FilterError {
    var error = self
    let word = Self.shown(word)
    error.place = Place(column: column, word: word)
    error.message += " (column \(column) of the query: \(word))"
    return error
  }

  /// Returns the text, cut to 80 Unicode scalars.
  package static func shown(_ text: String) -> String {
    text.unicodeScalars.count > 80 ? String(text.unicodeScalars.prefix(80)) + "…" : text
  }

  /// The error and the fix.
  package var description: String { "\(message). \(hint)" }
}
