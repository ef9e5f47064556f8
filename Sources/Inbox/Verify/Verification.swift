internal import APNSMockRules

/// Expectations of the pushes since the inbox was last emptied. Parsed by `Verification.init(json:in:)`.
package struct Verification: Sendable {
  /// How long to wait for the expectations to be met; zero to check only the existing records.
  package var timeout = Duration.zero
  /// The time without changes after which criteria that a further push could violate count as met; zero to wait for
  /// the whole timeout.
  package var settle = Duration.zero
  /// Only records with a larger `seq` are examined.
  package internal(set) var after = 0
  /// Only records that match are examined; empty for all.
  var scope = Filter()
  /// The expectations, in the order of the document.
  var expectations: [Expectation] = []
  /// Positions in `expectations` whose first pushes must arrive in this order; nil for any order.
  var order: [Int]?
  /// Whether each push must match an expectation.
  var allowsNoOthers = false
  /// Whether the last attempt of each push must be accepted or permanently rejected.
  var requiresNothingLost = false
  /// The disallowed findings; nil to allow all.
  var refusedFindings: Set<Finding.Kind>?

  /// Creates a verification without expectations.
  init() {}

  /// Why the store could not be asked for what the conditions need; nil in general.
  var failure: StoreUnavailable? {
    scope.failure ?? expectations.lazy.compactMap { $0.selection.filter.failure ?? $0.ending.failure }.first
  }

  /// Returns whether the criteria about all pushes (`no_others`, `nothing_lost`, `no_findings`) cover requests of a
  /// kind: only pushes, unless the scope names `kind`.
  func covers(_ kind: RequestKind) -> Bool { kind == .push || scope.namesKind }
}

/// An expectation of the pushes that match a filter.
struct Expectation: Sendable {
  /// The name in reports.
  var name: String
  /// The pushes that the expectation is about.
  var selection = Selection()
  /// The conditions that these pushes must meet to count: `outcome`, `accepted`, `status`, `reason`, `delivery`.
  var ending = Filter()
  /// The conditions of `ending` as text, such as `accepted` or `status 200`.
  var endingWords: [String] = []
  /// The bounds of the count; nil for any count.
  var count: CountBounds?
  /// The required retries; nil for any.
  var retries: RetryPolicy?
  /// Whether the expectation is met if no push matches.
  var allowsNone = false

  /// Whether the expectation fails if no push matches.
  var needsPush: Bool { !allowsNone && count?.minimum != 0 }

  /// Returns whether this number of pushes may count.
  func permits(_ number: Int) -> Bool { allowsNone && number == 0 || count?.contains(number) != false }
}

/// The allowed range of a count.
struct CountBounds: Sendable, Equatable, CustomStringConvertible {
  var minimum = 0
  /// The upper bound; nil for none.
  var maximum: Int?

  func contains(_ count: Int) -> Bool { count >= minimum && count <= maximum ?? .max }

  /// The range as text: `exactly 1`, `at least 2`, `at most 3`, `2 to 4`, `none`.
  var description: String {
    switch maximum {
    case nil: "at least \(minimum)"
    case 0: "none"
    case minimum: "exactly \(minimum)"
    case let maximum?: minimum == 0 ? "at most \(maximum)" : "\(minimum) to \(maximum)"
    }
  }
}

/// Requirements for a push's retries. Each is nil if not given.
struct RetryPolicy: Sendable {
  /// The minimum number of retries, not counting the first attempt.
  var min: Int?
  /// The maximum number of retries.
  var max: Int?
  /// The minimum delay of the first retry.
  var minFirstDelay: Duration?
  /// The maximum delay of the first retry.
  var maxFirstDelay: Duration?
  /// Whether each delay must be longer than the previous one.
  var isGrowing = false
  /// The allowed outcomes of the last attempt.
  var endings: [Record.Outcome]?
}

extension Inbox {
  /// Verifies the pushes since the inbox was last emptied, waiting for the expectations to be met up to the timeout.
  ///
  /// A push counts if it matches in its current state: a pending one may begin or cease to count when it ends. All
  /// times are by the machine's clock.
  ///
  /// - Returns: nil if the wait was cut short, because the inbox closed or the task was cancelled.
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  package func verify(
    _ verification: Verification, in context: VerificationContext
  ) async throws -> VerificationReport? {
    let deadline = ContinuousClock.now + verification.timeout
    return try await repeatingAfterReset {
      let totals = try await VerificationWait(verification, in: self, by: context.rulebook).run(until: deadline) {
        totals in
        try VerificationEvaluator(totals: totals, inbox: self).isMet(by: context.rulebook)
      }
      guard let totals else { return nil }
      return try await report(totals, in: context)
    }
  }

  private func report(
    _ totals: VerificationCounts, in context: VerificationContext
  ) async throws -> VerificationReport {
    let verification = totals.verification
    let snapshot = snapshot()
    let evaluator = VerificationEvaluator(totals: totals, inbox: self)
    var expectations: [VerificationReport.Expected] = []
    let short = Set(verification.expectations.indices.filter(totals.isShort))
    for (index, expectation) in verification.expectations.enumerated() {
      let seqs = totals.counts[index].seqs
      expectations.append(
        VerificationReport.Expected(
          name: expectation.name, criteria: evaluator.criteria(of: index), matched: seqs.count,
          seqs: evaluator.names(of: seqs),
          nearest: short.contains(index)
            ? try NearestPushes(expectation).find(
              in: snapshot, scope: verification.scope, after: verification.after, oneOf: short.count) : []))
      // The search takes long, so let other tasks run.
      if short.contains(index) { await Task.yield() }
    }
    let lost = try evaluator.lost(by: context.rulebook)
    let findings = try evaluator.findings(by: context.rulebook)
    // After both, which analyze what is new: a server of a view may become unreadable between them.
    let isAnalyzed = try await isAnalyzed(verification, snapshot)
    return VerificationReport(
      expectations: expectations, order: evaluator.order, others: try evaluator.others(),
      lost: lost, findings: findings, evicted: snapshot.evicted,
      isComplete: snapshot.isComplete(after: verification.after) && isAnalyzed, isAnalyzed: isAnalyzed, context: context
    )
  }

  /// Returns whether all pushes that a verification covers were analyzed, as far as it needs that.
  private func isAnalyzed(_ verification: Verification, _ snapshot: InboxSnapshot) async throws -> Bool {
    guard verification.requiresNothingLost || verification.refusedFindings != nil else { return true }
    let scope = verification.scope
    let unknown = try seqs(analyzer.unknown, after: verification.after)
    guard try !unknown.contains(where: { try record(seq: $0).map { scope.matches($0) } ?? false }),
      analyzer.isComplete
    else { return false }
    var unanalyzed = Selection.allKinds
    unanalyzed.filter = verification.scope
    (unanalyzed.after, unanalyzed.before) = (verification.after, analyzer.start + 1)
    guard unanalyzed.after < analyzer.start else { return true }
    var isAnalyzed = true
    try await snapshot.forEachSlice(of: unanalyzed, checksWork: false) { part in
      try snapshot.records.forEach(in: part) { record in
        isAnalyzed = !verification.covers(record.kind)
        return isAnalyzed
      }
      return isAnalyzed
    }
    return isAnalyzed
  }
}
