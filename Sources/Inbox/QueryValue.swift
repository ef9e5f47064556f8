/// What a field is compared with, as it was written in a parameter or in a query.
struct QueryValue {
  /// Its characters, without quotation marks and escapes.
  let text: String
  /// What stands between its stars; a star with a backslash before it is a character like others. One piece alone is a
  /// value without a star.
  let pieces: [String]
  /// Whether some of it stood in quotation marks.
  let isQuoted: Bool
  /// Whether it begins with one: then its first character is no operator.
  let startsQuoted: Bool

  init(text: String, pieces: [String], isQuoted: Bool, startsQuoted: Bool) {
    self.text = text
    self.pieces = pieces
    self.isQuoted = isQuoted
    self.startsQuoted = startsQuoted
  }

  /// The value of a parameter: it has neither quotation marks nor escapes.
  init(parameter text: some StringProtocol) {
    self.init(
      text: String(text),
      pieces: text.split(separator: "*" as Character, omittingEmptySubsequences: false).map { String($0) },
      isQuoted: false, startsQuoted: false)
  }

  /// Whether it is nothing but stars.
  var isAnything: Bool { pieces.count > 1 && pieces.allSatisfy(\.isEmpty) }

  /// How a number compares.
  enum Comparison: String, CaseIterable {
    // The longer ones first, because each begins with a shorter one.
    case atLeast = ">="
    case atMost = "<="
    case above = ">"
    case below = "<"
  }

  /// `>3`, `>=3`, `<3`, `<=3`: the comparison and the number, whatever that is; nil for another value.
  var comparison: (Comparison, Substring)? {
    guard !startsQuoted, let comparison = Comparison.allCases.first(where: { text.hasPrefix($0.rawValue) }) else {
      return nil
    }
    return (comparison, text.dropFirst(comparison.rawValue.count))
  }

  /// `3..9`: both ends, whatever they are; nil for another value.
  var range: (Substring, Substring)? {
    guard !isQuoted, let dots = text.firstRange(of: "..") else { return nil }
    return (text[..<dots.lowerBound], text[dots.upperBound...])
  }
}
