extension Inbox {
  /// Verifies the pushes since the inbox was last emptied, waiting for the expectations to be met up to the timeout.
  ///
  /// A push counts if it matches in its current state: a pending one may begin or cease to count when it ends. All
  /// times are by the machine's clock.
  ///
  /// - Returns: nil if the wait was cut short, because the inbox closed or the task was cancelled.
  public func verify(_ verification: Verification, at scene: VerificationScene) async -> VerificationReport? {
    let tally = await VerificationWait(verification, in: self).run { tally in
      VerificationJudgement(tally: tally).isMet(in: self, by: scene.rulebook)
    }
    guard let tally else { return nil }
    let snapshot = snapshot()
    let judgement = VerificationJudgement(tally: tally)
    var expectations: [VerificationReport.Expected] = []
    let short = Set(verification.expectations.indices.filter(tally.isShort))
    for (index, expectation) in verification.expectations.enumerated() {
      let seqs = tally.counts[index].seqs
      expectations.append(
        VerificationReport.Expected(
          name: expectation.name, criteria: judgement.criteria(of: index), matched: seqs.count,
          seqs: seqs.prefix(VerificationReport.listLimit),
          nearest: short.contains(index)
            ? NearestPushes(expectation).find(in: snapshot, after: verification.after, oneOf: short.count) : []))
      // The search takes long, so let other tasks run.
      if short.contains(index) { await Task.yield() }
    }
    return VerificationReport(
      expectations: expectations, order: judgement.order, others: judgement.others(in: self),
      lost: judgement.lost(in: self, by: scene.rulebook),
      findings: judgement.findings(in: self, by: scene.rulebook), evicted: snapshot.evicted,
      isComplete: snapshot.isComplete(after: verification.after), scene: scene)
  }
}
