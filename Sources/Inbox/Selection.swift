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

  /// The records that the names and values of a query say: the fields of a filter, `after`, `before`.
  ///
  /// - Throws: `FilterError` for a name that does not exist or a value that it cannot have.
  public init(_ parameters: some Sequence<(name: String, value: String)>) throws(FilterError) {
    for (name, value) in parameters { try add(name: name, value: value) }
  }

  /// Narrows it by one name and value.
  ///
  /// - Parameter further: names that the query may have besides those of a selection, for the error's hint.
  /// - Throws: `FilterError` for a name that does not exist or a value that it cannot have.
  mutating func add(name: String, value: String, further: [String] = []) throws(FilterError) {
    switch name {
    case "after":
      after = try Self.whole(name, value, in: 0...Int.max, hint: "a whole number from 0, the seq of a record")
    case "before":
      before = try Self.whole(name, value, in: 0...Int.max, hint: "a whole number from 0, the seq of a record")
    default: try filter.add(name: name, value: value, further: further)
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
