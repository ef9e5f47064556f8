/// What somebody expects of the pushes since the inbox was last emptied. `Verification.init(json:in:)` reads it.
public struct Verification: Sendable {
  /// How long to wait for it; with zero, what is there is all.
  public var timeout = Duration.zero
  /// How long it has to be quiet before criteria count as met that a further push could break; zero for the whole
  /// time-out.
  public var settle = Duration.zero
  /// Only records with a larger number are looked at.
  public internal(set) var after = 0
  /// What is expected, in the order it was written.
  var expectations: [Expectation] = []
  /// Positions in `expectations`: the first pushes of these must come in this order. Nil if nothing is said of it.
  var order: [Int]?
  /// Whether every push must be one that is expected.
  var allowsNoOthers = false
  /// Whether the last attempt of every push must be accepted or rejected for good.
  var allowsNoLost = false
  /// What the provider must not have done; nil if nothing is said of it.
  var refusedFindings: Set<Finding.Kind>?

  /// Nothing is expected.
  init() {}
}

/// What is expected of the pushes that a filter matches.
struct Expectation: Sendable {
  /// How it is called in reports.
  var name: String
  /// Which pushes it is about.
  var selection = Selection()
  /// What those have to be to count: `outcome`, `accepted`, `status`, `reason`.
  var ending = Filter()
  /// The words of `ending`, as they were written: `accepted`, `status 200`.
  var endingWords: [String] = []
  /// How many must count; nil if nothing is said of it.
  var count: CountBounds?
  /// How they must have been retried; nil if nothing is said of it.
  var retries: RetryPolicy?
  /// Whether it is met if no push matches.
  var allowsNone = false

  /// Whether it fails if no push matches.
  var needsPush: Bool { !allowsNone && count?.least != 0 }

  /// Whether so many pushes may count.
  func permits(_ number: Int) -> Bool { allowsNone && number == 0 || count?.contains(number) != false }

  /// Whether the record is one that counts.
  func counts(_ record: borrowing Record) -> Bool { selection.contains(record) && ending.matches(record) }
}

/// How many there may be.
struct CountBounds: Sendable, Equatable, CustomStringConvertible {
  var least = 0
  /// Nil for any number.
  var most: Int?

  func contains(_ count: Int) -> Bool { count >= least && count <= most ?? .max }

  /// `exactly 1`, `at least 2`, `at most 3`, `2 to 4`, `none`.
  var description: String {
    switch most {
    case nil: "at least \(least)"
    case 0: "none"
    case least: "exactly \(least)"
    case let most?: least == 0 ? "at most \(most)" : "\(least) to \(most)"
    }
  }
}

/// How a provider must retry a push. Each part is nil where nothing is said of it.
struct RetryPolicy: Sendable {
  /// How many retries there must be at least, the first attempt not counted.
  var min: Int?
  /// How many there may be.
  var max: Int?
  /// How long the first retry has to wait at least.
  var minFirstDelay: Duration?
  /// How long it may wait.
  var maxFirstDelay: Duration?
  /// Whether each delay has to be longer than the one before.
  var isGrowing = false
  /// How the last attempt must have ended: one of these.
  var endings: [Record.Outcome]?
}
