public import APNSRules

/// What the provider does wrong, as far as the inbox shows it.
public struct FindingsReport: Sendable {
  /// By the records that earn them, ascending; those of one record in the order of the kinds.
  public let findings: [Finding]
  /// How many records the limits have pushed out since the inbox was last emptied.
  public let evicted: Int
  /// Whether no record after the selection's cursor was pushed out, so that none can be missing.
  public let isComplete: Bool
}

extension Inbox {
  /// What the provider does wrong in the selected records; the others are looked at as what went before.
  ///
  /// The findings are those of the moment: a pending push, or a connection that is open, can earn more when it ends.
  ///
  /// - Parameter rulebook: the rules in force, which some findings depend on.
  public func findings(by rulebook: Rulebook, in selection: Selection) -> FindingsReport {
    judge(by: rulebook)
    let snapshot = snapshot()
    var findings: [Finding] = []
    snapshot.records.forEach(in: selection) { record in
      findings += self.findings(on: copy record, by: rulebook)
      return true
    }
    return FindingsReport(
      findings: findings, evicted: snapshot.evicted, isComplete: snapshot.isComplete(after: selection.after))
  }
}
