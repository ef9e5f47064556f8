package import APNSMockInbox
internal import APNSMockRules
internal import APNSMockNotation

/// The state of a server at the end of a failed test, as text: the pushes that were not accepted before those that
/// were, the profile, the seed and the findings.
package struct FailureReport: Sendable {
  /// The maximum number of pushes that the text lists for each of the two groups.
  package static let pushLimit = 50

  private let profile: String
  private let seed: UInt64
  private let accepted: Group
  private let notAccepted: Group
  private let rulebook: Rulebook
  private let findings: [Finding]

  /// The most recent pushes of a group.
  private struct Group: Sendable {
    var count = 0
    private var records: [Record] = []

    mutating func add(_ record: Record) {
      count += 1
      records.append(record)
      if records.count == 2 * FailureReport.pushLimit { records.removeFirst(FailureReport.pushLimit) }
    }

    var listed: ArraySlice<Record> { records.suffix(FailureReport.pushLimit) }
  }

  /// Creates a report on the current state of a server.
  ///
  /// - Parameter selection: The pushes to report.
  /// - Throws: `StoreUnavailable` if the store of the inbox cannot be read.
  package init(_ state: ServerState, of selection: Selection = .allKinds) throws(StoreUnavailable) {
    let active = state.faults.selection
    profile = active.selectedProfile.reference
    seed = active.seed
    var (accepted, notAccepted) = (Group(), Group())
    var iterator = InboxIterator(state.inbox.snapshot(), selection)
    while let records = try iterator.next() {
      for record in records {
        if record.accepted { accepted.add(record) } else { notAccepted.add(record) }
      }
    }
    (self.accepted, self.notAccepted) = (accepted, notAccepted)
    rulebook = state.rulebook
    findings = try state.inbox.findings(by: state.finalRulebook, in: selection).findings
  }

  /// The report: one line for each push and each finding.
  package var text: String {
    let total = accepted.count + notAccepted.count
    var lines = ["apns-mock: seed \(seed), profile \(profile), \(total.counted("push"))"]
    lines += self.lines(of: notAccepted, "not accepted") + self.lines(of: accepted, "accepted")
    lines.append(findings.isEmpty ? "findings: none" : "findings:")
    lines += findings.prefix(Self.pushLimit).map { "  \($0.kind.rawValue), push \($0.seq): \($0.explanation)" }
    if findings.count > Self.pushLimit { lines.append("  \(findings.count - Self.pushLimit) more findings") }
    return lines.joined(separator: "\n")
  }

  private func lines(of group: Group, _ title: String) -> [String] {
    let listed = group.listed
    guard !listed.isEmpty else { return [] }
    let omission = listed.count < group.count ? ", the last \(listed.count) of \(group.count)" : ""
    return ["\(title)\(omission):"] + listed.flatMap { lines(of: $0) }
  }

  private func lines(of push: Record) -> [String] {
    let response = push.sentResponse.status.map { "\($0)\(push.sentReason.map { " \($0)" } ?? "")" }
    let parts: [String?] = [
      "\(push.seq)", Self.time(push.receivedAt), push.deviceToken.map(DeviceToken.abbreviated), push.topic,
      "attempt \(push.attempt)", response ?? push.outcome.rawValue,
      ReceivedPush(push, rulebook).faultRule.map { "rule \($0)" },
    ]
    return ["  " + parts.compactMap(\.self).joined(separator: "  ")]
      + [push.contentText, push.rejectionDetail].compactMap(\.self).map { "     \($0)" }
  }

  /// Returns the time of day in UTC, such as `06:42:06.123`.
  private static func time(_ milliseconds: Int64) -> String? {
    TimestampFormat.text(milliseconds).map { String($0.dropFirst(11).dropLast()) }
  }
}
