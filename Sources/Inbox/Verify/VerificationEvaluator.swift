internal import APNSMockRules
internal import APNSMockNotation

/// Evaluates the counts of a verification: one criterion for each requirement, with the wanted and the found value.
struct VerificationEvaluator {
  typealias Criterion = VerificationReport.Criterion

  /// The number of lost pushes that are named.
  private static let shownLost = 20

  let totals: VerificationCounts
  let inbox: Inbox

  private var verification: Verification { totals.verification }

  /// Returns the criteria of one expectation.
  func criteria(of index: Int) -> [Criterion] {
    let expectation = verification.expectations[index]
    let count = totals.counts[index]
    var criteria: [Criterion] = []
    if let bounds = expectation.count {
      criteria.append(
        Criterion(
          name: "count",
          wanted: ([bounds.description] + [expectation.endingWords.joined(separator: ", ")])
            .filter { !$0.isEmpty }.joined(separator: " ") + (expectation.allowsNone ? ", or none" : ""),
          found: String(count.seqs.count), isMet: expectation.permits(count.seqs.count)))
    }
    if let policy = expectation.retries {
      let sequences = count.sequences.map { totals.retries[$0] }.filter { !$0.attempts.isEmpty }
      if sequences.isEmpty, expectation.needsPush {
        criteria.append(
          Criterion(
            name: "retries", wanted: "at least 1 push", found: "none", isMet: false,
            hint: "no push matched; set allow_none: true if none are required"))
      } else {
        criteria += RetryPolicyEvaluator(policy: policy, sequences: sequences, pushName: name).criteria
      }
    }
    return criteria
  }

  /// Returns a record as users name it.
  private func name(_ seq: Int) -> PushName { (try? inbox.name(ofSeq: seq)) ?? .seq(seq) }

  /// The criterion that the first pushes arrived in the expected order; nil if no order is expected.
  var order: Criterion? {
    guard let order = verification.order else { return nil }
    let firsts = order.filter { !verification.expectations[$0].allowsNone || !totals.counts[$0].seqs.isEmpty }
      .map { (name: verification.expectations[$0].name, seq: totals.counts[$0].seqs.first) }
    let isInOrder = zip(firsts, firsts.dropFirst()).allSatisfy { one, other in
      one.seq.flatMap { first in other.seq.map { first < $0 } } ?? false
    }
    let isWhole = firsts.allSatisfy { $0.seq != nil }
    let arrived = firsts.filter { $0.seq != nil }.sorted { ($0.seq ?? 0, $0.name) < ($1.seq ?? 0, $1.name) }
    var found = arrived.map { "\(ReportText.shortened($0.name)) (seq \(name($0.seq ?? 0)))" }.joined(
      separator: ", then ")
    if !isWhole {
      let missing = firsts.filter { $0.seq == nil }.map { ReportText.shortened($0.name) }.joined(separator: ", ")
      found += (found.isEmpty ? "" : "; ") + "no \(missing)"
    }
    if firsts.isEmpty { found = "no push" }
    let isShared = Set(arrived.map(\.seq)).count < arrived.count
    return Criterion(
      name: "order",
      wanted: order.map { ReportText.shortened(verification.expectations[$0].name) }.joined(separator: ", then "),
      found: found,
      isMet: isWhole && isInOrder, hint: isShared ? "one push is the first of two expectations" : nil)
  }

  /// Returns the criterion that each push matches an expectation; nil if other pushes are allowed.
  func others() throws -> VerificationReport.Others? {
    guard verification.allowsNoOthers else { return nil }
    let seqs = totals.others
    return VerificationReport.Others(
      criterion: Criterion(
        name: "no_others", wanted: "none", found: seqs.isEmpty ? "none" : String(seqs.count), isMet: seqs.isEmpty),
      seqs: names(of: seqs),
      lines: try seqs.prefix(3).map { try inbox.record(seq: $0)?.oneLineDescription ?? "seq \(name($0))" })
  }

  /// Returns the criterion that each push is resolved: accepted or rejected for good; nil if not required.
  func lost(by rulebook: Rulebook) throws -> VerificationReport.Others? {
    guard verification.requiresNothingLost else { return nil }
    try inbox.updateFindings(by: rulebook)
    let scope = verification.scope
    let seqs = try inbox.seqs(inbox.analyzer.unresolved, after: verification.after).filter { seq in
      try inbox.record(seq: seq).map { verification.covers($0.kind) && scope.matches($0) } ?? scope.isEmpty
    }
    var lines = try seqs.prefix(Self.shownLost).map { seq in
      try inbox.record(seq: seq).map { "\($0.oneLineDescription) (\($0.end.ending.rawValue))" } ?? "seq \(name(seq))"
    }
    if seqs.count > Self.shownLost { lines.append("and \(seqs.count - Self.shownLost) more") }
    return VerificationReport.Others(
      criterion: Criterion(
        name: "nothing_lost", wanted: "none lost", found: seqs.isEmpty ? "none" : "\(seqs.count) lost",
        isMet: seqs.isEmpty),
      seqs: seqs.prefix(VerificationReport.listLimit).map(name), lines: lines)
  }

  /// Returns the criterion that there are no refused findings; nil if not required.
  func findings(by rulebook: Rulebook) throws -> VerificationReport.Findings? {
    guard let refused = verification.refusedFindings else { return nil }
    var window = Selection.allKinds
    window.after = verification.after
    window.filter = verification.scope
    let findings = try inbox.findings(by: rulebook, in: window).findings.filter { refused.contains($0.kind) }
    let names = Finding.Kind.allCases.filter(refused.contains).map(\.rawValue)
    let isAny = refused.count == Finding.Kind.allCases.count
    return VerificationReport.Findings(
      criterion: Criterion(
        name: "no_findings", wanted: isAny ? "none" : "no \(names.joinedWithOr)",
        found: findings.isEmpty ? "none" : String(findings.count), isMet: findings.isEmpty),
      findings: Array(findings.prefix(VerificationReport.listLimit)))
  }

  /// Returns the first of these records as users name them.
  func names(of seqs: SeqSet) -> [PushName] { seqs.prefix(VerificationReport.listLimit).map(name) }

  /// Returns whether all criteria are met.
  func isMet(by rulebook: Rulebook) throws -> Bool {
    try verification.expectations.indices.allSatisfy { criteria(of: $0).allSatisfy(\.isMet) } && order?.isMet != false
      && others()?.criterion.isMet != false && lost(by: rulebook)?.criterion.isMet != false
      && findings(by: rulebook)?.criterion.isMet != false
  }
}

extension Record {
  /// A one-line description of the record.
  fileprivate var oneLineDescription: String {
    let topic = withTopic { $0.map { String(decoding: $0, as: UTF8.self) } }
    let response = sentResponse.status.map { String($0) } ?? outcome.rawValue
    let parts = [topic, text(facts.pushTypeText), deviceToken.map { "to " + $0 }].compactMap(\.self)
    return "seq \(name): " + parts.map(ReportText.shortened).joined(separator: " ") + ", \(response)"
  }
}
