import APNSMockFaultModel
import APNSMockClientCommands
import APNSMockInbox
import APNSMockNotation
import APNSMockRules
import APNSMockFaults
import Logging
import MockAPNS

/// All pushes of a run of `exec`: those of its own server, and those of the servers that the program has started.
struct ExecPushes {
  let state: ServerState
  let servers: ServerExports.Found
  /// A folder for temporary files.
  let folder: String

  /// Returns the pushes and the runs, also what resets have removed from the inboxes.
  ///
  /// - Throws: `CommandFailure`.
  func records(by rulebook: Rulebook) throws -> RunRecords {
    do {
      let own = try state.inbox.recordsOfRuns(by: rulebook)
      guard !servers.paths.isEmpty else { return own }
      let path = folder + "/own.ndjson"
      try ExportOnExit(to: path, for: "--report").write(own, by: rulebook, hasStore: true, count: 0)
      return try ExportFile.mergedRecords([path] + servers.paths)
    } catch let error as StoreUnavailable {
      throw CommandFailure(.failed, "the store of the inbox cannot be read: \(error.problem)")
    }
  }
}

/// A summary of the pushes during a run.
struct ExecSummary {
  private var counts: [Record.Outcome: Int] = [:]
  /// The number of pushes that a fault rule affected, and how many of them by each profile or rule that was added.
  private var faulted = 0
  private var causes: [String: Int] = [:]
  private var findings: [Finding.Kind: Int] = [:]
  /// The number of pushes.
  let total: Int
  /// The number of pushes that are not among the counted ones; nil if it is unknown.
  private let missing: Int?
  private let seed: UInt64

  /// Counts pushes and findings.
  ///
  /// - Throws: `StoreUnavailable`.
  init(_ records: RunRecords, _ selection: FaultSelection) throws {
    missing = records.missing()
    let selected = selection.selectedProfile
    // With its parameters, if it is still active.
    func profile(_ name: String) -> String {
      "profile \(name == selected.profile.name ? selected.reference : name)"
    }
    var count = missing ?? 0
    var iterator = records.makeIterator()
    while let group = try iterator.next() {
      for record in group {
        count += 1
        counts[record.outcome, default: 0] += 1
        if record.isFaulted { faulted += 1 }
        let injections = record.wireDetails?.injections ?? []
        for cause in Set(injections.map { $0.profile.map(profile) ?? "rule \($0.rule)" }) {
          causes[cause, default: 0] += 1
        }
      }
    }
    total = count
    for finding in records.findings.values.joined() { findings[finding.kind, default: 0] += 1 }
    seed = selection.seed
  }

  /// The summary in one line: `3 pushes: 2 accepted, 1 rejected; 1 faulted by profile flaky-503, seed 7`.
  var text: String {
    let parts = Record.Outcome.allCases.compactMap { outcome in counts[outcome].map { "\($0) \(outcome.rawValue)" } }
    var text = total.counted("push") + (parts.isEmpty ? "" : ": " + parts.joined(separator: ", "))
    if let missing, missing > 0 { text += ", \(missing) not kept, deleted or evicted before they were counted" }
    if missing == nil { text += ", and those of a server that has left no complete export" }
    if !findings.isEmpty {
      text +=
        "; findings: " + findings.keys.sorted().map { "\(findings[$0] ?? 0) \($0.rawValue)" }.joined(separator: ", ")
    }
    if faulted > 0 {
      let names = causes.keys.sorted { (-(causes[$0] ?? 0), $0) < (-(causes[$1] ?? 0), $1) }
      text += "; \(faulted) faulted" + (names.isEmpty ? "" : " by \(names.listed(5))") + ", seed \(seed)"
    }
    return text
  }

  /// The summary as log metadata.
  var metadata: Logger.Metadata {
    var metadata: Logger.Metadata = [
      "pushes": .stringConvertible(total), "missing": missing.map { .stringConvertible($0) } ?? "unknown",
      "seed": .string(String(seed)),
    ]
    metadata["faulted"] = .stringConvertible(faulted)
    for outcome in Record.Outcome.allCases { metadata[outcome.rawValue] = .stringConvertible(counts[outcome] ?? 0) }
    let counts = findings.map { ($0.rawValue, Logger.MetadataValue.stringConvertible($1)) }
    metadata["findings"] = .dictionary(Dictionary(uniqueKeysWithValues: counts))
    return metadata
  }
}
