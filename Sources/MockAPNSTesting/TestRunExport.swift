import APNSMockInbox
import APNSMockPlatformLibc
import MockAPNS
import Synchronization
import Testing

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The export of the run of this process, with a test for each test case that had a server: a file in the folder that the variable
/// `APNS_MOCK_REPORTS` names, of which `apns-mock report` makes a report, or in that of `apns-mock exec`.
struct TestRunExport: Sendable {
  private let path: String
  private var export: ServerPerTestExport
  private var openTests = 0
  /// The number of test cases by the name of their test function.
  private var cases: [String: Int] = [:]

  /// Nil without the variable.
  static let ofProcess = Mutex<TestRunExport?>(TestRunExport(ProcessInfo.processInfo.environment))

  private init?(_ environment: [String: String]) {
    let folders = [environment["APNS_MOCK_REPORTS"], environment["APNS_MOCK_EXPORTS"]].compactMap(\.self)
    guard let folder = folders.first(where: { !$0.isEmpty }) else { return nil }
    let now = ServerClock.machineNow
    path = "\(folder)/swift-\(ProcessInfo.processInfo.processIdentifier)-\(now).ndjson"
    export = ServerPerTestExport(name: "swift test", labels: CILabels.labels(environment), startedAt: now)
    try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  /// Starts a test case on a server, whose pushes belong to it from now on.
  ///
  /// - Returns: What ends it, with the reasons why it failed; nil without an export.
  static func startTest(_ test: Test, on server: MockServer) -> (@Sendable (_ failures: [String]) -> Void)? {
    guard let name = ofProcess.withLock({ $0?.start(test) }) else { return nil }
    let selection = server.state.faults.selection
    let end = server.state.inbox.startRun(
      ofTest: name, seed: selection.seed, profile: selection.selectedProfile.reference, now: server.state.clock.now)
    return { failures in
      let message = failures.isEmpty ? nil : failures.joined(separator: "\n")
      end(failures.isEmpty ? .passed : .failed, message, server.state.clock.now)
      ofProcess.withLock { $0?.add(server.state) }
    }
  }

  /// Returns the name of the next case: the suites and the test function, with a number from the second case on.
  private mutating func start(_ test: Test) -> String {
    let id = "\(test.id)"
    // The last part of an id is the position in the source file.
    let name = id.split(separator: "/").dropLast(id.contains(".swift:") ? 1 : 0).joined(separator: "/")
    cases[name, default: 0] += 1
    openTests += 1
    write(export.line(endedAt: nil))
    return cases[name] == 1 ? name : "\(name) #\(cases[name] ?? 0)"
  }

  private mutating func add(_ state: ServerState) {
    openTests -= 1
    let rulebook = state.finalRulebook
    // Only a store, which servers in process do not have, cannot be read.
    guard let records = try? state.inbox.recordsOfRuns(by: rulebook),
      let lines = try? export.lines(records, by: rulebook)
    else { return }
    write(lines + export.line(endedAt: openTests == 0 ? ServerClock.machineNow : nil))
  }

  /// Appends to the file, which only its owner can read because it has payloads and device tokens. A test does not fail if
  /// that is impossible.
  private func write(_ text: [UInt8]) {
    let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    if file < 0 || !writeAll(text, to: file) { print("apns-mock: the run cannot be written to \(path)") }
    if file >= 0 { close(file) }
  }
}
