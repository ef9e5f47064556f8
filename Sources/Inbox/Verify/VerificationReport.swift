public import APNSRules

/// What came of a verification.
public struct VerificationReport: Sendable {
  /// One thing that was expected, and what there is.
  public struct Criterion: Sendable, Equatable {
    /// What it is about: `count`, `retries.max`, `order`, or of a nearest push the field.
    public let name: String
    /// What was expected, in words.
    public let wanted: String
    /// What there is, in words.
    public let found: String
    /// Whether that is as expected.
    public let isMet: Bool
    /// Why it may be that it is not; nil if nothing comes to mind.
    public var hint: String?
  }

  /// What came of one expectation.
  public struct Expected: Sendable {
    /// How it is called.
    public let name: String
    /// Everything that was expected.
    public let criteria: [Criterion]
    /// How many pushes count.
    public let matched: Int
    /// The numbers of the first of them.
    public let seqs: [Int]
    /// The pushes that come nearest, when too few count.
    public let nearest: [Nearest]

    /// Whether all criteria are met.
    public var isMet: Bool { criteria.allSatisfy(\.isMet) }
  }

  /// A push that is nearly as expected.
  public struct Nearest: Sendable {
    /// Its number.
    public let seq: Int
    /// Its `apns-id`; nil if it has none.
    public let apnsID: String?
    /// Each condition, and what it has instead.
    public let criteria: [Criterion]

    /// How many conditions it meets.
    public var met: Int { criteria.count { $0.isMet } }
  }

  /// Pushes that there must not be: those that no expectation matches, or those that were lost.
  public struct Others: Sendable {
    /// That there are none.
    public let criterion: Criterion
    /// The numbers of the first of them.
    public let seqs: [Int]
    /// The same for people, a line for each.
    let lines: [String]
  }

  /// What the provider did though it must not.
  public struct Findings: Sendable {
    /// That it did not.
    public let criterion: Criterion
    /// The first of them.
    public let findings: [Finding]
  }

  /// Lists of records and findings are cut to so many.
  static let listLimit = 20

  /// What came of each expectation, in their order.
  public let expectations: [Expected]
  /// What came of the order; nil if nothing was said of it.
  public let order: Criterion?
  /// What came of pushes that no expectation matches; nil if there may be some.
  public let others: Others?
  /// The pushes whose last attempt was neither accepted nor rejected for good; nil if there may be some.
  public let lost: Others?
  /// What came of findings; nil if there may be some.
  public let findings: Findings?
  /// How many records the limits have pushed out since the inbox was last emptied.
  public let evicted: Int
  /// Whether none of them was one that was to be looked at.
  public let isComplete: Bool
  /// Where it was.
  public let scene: VerificationScene

  /// Whether nobody can say, because records are gone that were to be looked at.
  public var isInconclusive: Bool { !isComplete }

  /// Whether everything is as expected, as far as can be seen.
  private var isMet: Bool {
    expectations.allSatisfy(\.isMet) && order?.isMet != false && others?.criterion.isMet != false
      && lost?.criterion.isMet != false && findings?.criterion.isMet != false
  }

  /// Whether everything is as expected, and that is certain.
  public var isPassed: Bool { isMet && isComplete }
}

/// What a report says of the server, and what it is made by.
public struct VerificationScene: Sendable {
  /// What findings are made by.
  public var rulebook: Rulebook
  /// What all draws of faults depend on; nil for an export, which does not tell.
  public var seed: UInt64?
  /// The fault profile in force, with its knobs; nil for an export.
  public var profile: String?

  /// A server with these.
  public init(rulebook: Rulebook, seed: UInt64?, profile: String?) {
    self.rulebook = rulebook
    self.seed = seed
    self.profile = profile
  }
}
