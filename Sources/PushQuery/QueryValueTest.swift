package import APNSMockNotation

/// A requirement of a query on a value of a payload or a header field, whose type is not known in advance.
package enum QueryValueTest: Sendable {
  /// Any value.
  case present
  /// A text or, unless `isStringOnly`, a number.
  case text(TextPattern, orNumber: QueryNumber?, isStringOnly: Bool)
  /// A number within bounds.
  case within(QueryBounds)
  /// This JSON value, of the same type.
  case json(JSONValue)

  /// Creates a test; nil for a bound or a range with ends that are not numbers.
  package init?(_ value: QueryValue) {
    if value.isAnything {
      self = .present
    } else if let (comparison, text) = value.comparison {
      guard let number = QueryNumber(text) else { return nil }
      self = .within(QueryBounds(comparison, number))
    } else if let (low, high) = value.range, let low = QueryNumber(low), let high = QueryNumber(high) {
      guard let bounds = QueryBounds(from: low, to: high) else { return nil }
      self = .within(bounds)
    } else {
      self = .text(
        TextPattern(pieces: value.pieces, foldsCase: false),
        orNumber: value.isQuoted || value.pieces.count > 1 ? nil : QueryNumber(value.text),
        isStringOnly: value.isQuoted)
    }
  }

  /// Returns whether a value in a payload passes the test.
  package func holds(forPayload value: JSONValue) -> Bool {
    switch (self, value) {
    case (.present, _): true
    case (.text(let pattern, _, _), .text(let text)): pattern.matches(text)
    case (.text(let pattern, nil, isStringOnly: false), .number(let text)): pattern.matches(text)
    case (.text(_, let number?, isStringOnly: false), .number(let text)): QueryNumber(text) == number
    case (.text(let pattern, _, isStringOnly: false), .flag(let flag)): pattern.matches(String(flag))
    case (.text(let pattern, _, isStringOnly: false), .null): pattern.matches("null")
    case (.within(let bounds), .number(let text)): QueryNumber(text).map(bounds.contains) ?? false
    case (.json(let wanted), _): wanted.isSame(as: value)
    case (.text, _), (.within, _): false
    }
  }

  /// Returns whether the value of a header field passes the test.
  package func holds(forHeader value: UnsafeRawBufferPointer) -> Bool {
    switch self {
    case .present: true
    case .text(let pattern, _, _): pattern.matches(value)
    case .within(let bounds): QueryNumber(String(decoding: value, as: UTF8.self)).map(bounds.contains) ?? false
    // Header values are always texts.
    case .json(let wanted): wanted.isSame(as: .text(String(decoding: value, as: UTF8.self)))
    }
  }
}
