internal import APNSRules
internal import Notation

/// The terms of a rule's query about one field. At least one of the wanted values must match, if there are any, and
/// none of the negated ones.
public struct FieldQuery: Sendable, Equatable {
  /// A requirement on the field's value.
  enum Test: Sendable {
    case text(TextPattern)
    case number(ClosedRange<Int64>)
    case value(QueryValueTest)
  }

  /// The field's name as first written.
  let name: String
  /// The terms in the order written.
  private(set) var terms: [QueryTerm] = []
  private(set) var wanted: [Test] = []
  private(set) var unwanted: [Test] = []

  init(name: String) { self.name = name }

  /// Returns whether both have the same text.
  public static func == (one: FieldQuery, other: FieldQuery) -> Bool {
    one.name == other.name && one.terms == other.terms
  }

  mutating func add(_ term: QueryTerm, _ test: Test) throws(FilterError) {
    terms.append(term)
    if term.isNegated {
      unwanted.append(test)
    } else {
      wanted.append(test)
      let range = QueryValue.rangeInstead(
        of: wanted.compactMap { if case .number(let numbers) = $0 { numbers } else { nil } },
        wanted.compactMap { if case .value(.within(let bounds)) = $0 { bounds } else { nil } })
      if let range { throw FilterError(field: term.name, value: term.value.text, rangeInstead: range) }
    }
  }

  /// Returns whether the field meets the terms, given a function that evaluates each test.
  func holds(_ test: (Test) -> Bool) -> Bool {
    !unwanted.contains(where: test) && (wanted.isEmpty || wanted.contains(where: test))
  }

  /// Returns whether a text, or its absence, meets the terms.
  func holds(for text: String?) -> Bool {
    holds { test in
      guard case .text(let pattern) = test, let text else { return false }
      return pattern.matches(text)
    }
  }

  /// Returns whether a number, or its absence, meets the terms.
  func holds(for number: Int64?) -> Bool {
    holds { test in
      guard let number else { return false }
      return switch test {
      case .number(let range): range.contains(number)
      case .text(let pattern): pattern.matches(String(number))
      case .value: false
      }
    }
  }

  /// The wanted and unwanted values in words.
  var words: String {
    terms.map { ($0.isNegated ? "not " : "") + Explanation.quoted($0.value.text) }.joined(separator: " or ")
      .replacing(" or not ", with: ", not ")
  }
}
