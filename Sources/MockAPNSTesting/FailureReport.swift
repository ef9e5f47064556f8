import APNSRules
import MockAPNS
import Notation
import Testing

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The state of a server at the end of a failed test.
struct FailureReport {
  /// The maximum number of pushes that the text lists. The attachment has all.
  static let pushLimit = 50

  private let profile: String
  private let seed: UInt64
  private let pushes: [ReceivedPush]
  private let findings: [ProviderFinding]

  /// Creates a report on the current state of a server.
  init(_ server: MockServer) {
    let selection = server.state.faults.selection
    profile = selection.selectedProfile.reference
    seed = selection.seed
    // An empty query is valid.
    pushes = (try? server.pushes()) ?? []
    findings = server.findings()
  }

  /// The report for the test's log: the profile, the seed, the most recent pushes and the findings, one per line.
  var text: String {
    var lines = ["apns-mock: profile \(profile), seed \(seed)"]
    let listed = pushes.suffix(Self.pushLimit)
    let omission = listed.count < pushes.count ? "the last \(listed.count) of " : ""
    let count = pushes.count == 1 ? "1 push" : "\(pushes.count) pushes"
    lines.append(pushes.isEmpty ? "inbox: empty" : "inbox, \(omission)\(count):")
    lines += listed.map(Self.line)
    lines.append(findings.isEmpty ? "findings: none" : "findings:")
    lines += findings.map { "  \($0)" }
    return lines.joined(separator: "\n")
  }

  /// The inbox in the format of `apns-mock export`.
  var inbox: String { pushes.map { "\($0.json)\n" }.joined() }

  /// Adds the text to the running test as a warning, and an inbox that is not empty as an attachment.
  func record(at location: SourceLocation) {
    #if compiler(>=6.3)
      Issue.record(Comment(rawValue: text), severity: .warning, sourceLocation: location)
    #else
      print(text)
    #endif
    if !pushes.isEmpty { Attachment.record(inbox, named: "inbox.ndjson", sourceLocation: location) }
  }

  private static func line(_ push: ReceivedPush) -> String {
    let parts: [String?] = [
      "\(push.seq)", time(push.receivedAt), push.deviceToken.map(DeviceToken.abbreviated), push.topic,
      "attempt \(push.attempt)", push.status.map { "\($0)\(push.reason.map { " \($0)" } ?? "")" } ?? "no response",
      push.faultRule.map { "rule \($0)" },
    ]
    return "  " + parts.compactMap(\.self).joined(separator: "  ")
  }

  /// Returns the time of day in UTC, such as `06:42:06.123`.
  private static func time(_ date: Date) -> String? {
    TimestampFormat.text(Int64(date.timeIntervalSince1970 * 1000)).map { String($0.dropFirst(11).dropLast()) }
  }
}
