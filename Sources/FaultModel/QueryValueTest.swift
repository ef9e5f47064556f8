internal import HTTPMessage
package import Notation

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
  package func holds(forPayload value: JSONPointer.Value) -> Bool {
    switch (self, value) {
    case (.present, _): true
    case (.text(let pattern, _, _), .string(let text)): pattern.matches(text)
    case (.text(let pattern, nil, isStringOnly: false), .number(let text)): pattern.matches(text)
    case (.text(_, let number?, isStringOnly: false), .number(let text)): QueryNumber(text) == number
    case (.text(let pattern, _, isStringOnly: false), .word(let text)): pattern.matches(text)
    case (.within(let bounds), .number(let text)): QueryNumber(text).map(bounds.contains) ?? false
    case (.json(let wanted), _): wanted.isSame(as: JSONValue(value))
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

extension TextPattern {
  /// Returns whether the name or the value of any packed header field matches.
  package func matchesField(in packed: UnsafeRawBufferPointer) -> Bool {
    var isFound = false
    HeaderList.forEachField(in: packed) { name, value in
      isFound =
        isFound || matches(UnsafeRawBufferPointer(rebasing: packed[value.indices]))
        || matches(UnsafeRawBufferPointer(rebasing: packed[name.indices]))
    }
    return isFound
  }
}

extension JSONPointer {
  /// The maximum number of names in a query's pointer. Payloads have a handful of levels, and each name costs a scan
  /// of the payload.
  package static let maxQueryDepth = 32

  /// Parses the pointer of a query field `payload./…`.
  ///
  /// - Throws: `FilterError` for a text that is not a pointer or has more than `maxQueryDepth` names.
  package init(query text: Substring, field: String, allowsRoot: Bool = false) throws(FilterError) {
    guard text.hasPrefix("/") || allowsRoot, let pointer = JSONPointer(String(text)) else {
      throw FilterError(
        name: field, message: "\"\(text)\" is not a JSON pointer",
        hint: "It is / before each name, as in payload./aps/alert/title; ~1 is a slash in a name, ~0 a tilde.")
    }
    guard pointer.depth <= Self.maxQueryDepth else {
      throw FilterError(
        name: field, message: "the JSON pointer has \(pointer.depth) names",
        hint: "At most \(Self.maxQueryDepth) are looked for.")
    }
    self = pointer
  }
}
