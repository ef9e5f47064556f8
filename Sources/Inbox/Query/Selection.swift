internal import APNSRules
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
      throw FilterError(field: name, value: value, hint: "It is \(hint).")
    }
    return number
  }
}

/// Conditions on the push key, compared as numbers; as text only if a pattern contains `*`.
struct PushKeyConditions: Sendable {
  private let texts: TextConditions
  private let wanted: Set<PushKey>
  private let unwanted: Set<PushKey>
  private let hasStars: Bool

  init(_ texts: TextConditions) {
    self.texts = texts
    func keys(_ texts: [String?]) -> Set<PushKey> { Set(texts.compactMap { $0.flatMap { PushKey(text: $0) } }) }
    let (wanted, unwanted) = (texts.wanted.map(\.literal), texts.unwanted.map(\.literal))
    hasStars = (wanted + unwanted).contains(nil)
    // A literal that is not a valid key matches no record.
    (self.wanted, self.unwanted) = (keys(wanted), keys(unwanted))
  }

  /// Returns whether the conditions hold for a push key.
  @inline(__always)
  func hold(_ key: PushKey) -> Bool {
    if hasStars { return key.withText { texts.hold($0) } }
    return (texts.matchesMissingValue || wanted.contains(key)) && !unwanted.contains(key)
  }
}

/// A request for one page of the inbox.
package struct PageQuery: Sendable {
  /// The order of the records.
  package enum Order: String, CaseIterable, Sendable {
    /// Oldest first.
    case ascending = "asc"
    /// Newest first.
    case descending = "desc"
  }

  /// The number of records on a page if no limit is given.
  package static let defaultLimit = 50
  /// The maximum number of records on a page.
  package static let maxLimit = 1000

  /// The records to list.
  package var selection = Selection()
  /// The maximum number of records on the page, 0 to `maxLimit`.
  package var limit = PageQuery.defaultLimit
  /// The order of the records.
  package var order = Order.ascending
  /// The members shown for each record; nil for all.
  package var fields: QueryFields?

  /// Whether findings are shown.
  package var showsFindings: Bool { limit > 0 && fields?.asksForFindings != false }

  /// Creates a request for the first page of all records.
  package init() {}

  /// Creates a query from parameters: those of a selection, `limit`, `order` and `fields`.
  ///
  /// - Throws: `FilterError` for an unknown name or an invalid value.
  package init(
    _ parameters: some Sequence<(name: String, value: String)>, in context: FilterContext = FilterContext()
  ) throws(FilterError) {
    for (name, value) in parameters {
      switch name {
      case "limit":
        limit = try Selection.whole(
          name, value, in: 0...Self.maxLimit, hint: "a whole number from 0 to \(Self.maxLimit)")
      case "order":
        guard let order = Order(rawValue: value) else {
          throw FilterError(field: name, value: value, hint: "It is asc (oldest first) or desc (newest first).")
        }
        self.order = order
      case "fields":
        var fields = self.fields ?? QueryFields()
        try fields.add(value)
        self.fields = fields
      default:
        try selection.add(name: name, value: value, further: ["limit", "order", "fields"], in: context)
      }
    }
  }
}
