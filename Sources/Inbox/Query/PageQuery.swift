package import APNSMockNotation

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
  package var fields: RecordMembers?

  /// Whether all matches are counted even if a store has them, however long it takes.
  package var countsExactly = false

  /// The time after which the search for the records of the page ends although some were not examined, up to ten seconds;
  /// nil for no limit.
  package var timeLimit: Duration?

  /// The number of matches in a store up to which they are counted although the page is full.
  package static let quickCount = 10_000

  /// Whether findings are shown.
  package var showsFindings: Bool { limit > 0 && fields?.includesFindings != false }

  /// Creates a request for the first page of all records.
  package init() {}

  /// Creates a query from parameters: those of a selection, `limit`, `order`, `fields`, `count` and
  /// `within`.
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
          throw FilterError(field: name, value: value, hint: "Use asc (oldest first) or desc (newest first).")
        }
        self.order = order
      case "fields":
        var fields = self.fields ?? RecordMembers()
        try fields.add(value)
        self.fields = fields
      case "count":
        guard value == "exact" else { throw FilterError(field: name, value: value, hint: "Use exact, or omit it.") }
        countsExactly = true
      case "within":
        guard let duration = DurationFormat.duration(value), duration > .zero, duration <= .seconds(10) else {
          throw FilterError(field: name, value: value, hint: "Use a duration up to 10s, such as 500ms.")
        }
        timeLimit = duration
      default:
        try selection.add(
          name: name, value: value, additionalNames: ["limit", "order", "fields", "count", "within"], in: context)
      }
    }
  }
}
