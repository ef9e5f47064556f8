public import Notation

/// What somebody waits for: a number of pushes that a filter matches.
public struct WaitQuery: Sendable {
  /// How many pushes are wanted.
  public enum Count: Sendable, Equatable, CustomStringConvertible {
    /// So many or more; at least one.
    case atLeast(Int)
    /// So many and no more; none at all with 0.
    case exactly(Int)

    /// In words.
    public var description: String {
      switch self {
      case .atLeast(let count): "at least \(count)"
      case .exactly(0): "none"
      case .exactly(let count): "exactly \(count)"
      }
    }
  }

  /// A wait can be as long as this.
  public static let maxTimeout = Duration.seconds(300)
  /// A wait is as long as this unless something else is said.
  public static let defaultTimeout = Duration.seconds(10)
  /// More pushes than these cannot be waited for.
  static let maxCount = 1_000_000

  /// Which pushes count. Without a cursor all since the inbox was last emptied.
  public var selection = Selection()
  /// How many are wanted.
  public var count = Count.atLeast(1)
  /// How long to wait.
  public var timeout = WaitQuery.defaultTimeout
  /// How long nothing may change before the number counts.
  public var settle = Duration.zero
  /// The filter's parts by the names of their fields, for telling what a push that nearly matches lacks.
  var parts: [(name: String, filter: Filter)] = []

  /// Waits for one push, whatever it is.
  public init() {}

  /// A query from the names and values of a query string: those of a selection, `count`, `timeout`, `settle`.
  ///
  /// - Throws: `FilterError` for a name that does not exist or a value that it cannot have.
  public init(
    _ parameters: some Sequence<(name: String, value: String)>, in context: FilterContext = FilterContext()
  ) throws(FilterError) {
    var givenTimeout: Duration?
    for (name, value) in parameters {
      switch name {
      case "count": count = try Self.count(value)
      case "timeout": givenTimeout = try Self.duration(name, value)
      case "settle": settle = try Self.duration(name, value)
      default:
        try selection.add(name: name, value: value, further: ["count", "timeout", "settle", "strict"], in: context)
      }
    }
    // Who asserts a longer silence than usual means to wait for it.
    timeout = givenTimeout ?? max(Self.defaultTimeout, settle)
    guard settle <= timeout else {
      throw FilterError(
        field: "settle", value: WrittenDuration.text(settle),
        hint: "It is at most the timeout, which is \(WrittenDuration.text(timeout)).")
    }
  }

  /// `3` is at least three, `=3` (of `count==3`) exactly three, `0` exactly none.
  private static func count(_ text: String) throws(FilterError) -> Count {
    let isExact = text.hasPrefix("=")
    let count = try Selection.whole(
      "count", isExact ? String(text.dropFirst()) : text, in: 0...maxCount,
      hint: "a whole number up to \(maxCount): count=3 is at least three, count==3 exactly three, count=0 none")
    return isExact || count == 0 ? .exactly(count) : .atLeast(count)
  }

  private static func duration(_ name: String, _ text: String) throws(FilterError) -> Duration {
    guard let duration = WrittenDuration.duration(text), duration >= .zero, duration <= maxTimeout else {
      throw FilterError(
        field: name, value: text,
        hint: "It is a duration such as 500ms or 10s, at most \(WrittenDuration.text(maxTimeout)).")
    }
    return duration
  }
}
