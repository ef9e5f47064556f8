package import APNSMockInbox
package import APNSMockRules
internal import APNSMockNotation

/// The checks of a provider at the end of a test or a run, when no further attempt of a push can follow.
package struct FinalChecks: Sendable {
  /// The findings that fail the checks.
  package var failingFindings: Set<Finding.Kind>
  /// Whether a push that a check of APNs' rules rejected fails the checks.
  package var failsOnRejected: Bool

  /// Pushes that were rejected for the same reason.
  package struct Rejections: Sendable, Equatable {
    /// The status and the reason that APNs' rules determined.
    package let status: Int
    /// The reason.
    package let reason: String
    /// The number of pushes.
    package fileprivate(set) var count = 1
    /// The `seq` of the first pushes.
    package fileprivate(set) var seqs: [Int]
    /// The description of the failed check, with the correction, of the first push.
    package let advice: String
  }

  /// The result of the checks.
  package struct Result: Sendable {
    /// The failing findings.
    package var findings: [Finding] = []
    /// The rejected pushes by reason, in the order of their first push.
    package var rejections: [Rejections] = []
    /// The number of pushes that were evicted before they could be checked.
    package var evicted = 0
    /// Whether no push was evicted before it could be checked.
    package var isComplete = true
    /// Whether all pushes were analyzed for findings. A server does not analyze those from before its start.
    package var isAnalyzed = true

    /// Whether nothing was found, and all pushes were checked.
    package var isPassed: Bool { !hasFailed && !isInconclusive }
    /// Whether nothing was found among the pushes that could be checked, which are not all.
    package var isInconclusive: Bool { !hasFailed && !(isComplete && isAnalyzed) }
    /// Whether there are failing findings or rejected pushes.
    package var hasFailed: Bool { !findings.isEmpty || !rejections.isEmpty }
  }

  /// The maximum number of findings, and of pushes per reason, that a result describes.
  package static let maxReported = 20

  /// Creates checks.
  package init(failingFindings: Set<Finding.Kind> = [], failsOnRejected: Bool = false) {
    self.failingFindings = failingFindings
    self.failsOnRejected = failsOnRejected
  }

  /// Whether nothing is checked.
  package var isEmpty: Bool { failingFindings.isEmpty && !failsOnRejected }

  /// Checks the pushes in the inbox.
  ///
  /// Every push whose last attempt could be retried counts as `abandoned`, however short ago that was.
  ///
  /// - Parameter selection: The pushes to check.
  /// - Throws: `StoreUnavailable` if the store of the inbox cannot be read.
  package func result(
    in state: ServerState, of selection: Selection = .allKinds
  ) throws(StoreUnavailable) -> Result {
    guard !isEmpty else { return Result() }
    let snapshot = state.inbox.snapshot()
    var result = Result(evicted: snapshot.evicted, isComplete: snapshot.isComplete(after: selection.after))
    if !failingFindings.isEmpty {
      let report = try state.inbox.findings(by: state.finalRulebook, in: selection)
      result.findings = report.findings.filter { failingFindings.contains($0.kind) }
      result.evicted = report.evicted
      result.isComplete = report.isComplete
    }
    var iterator = InboxIterator(snapshot, selection)
    if failsOnRejected {
      result.rejections = try Self.rejections { () throws(StoreUnavailable) in try iterator.next() }
    }
    return result
  }

  /// Checks all pushes of runs, also those that resets have removed from the inbox.
  ///
  /// - Throws: `StoreUnavailable` if the store of the inbox cannot be read.
  package func result(of records: RunRecords) throws(StoreUnavailable) -> Result {
    var result = Result(evicted: records.missing() ?? 0, isComplete: records.missing() == 0 && records.hasAllFindings)
    result.findings = records.findings.values.joined().filter { failingFindings.contains($0.kind) }
      .sorted { ($0.seq, $0.kind) < ($1.seq, $1.kind) }
    var iterator = records.makeIterator()
    if failsOnRejected {
      result.rejections = try Self.rejections { () throws(StoreUnavailable) in try iterator.next() }
    }
    return result
  }

  private static func rejections(
    in next: () throws(StoreUnavailable) -> [Record]?
  ) throws(StoreUnavailable) -> [Rejections] {
    var rejections: [Rejections] = []
    while let records = try next() {
      for record in records where record.outcome == .rejected {
        guard let verdict = record.verdict, !verdict.isAccepted else { continue }
        let reason = verdict.reason?.text ?? ""
        if let index = rejections.firstIndex(where: { $0.status == verdict.status && $0.reason == reason }) {
          rejections[index].count += 1
          if rejections[index].seqs.count < maxReported { rejections[index].seqs.append(record.seq) }
        } else {
          rejections.append(
            Rejections(
              status: verdict.status, reason: reason, seqs: [record.seq], advice: record.rejectionDetail ?? ""))
        }
      }
    }
    return rejections
  }
}

extension FinalChecks.Result {
  /// One line for each finding, for each reason of rejected pushes, and for pushes that could not be checked.
  package var lines: [String] {
    var lines = findings.prefix(FinalChecks.maxReported).map { finding in
      "finding \(finding.kind.rawValue), push \(finding.seq): \(finding.explanation)"
    }
    if findings.count > FinalChecks.maxReported {
      lines.append("\(findings.count - FinalChecks.maxReported) more findings")
    }
    lines += rejections.map(\.text)
    guard isInconclusive else { return lines }
    return [
      isComplete
        ? "findings are inconclusive: the server does not know those of pushes from before its start; reset before each test"
        : "findings are inconclusive: \(evicted.counted("push")) evicted or deleted before the check: "
          + "reset instead of deleting pushes, and raise --max-records, or use --record all"
    ]
  }
}

extension FinalChecks.Rejections {
  /// The reason, the pushes and the advice in one line.
  package var text: String {
    "rejected with \(status) \(reason), push \(seqs.map(String.init).listed(5, of: count)): \(advice)"
  }
}

extension ServerState {
  /// The rules for findings when no further attempt can follow: a push that could be retried is abandoned at once.
  package var finalRulebook: Rulebook { rulebook.atEnd }
}

extension Rulebook {
  /// The same rules, for findings when no further attempt can follow.
  package var atEnd: Rulebook {
    var rulebook = self
    rulebook.settings.abandonedAfter = .zero
    return rulebook
  }
}
