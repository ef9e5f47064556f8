public import APNSRules

/// The findings on the records of an inbox.
public struct FindingsReport: Sendable {
  /// The findings by ascending `seq`; those on one record in the order of the kinds.
  public let findings: [Finding]
  /// The number of records evicted since the inbox was last emptied.
  public let evicted: Int
  /// Whether no record after the selection's cursor was evicted, so that none can be missing.
  public let isComplete: Bool
}

extension Inbox {
  /// Returns the findings on the selected records. Other records are still analyzed as their context.
  ///
  /// The result is of the moment: pending pushes and open connections may cause further findings when they end.
  ///
  /// - Parameter rulebook: The active rules, which some findings depend on.
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
