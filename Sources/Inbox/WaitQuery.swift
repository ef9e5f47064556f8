public import Notation

/// The condition of a wait: a number of pushes that match a filter.
public struct WaitQuery: Sendable {
  /// The wanted number of pushes.
  public enum Count: Sendable, Equatable, CustomStringConvertible {
    /// This number or more; at least one.
    case atLeast(Int)
    /// Exactly this number; 0 for no push.
    case exactly(Int)

    /// The number as text.
    public var description: String {
      switch self {
      case .atLeast(let count): "at least \(count)"
      case .exactly(0): "none"
      case .exactly(let count): "exactly \(count)"
      }
    }
  }

  /// The longest timeout.
  public static let maxTimeout = Duration.seconds(300)
  /// The timeout if none is given.
  public static let defaultTimeout = Duration.seconds(10)
  /// The largest number of pushes that can be waited for.
  static let maxCount = 1_000_000

  /// The pushes that count. Without a cursor, all since the inbox was last emptied.
  public var selection = Selection()
  /// The wanted number.
  public var count = Count.atLeast(1)
  /// The timeout.
  public var timeout = WaitQuery.defaultTimeout
  /// The time without changes after which the number counts.
  public var settle = Duration.zero
  /// The filter's parts by the names of their fields, to report which parts a similar push does not match.
  var parts: [(name: String, filter: Filter)] = []

  /// Creates a wait for any one push.
  public init() {}

  /// Creates a condition from the parameters of a query string: those of a selection, `count`, `timeout` and
  /// `settle`.
  ///
  /// - Throws: `FilterError` for an unknown name or an invalid value.
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
    // A settle time longer than the default timeout extends the timeout.
    timeout = givenTimeout ?? max(Self.defaultTimeout, settle)
    guard settle <= timeout else {
      throw FilterError(
        field: "settle", value: WrittenDuration.text(settle),
        hint: "It is at most the timeout, which is \(WrittenDuration.text(timeout)).")
    }
  }

  /// Parses a count: `3` is at least three, `=3` (from `count==3`) exactly three, `0` exactly none.
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
