package import Inbox
internal import APNSRules
internal import Notation

/// The state of a server at the end of a failed test, as text: the pushes that were not accepted before those that
/// were, the profile, the seed and the findings.
package struct FailureReport: Sendable {
  /// The maximum number of pushes that the text lists for each of the two groups.
  package static let pushLimit = 50

  private let profile: String
  private let seed: UInt64
  private let pushes: [Record]
  private let rulebook: Rulebook
  private let findings: [Finding]

  /// Creates a report on the current state of a server.
  ///
  /// - Parameter selection: The pushes to report.
  package init(_ state: ServerState, of selection: Selection = .allKinds) {
    let active = state.faults.selection
    profile = active.selectedProfile.reference
    seed = active.seed
    var pushes: [Record] = []
    var iterator = InboxIterator(state.inbox.snapshot(), selection)
    while let records = try? iterator.next() { pushes += records }
    self.pushes = pushes
    rulebook = state.rulebook
    findings = state.inbox.findings(by: state.finalRulebook, in: selection).findings
  }

  /// The report: one line for each push and each finding.
  package var text: String {
    let count = pushes.count == 1 ? "1 push" : "\(pushes.count) pushes"
    var lines = ["apns-mock: seed \(seed), profile \(profile), \(count)"]
    lines += group("not accepted", pushes.filter { !$0.accepted }) + group("accepted", pushes.filter(\.accepted))
    lines.append(findings.isEmpty ? "findings: none" : "findings:")
    lines += findings.prefix(Self.pushLimit).map { "  \($0.kind.rawValue), push \($0.seq): \($0.explanation)" }
    if findings.count > Self.pushLimit { lines.append("  \(findings.count - Self.pushLimit) more findings") }
    return lines.joined(separator: "\n")
  }

  private func group(_ title: String, _ pushes: [Record]) -> [String] {
    guard !pushes.isEmpty else { return [] }
    let listed = pushes.suffix(Self.pushLimit)
    let omission = listed.count < pushes.count ? ", the last \(listed.count) of \(pushes.count)" : ""
    return ["\(title)\(omission):"] + listed.flatMap(lines)
  }

  private func lines(of push: Record) -> [String] {
    let response = push.sentResponse.status.map { "\($0)\(push.sentReason.map { " \($0)" } ?? "")" }
    let parts: [String?] = [
      "\(push.seq)", Self.time(push.receivedAt), push.deviceToken.map(DeviceToken.abbreviated), push.topic,
      "attempt \(push.attempt)", response ?? push.outcome.rawValue,
      ReceivedPush(push, rulebook).faultRule.map { "rule \($0)" },
    ]
    return ["  " + parts.compactMap(\.self).joined(separator: "  ")]
      + (push.rejectionDetail.map { ["     \($0)"] } ?? [])
  }

  /// Returns the time of day in UTC, such as `06:42:06.123`.
  private static func time(_ milliseconds: Int64) -> String? {
    TimestampFormat.text(milliseconds).map { String($0.dropFirst(11).dropLast()) }
  }
}
