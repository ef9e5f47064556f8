public import Notation

/// A request for one page of the inbox.
public struct PageQuery: Sendable {
  /// In which order records are listed.
  public enum Order: String, CaseIterable, Sendable {
    /// Oldest first.
    case ascending = "asc"
    /// Newest first.
    case descending = "desc"
  }

  /// How many records a page has unless something else is said.
  public static let defaultLimit = 50
  /// How many records a page can have.
  public static let maxLimit = 1000

  /// Which records are meant.
  public var selection = Selection()
  /// How many records at most, 0 to `maxLimit`.
  public var limit = PageQuery.defaultLimit
  /// Which ones come first.
  public var order = Order.ascending
  /// Which members of each record are shown; nil for all.
  public var fields: QueryFields?

  /// Whether findings are among what is shown.
  public var showsFindings: Bool { limit > 0 && fields?.asksForFindings != false }

  /// The first page of everything.
  public init() {}

  /// A query from parameters: those of a selection, `limit`, `order`, `fields`.
  ///
  /// - Throws: `FilterError` for a name that does not exist or a value that it cannot have.
  public init(
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
