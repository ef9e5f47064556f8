package import Notation

/// A selection of records: those that match a filter, between two cursors.
package struct Selection: Sendable {
  /// The conditions on the records.
  package var filter = Filter()
  /// Only records with a larger `seq` are selected.
  package var after = 0
  /// Only records with a smaller `seq` are selected.
  package var before = Int.max

  /// Creates a selection of all records.
  package init() {}

  /// Creates a selection from parameters: the fields of a filter, `after`, `before`, and `q` with the text of a
  /// query.
  ///
  /// - Throws: `FilterError` for an unknown name or an invalid value.
  package init(
    _ parameters: some Sequence<(name: String, value: String)>, in context: FilterContext = FilterContext()
  ) throws(FilterError) {
    for (name, value) in parameters { try add(name: name, value: value, in: context) }
  }

  /// Whether all records are selected, because there are no conditions.
  package var isEverything: Bool { filter.isEmpty && after == 0 && before == .max }

  /// Adds a condition from one parameter.
  ///
  /// - Parameter further: Names that are allowed in addition to those of a selection, for the error's hint.
  /// - Throws: `FilterError` for an unknown name or an invalid value.
  mutating func add(
    name: String, value: String, further: [String] = [], in context: FilterContext = FilterContext()
  ) throws(FilterError) {
    if name == "q" {
      try QueryText.read(value) { term throws(FilterError) in try add(term, in: context) }
    } else {
      try add(QueryTerm(name: name, value: value), further: ["q"] + further, in: context)
    }
  }

  private mutating func add(
    _ term: QueryTerm, further: [String] = [], in context: FilterContext
  ) throws(FilterError) {
    let seq = "a whole number from 0, the seq of a record"
    switch (term.name, term.isNegated) {
    case ("after", false): after = try Self.whole(term.name, term.value.text, in: 0...Int.max, hint: seq)
    case ("before", false): before = try Self.whole(term.name, term.value.text, in: 0...Int.max, hint: seq)
    default: try filter.add(term, further: further, in: context)
    }
  }

  /// Parses an integer in `range`.
  static func whole(
    _ name: String, _ value: String, in range: ClosedRange<Int>, hint: String
  ) throws(FilterError) -> Int {
    guard let number = Int(value), range.contains(number) else {
      throw FilterError(field: name, value: value, hint: "Use \(hint).")
    }
    return number
  }
}
