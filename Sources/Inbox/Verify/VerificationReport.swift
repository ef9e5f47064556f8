public import APNSRules

/// The result of a verification.
public struct VerificationReport: Sendable {
  /// A single requirement with the wanted and the found value.
  public struct Criterion: Sendable, Equatable {
    /// The name of the requirement: `count`, `retries.max`, `order`, or the field for a nearest push.
    public let name: String
    /// The wanted value as text.
    public let wanted: String
    /// The found value as text.
    public let found: String
    /// Whether the requirement is met.
    public let isMet: Bool
    /// A possible reason why it is not met; nil if none is known.
    public var hint: String?
  }

  /// The result of one expectation.
  public struct Expected: Sendable {
    /// The name of the expectation.
    public let name: String
    /// All requirements of the expectation.
    public let criteria: [Criterion]
    /// The number of pushes that count.
    public let matched: Int
    /// The `seq` of the first pushes that count.
    public let seqs: [Int]
    /// The most similar pushes, if too few count.
    public let nearest: [Nearest]

    /// Whether all requirements are met.
    public var isMet: Bool { criteria.allSatisfy(\.isMet) }
  }

  /// A push that is similar to an expectation.
  public struct Nearest: Sendable {
    /// The `seq` of the push's record.
    public let seq: Int
    /// The push's `apns-id`; nil if it has none.
    public let apnsID: String?
    /// The result of each condition.
    public let criteria: [Criterion]

    /// The number of conditions met.
    public var met: Int { criteria.count { $0.isMet } }
  }

  /// Disallowed pushes: those that no expectation matches, or those that were lost.
  public struct Others: Sendable {
    /// The criterion that there are none.
    public let criterion: Criterion
    /// The `seq` of the first disallowed pushes.
    public let seqs: [Int]
    /// One line of text for each of the first disallowed pushes.
    let lines: [String]
  }

  /// Disallowed findings.
  public struct Findings: Sendable {
    /// The criterion that there are none.
    public let criterion: Criterion
    /// The first disallowed findings.
    public let findings: [Finding]
  }

  /// The maximum length of lists of records and findings.
  static let listLimit = 20

  /// The results of the expectations, in the order of the document.
  public let expectations: [Expected]
  /// The result of the expected order; nil if none was given.
  public let order: Criterion?
  /// The pushes that no expectation matches; nil if they are allowed.
  public let others: Others?
  /// The pushes whose last attempt was neither accepted nor permanently rejected; nil if they are allowed.
  public let lost: Others?
  /// The disallowed findings; nil if all are allowed.
  public let findings: Findings?
  /// The number of records evicted since the inbox was last emptied.
  public let evicted: Int
  /// Whether no record of the window was evicted.
  public let isComplete: Bool
  /// The server that was verified.
  public let scene: VerificationScene

  /// Whether the result is unknown, because records of the window were evicted.
  public var isInconclusive: Bool { !isComplete }

  /// Whether all criteria are met by the records that are available.
  private var isMet: Bool {
    expectations.allSatisfy(\.isMet) && order?.isMet != false && others?.criterion.isMet != false
      && lost?.criterion.isMet != false && findings?.criterion.isMet != false
  }

  /// Whether all criteria are met and no record of the window was evicted.
  public var isPassed: Bool { isMet && isComplete }
}

/// The context of a report: the rules for findings, and the state of the server.
public struct VerificationScene: Sendable {
  /// The rules that determine the findings.
  public var rulebook: Rulebook
  /// The seed of all fault draws; nil for an export, which does not contain it.
  public var seed: UInt64?
  /// The active fault profile with its parameters; nil for an export.
  public var profile: String?

  /// Creates the context of a report.
  public init(rulebook: Rulebook, seed: UInt64?, profile: String?) {
    self.rulebook = rulebook
    self.seed = seed
    self.profile = profile
  }
}
