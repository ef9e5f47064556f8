package import APNSMockNotation

/// The condition of a wait: a number of pushes that match a filter.
package struct WaitQuery: Sendable {
  /// The wanted number of pushes.
  package enum Count: Sendable, Equatable, CustomStringConvertible {
    /// This number or more; at least one.
    case atLeast(Int)
    /// Exactly this number; 0 for no push.
    case exactly(Int)

    /// The number as text.
    package var description: String {
      switch self {
      case .atLeast(let count): "at least \(count)"
      case .exactly(0): "none"
      case .exactly(let count): "exactly \(count)"
      }
    }
  }

  /// The longest timeout.
  package static let maxTimeout = Duration.seconds(300)
  /// The timeout if none is given.
  package static let defaultTimeout = Duration.seconds(10)
  /// The largest number of pushes that can be waited for.
  static let maxCount = 1_000_000

  /// The pushes that count. Without a cursor, all since the inbox was last emptied.
  package var selection = Selection()
  /// The wanted number.
  package var count = Count.atLeast(1)
  /// The timeout.
  package var timeout = WaitQuery.defaultTimeout
  /// The time without changes after which the number counts.
  package var settle = Duration.zero

  /// Creates a wait for any one push.
  package init() {}

  /// Creates a condition from the parameters of a query string: those of a selection, `count`, `timeout` and
  /// `settle`.
  ///
  /// - Throws: `FilterError` for an unknown name or an invalid value.
  package init(
    _ parameters: some Sequence<(name: String, value: String)>, in context: FilterContext = FilterContext()
  ) throws(FilterError) {
    var givenTimeout: Duration?
    for (name, value) in parameters {
      switch name {
      case "count": count = try Self.count(value)
      case "timeout": givenTimeout = try Self.duration(name, value)
      case "settle": settle = try Self.duration(name, value)
      default:
        try selection.add(
          name: name, value: value, additionalNames: ["count", "timeout", "settle", "strict"], in: context)
      }
    }
    // A settle time longer than the default timeout extends the timeout.
    timeout = givenTimeout ?? max(Self.defaultTimeout, settle)
    guard settle <= timeout else {
      throw FilterError(
        field: "settle", value: DurationFormat.text(settle),
        hint: "Use at most the timeout, \(DurationFormat.text(timeout)).")
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
    guard let duration = DurationFormat.duration(text), duration >= .zero, duration <= maxTimeout else {
      throw FilterError(
        field: name, value: text,
        hint: "Use a duration such as 500ms or 10s, at most \(DurationFormat.text(maxTimeout)).")
    }
    return duration
  }
}

/// The counts of a wait, and whether they meet its condition.
struct WaitCounts: Sendable {
  /// The state of the condition.
  enum Status: Equatable, Sendable {
    /// The condition is met.
    case satisfied
    /// The condition can no longer be met.
    case unsatisfiable
    /// The condition may be met later; at the given time, if any, even without a new record.
    case open(until: ContinuousClock.Instant?)
  }

  let selection: Selection
  let count: WaitQuery.Count
  let settle: Duration
  /// The `seq` of each matching record.
  private(set) var matched = SeqSet()
  /// The matching records that may no longer match later: pending ones and, if a condition depends on it, those whose
  /// delivery may change.
  private var changeable = SeqSet()
  private let dependsOnDelivery: Bool
  /// The time of the last change of the number of matches, or the start of the wait.
  private var quietSince: ContinuousClock.Instant
  /// A record up to this `seq` that could count was evicted before it was examined; 0 if there is none.
  private var lostThrough = 0

  init(_ query: WaitQuery, startedAt: ContinuousClock.Instant) {
    selection = query.selection
    count = query.count
    settle = query.settle
    dependsOnDelivery = query.selection.filter.dependsOnDelivery
    quietSince = startedAt
  }

  /// Whether no record that could count was evicted before it was examined.
  var isComplete: Bool { lostThrough == 0 }

  /// Notes that records up to `evicted` were evicted, of which those up to `examined` were counted or do not matter.
  mutating func recordEviction(through evicted: Int, examined: Int) {
    if evicted > examined { lostThrough = max(lostThrough, evicted) }
  }

  /// Counts a record that existed when the wait began.
  mutating func countExisting(_ record: borrowing Record) {
    if selection.contains(record) { insert(record) }
  }

  /// Counts a record that arrived, ended or changed.
  mutating func update(_ record: borrowing Record, at now: ContinuousClock.Instant) {
    if selection.contains(record) {
      if insert(record) { quietSince = now }
    } else if matched.remove(record.seq) {
      changeable.remove(record.seq)
      quietSince = now
    }
  }

  /// Drops the records up to `seq`, after the inbox was emptied.
  mutating func empty(through seq: Int, at now: ContinuousClock.Instant) {
    if seq >= lostThrough { lostThrough = 0 }
    let count = matched.count
    matched.removeAll(through: seq)
    changeable.removeAll(through: seq)
    if matched.count < count { quietSince = now }
  }

  /// Returns the state of the condition.
  func status(at now: ContinuousClock.Instant) -> Status {
    if case .exactly(let wanted) = count, !isComplete || matched.count - changeable.count > wanted {
      return .unsatisfiable
    }
    return isWanted ? statusAfterSettling(now) : .open(until: nil)
  }

  /// Whether the wanted number of records matches, regardless of the settle time.
  var isWanted: Bool {
    switch count {
    case .atLeast(let wanted): matched.count >= wanted
    case .exactly(let wanted): matched.count == wanted
    }
  }

  private func statusAfterSettling(_ now: ContinuousClock.Instant) -> Status {
    now >= quietSince + settle ? .satisfied : .open(until: quietSince + settle)
  }

  /// Adds a matching record.
  ///
  /// - Returns: Whether it was not counted before.
  @discardableResult
  private mutating func insert(_ record: borrowing Record) -> Bool {
    if record.mayChange(includingDelivery: dependsOnDelivery) {
      changeable.insert(record.seq)
    } else {
      changeable.remove(record.seq)
    }
    return matched.insert(record.seq)
  }
}
