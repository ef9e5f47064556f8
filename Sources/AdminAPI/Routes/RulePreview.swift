internal import APNSMockFaultModel
internal import APNSMockFaults
internal import APNSMockInbox
internal import MockAPNS
internal import APNSMockNotation

/// The recorded pushes that a rule would have applied to, had it been the only active one.
struct RulePreview: Sendable {
  /// The number of matching pushes that are listed.
  private static let listed = 20

  /// Whether the rule applies to pushes; false for rules at `accept`, `tls`, `settings` and `connection`.
  private let concernsPushes: Bool
  private var pushes = 0
  private var matched = 0
  private var wouldFire = 0
  private var newest: [Int] = []
  /// The number of records by the reason why the rule did not match.
  private var misses: [String: Int] = [:]

  /// Creates the preview of an invalid rule, which is evaluated for no push.
  init() { concernsPushes = false }

  /// Evaluates `rule` for the newest records of an inbox, suspending between them.
  ///
  /// - Throws: `CancellationError` if the task was cancelled.
  init(of rule: Rule, seed: UInt64, newest limit: Int, in snapshot: InboxSnapshot) async throws {
    concernsPushes = [.request, .response].contains(rule.injectionPoint)
    guard concernsPushes else { return }
    let plan = FaultPlan(
      profile: Profile(name: "preview"), addedRules: [rule], seed: seed, magicTokens: false, isPaused: false,
      activatedAt: 0, addedRulesActivatedAt: [:], ruleCounters: RuleCounters())
    var query = PageQuery()
    query.limit = limit
    query.order = .descending
    for (index, record) in try await snapshot.pageInSlices(query).items.enumerated() {
      if index % 64 == 0 {
        await Task.yield()
        try Task.checkCancellation()
      }
      guard let outcome = plan.evaluate(record).first?.outcome else { continue }
      pushes += 1
      add(outcome, record.seq)
    }
  }

  private mutating func add(_ outcome: RuleEvaluationReport.Outcome, _ seq: Int) {
    switch outcome {
    case .mayFire:
      matched += 1
      wouldFire += 1
    case .notDrawn, .stopped: matched += 1
    case .missed(let test, _, _): misses[test, default: 0] += 1
    case .excepted: misses["not", default: 0] += 1
    case .rejectedByAPNs: misses["rejected by APNs", default: 0] += 1
    case .activatedLater: break
    }
    switch outcome {
    case .mayFire, .notDrawn, .stopped: if newest.count < Self.listed { newest.append(seq) }
    default: break
    }
  }

  /// Writes the preview as members of an object.
  func writeMembers(to writer: inout JSONWriter) {
    writer.member("pushes", concernsPushes ? pushes : nil)
    writer.member("matched", concernsPushes ? matched : nil)
    writer.member("would_fire", concernsPushes ? wouldFire : nil)
    writer.arrayMember("newest") { writer in
      for seq in newest { writer.integer(seq) }
    }
    writer.objectMember("missed") { writer in
      for (test, count) in misses.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) { writer.member(test, count) }
    }
  }
}
