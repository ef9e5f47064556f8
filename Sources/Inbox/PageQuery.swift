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
  public var filter = Filter()
  /// Only records with a larger number.
  public var after = 0
  /// Only records with a smaller number.
  public var before = Int.max
  /// How many records at most, 0 to `maxLimit`.
  public var limit = PageQuery.defaultLimit
  /// Which ones come first.
  public var order = Order.ascending

  /// The first page of everything.
  public init() {}

  /// A query from the names and values of a query string: the fields of a filter, `after`, `before`, `limit`, `order`.
  ///
  /// - Throws: `FilterError` for a name that does not exist or a value that it cannot have.
  public init(_ parameters: some Sequence<(name: String, value: String)>) throws(FilterError) {
    for (name, value) in parameters {
      switch name {
      case "after": after = try Self.whole(name, value, in: 0...Int.max)
      case "before": before = try Self.whole(name, value, in: 0...Int.max)
      case "limit": limit = try Self.whole(name, value, in: 0...Self.maxLimit)
      case "order":
        guard let order = Order(rawValue: value) else {
          throw FilterError(
            field: name, value: value, message: "order cannot be \"\(value)\"",
            hint: "It is asc (oldest first) or desc (newest first).")
        }
        self.order = order
      default:
        do {
          try filter.add(name: name, value: value)
        } catch {
          throw error.value == nil ? FilterError(unknownField: error.field, further: ["limit", "order"]) : error
        }
      }
    }
  }

  private static func whole(_ name: String, _ value: String, in range: ClosedRange<Int>) throws(FilterError) -> Int {
    guard let number = Int(value), range.contains(number) else {
      let limits = range.upperBound == .max ? "from 0" : "from 0 to \(range.upperBound)"
      throw FilterError(
        field: name, value: value, message: "\(name) cannot be \"\(value)\"",
        hint: "It is a whole number \(limits)\(name == "limit" ? "" : ", the seq of a record").")
    }
    return number
  }
}
