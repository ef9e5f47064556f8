public import Notation

/// Some records of the inbox: those that a filter matches, between two cursors.
public struct Selection: Sendable {
  /// Which records are meant.
  public var filter = Filter()
  /// Only records with a larger number.
  public var after = 0
  /// Only records with a smaller number.
  public var before = Int.max

  /// All records.
  public init() {}

  /// The records that parameters say: the fields of a filter, `after`, `before`, and `q`, the text of a query.
  ///
  /// - Throws: `FilterError` for a name that does not exist or a value that it cannot have.
  public init(
    _ parameters: some Sequence<(name: String, value: String)>, in context: FilterContext = FilterContext()
  ) throws(FilterError) {
    for (name, value) in parameters { try add(name: name, value: value, in: context) }
  }

  /// Whether these are all records, because nothing was said.
  public var isEverything: Bool { filter.isEmpty && after == 0 && before == .max }

  /// Narrows it by one parameter.
  ///
  /// - Parameter further: names that there may be besides those of a selection, for the error's hint.
  /// - Throws: `FilterError` for a name that does not exist or a value that it cannot have.
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

  /// The whole number that `value` says.
  static func whole(
    _ name: String, _ value: String, in range: ClosedRange<Int>, hint: String
  ) throws(FilterError) -> Int {
    guard let number = Int(value), range.contains(number) else {
      throw FilterError(field: name, value: value, hint: "It is \(hint).")
    }
    return number
  }
}
