import Inbox
import Logging
import MockAPNS

/// A summary of the pushes during a run.
struct ExecSummary {
  private var counts: [Record.Outcome: Int] = [:]
  private var findings: [Finding.Kind: Int] = [:]
  private let total: Int
  private let evicted: Int
  private let profile: String
  private let seed: UInt64

  /// Counts the pushes and findings in the inbox.
  init(_ state: ServerState) {
    let snapshot = state.inbox.snapshot()
    total = snapshot.count + snapshot.evicted
    evicted = snapshot.evicted
    var walk = InboxWalk(snapshot, Selection())
    while let records = walk.next() {
      for record in records { counts[record.outcome, default: 0] += 1 }
    }
    for item in state.inbox.summary(of: Selection(), by: state.rulebook, limit: 0).items {
      findings[item.kind] = item.count
    }
    let selection = state.faults.selection
    profile = selection.chosen.reference
    seed = selection.seed
  }

  /// The summary in one line: `3 pushes: 2 accepted, 1 faulted; profile flaky-503, seed 7`.
  var text: String {
    let parts = Record.Outcome.allCases.compactMap { outcome in counts[outcome].map { "\($0) \(outcome.rawValue)" } }
    var text = "\(total) push\(total == 1 ? "" : "es")" + (parts.isEmpty ? "" : ": " + parts.joined(separator: ", "))
    if evicted > 0 { text += ", \(evicted) evicted because the inbox is full" }
    if !findings.isEmpty {
      text +=
        "; findings: " + findings.keys.sorted().map { "\(findings[$0] ?? 0) \($0.rawValue)" }.joined(separator: ", ")
    }
    // The profile and seed reproduce the faults.
    if counts[.faulted] != nil { text += "; profile \(profile), seed \(seed)" }
    return text
  }

  /// The summary as log metadata.
  var metadata: Logger.Metadata {
    var metadata: Logger.Metadata = [
      "pushes": .stringConvertible(total), "evicted": .stringConvertible(evicted), "profile": .string(profile),
      "seed": .string(String(seed)),
    ]
    for outcome in Record.Outcome.allCases { metadata[outcome.rawValue] = .stringConvertible(counts[outcome] ?? 0) }
    let counts = findings.map { ($0.rawValue, Logger.MetadataValue.stringConvertible($1)) }
    metadata["findings"] = .dictionary(Dictionary(uniqueKeysWithValues: counts))
    return metadata
  }
}
