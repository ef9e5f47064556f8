import APNSMockInbox
import APNSMockTestSupport
import Foundation
import MockAPNS
import Testing

@testable import MockAPNSTesting

@Suite struct FailureReportTests {
  @Test(.apns()) func textListsTheMostRecentPushes() async throws {
    let server = try MockServer.current
    for _ in 0...FailureReport.pushLimit { _ = try await server.push() }
    let text = server.report()
    #expect(text.contains("51 pushes\naccepted, the last 50 of 51:\n  2  "))
    #expect(text.contains("\n  51  "))
  }

  @Test(.apns()) func inboxHasOneRecordPerLine() async throws {
    let server = try MockServer.current
    _ = try await server.push(to: "ab12")
    _ = try await server.push(to: "cd34")
    let lines = server.exportedInbox.split(separator: "\n")
    #expect(lines.count == 2)
    #expect(lines[1].contains(#""seq":2"#))
  }
}

/// Runs `FailingTests` in a process of their own, because their failures would fail this run.
@Suite(.enabled(if: TestProgram.isAvailable, "Test bundles of macOS cannot be started directly."))
struct FailedTestTests {
  @Test func failedTestsReportTheServerOthersDoNot() async throws {
    let output = try await TestProgram.runFailingTests()
    let reports = output.components(separatedBy: "apns-mock: seed").count - 1

    #expect(output.contains("Test failedExpectation() failed"))
    #expect(output.contains("seed 11, profile flaky-503?rate=1, 1 push"))
    #expect(output.contains("  ab12  com.example.app  attempt 1  503 ServiceUnavailable  rule flaky"))
    #expect(output.contains("not accepted:"))
    #expect(output.contains("Attached 'inbox.ndjson' to failedExpectation()"))
    #expect(output.contains("Test thrownError() failed"))
    #expect(output.contains("seed 12"))
    #expect(output.contains("Test findings() failed"))
    #expect(output.contains("finding retried-410, push 2: "))
    #expect(output.contains("Test rejectedPush() failed"))
    #expect(output.contains("rejected with 410 Unregistered, push 1, 2: "))
    #expect(output.contains("seed 13"))
    #expect(output.contains("Test ignoredFindings() passed"))
    #expect(output.contains("Test knownIssue() passed"))
    #expect(output.contains("Test unknownProfile() failed"))
    #expect(output.contains("flaky-504"))
    #expect(output.contains("failOnFindings cannot have \"retried-411\". Did you mean retried-410?"))
    #expect(output.contains("Test failedWait() recorded an issue at FailureReportTests.swift:\(FailingTests.waitLine)"))
    #expect(output.contains("nearest: push 1, accepted with 200"))
    #expect(reports == 5)
  }

  @Test func testsAreRecordedAsARun() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "apns-mock-runs-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    _ = try await TestProgram.runFailingTests(reports: folder.path)
    let file = try #require(
      try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil).first)
    let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    let export = Array(try Data(contentsOf: file))
    var reading = InboxImport(maxBytes: 1 << 20)
    try reading.read(export)
    let inbox = try reading.finish()

    let run = try #require(inbox.runs.all.first)
    #expect(inbox.runs.all.count == 1)
    #expect(run.name == "swift test")
    #expect(run.result == .failed)
    let outcomes = Dictionary(uniqueKeysWithValues: run.tests.map { ($0.name, $0.outcome) })
    #expect(outcomes["MockAPNSTestingTests.FailingTests/failedExpectation()"] == .failed)
    #expect(outcomes["MockAPNSTestingTests.FailingTests/ignoredFindings()"] == .passed)
    #expect(outcomes["MockAPNSTestingTests.FailingTests/cases(number:)"] == .passed)
    #expect(outcomes["MockAPNSTestingTests.FailingTests/cases(number:) #2"] == .passed)
    // A test whose server did not start has no part in the run.
    #expect(outcomes.count == 9)
    let failed = run.tests.first { $0.name.hasSuffix("/failedExpectation()") }
    #expect(failed?.message?.contains("Expectation failed") == true)
    #expect(Set(run.tests.map(\.number)).count == run.tests.count)

    struct Line: Decodable {
      struct Connection: Decodable { let id: String }
      let seq: Int?
      let test: String?
      let connection: Connection?
    }
    let pushes = try export.split(separator: UInt8(ascii: "\n")).map {
      try JSONDecoder().decode(Line.self, from: Data($0))
    }
    .filter { $0.seq != nil }
    #expect(pushes.map(\.seq) == Array(1...pushes.count))
    #expect(inbox.snapshot().count == pushes.count)
    // Two in each of three tests, of which one fails twice, and one in each of the others.
    #expect(Dictionary(grouping: pushes, by: \.test).mapValues(\.count).values.sorted() == [1, 1, 1, 1, 2, 2, 2])
    // The first connections of two servers are not one.
    #expect(Set(pushes.compactMap(\.connection?.id)).count == 10)
  }
}

/// Tests that fail, for `FailedTestTests`.
@Suite(.serialized, .apns(profile: "flaky-503?rate=1"), .enabled(if: TestProgram.runsFailingTests))
struct FailingTests {
  @Test(.apns(seed: 11)) func failedExpectation() async throws {
    #expect(try await MockServer.current.push() == 200)
  }

  @Test(.apns(seed: 12)) func thrownError() async throws {
    throw CancellationError()
  }

  @Test(.apns(profile: "healthy", seed: 13, failOnFindings: true)) func findings() async throws {
    try await pushTwiceToAnUnregisteredDevice()
  }

  @Test(.apns(profile: "healthy", seed: 14, failOnFindings: ["jwt-churn"])) func ignoredFindings() async throws {
    try await pushTwiceToAnUnregisteredDevice()
  }

  @Test(.apns(profile: "healthy", seed: 17, failOnRejected: true)) func rejectedPush() async throws {
    try await pushTwiceToAnUnregisteredDevice()
  }

  @Test(.apns(failOnFindings: ["retried-411"])) func unknownFinding() {}

  @Test(.apns(seed: 15)) func knownIssue() {
    withKnownIssue { Issue.record("A known issue.") }
  }

  static let waitLine = #line + 5

  @Test(.apns(profile: "healthy", seed: 18)) func failedWait() async throws {
    let server = try MockServer.current
    _ = try await server.push()
    try await server.wait(matching: .token("cd34"), timeout: .milliseconds(10))
  }

  @Test(.apns(profile: "healthy"), arguments: 1...2) func cases(number: Int) async throws {
    // A reset removes pushes from the inbox, not from the run.
    _ = try await MockServer.current.push()
    try MockServer.current.reset()
  }

  @Test(.apns(profile: "flaky-504", seed: 16)) func unknownProfile() {}

  private func pushTwiceToAnUnregisteredDevice() async throws {
    let server = try MockServer.current
    try server.unregister(device: "ab12")
    for _ in 1...2 { #expect(try await server.push() == 410) }
  }
}

/// The program of the running tests.
private enum TestProgram {
  private static let variable = "APNS_MOCK_FAILING_TESTS"

  static var isAvailable: Bool {
    #if os(Linux)
      true
    #else
      false
    #endif
  }

  /// Whether this process was started by `runFailingTests`.
  static var runsFailingTests: Bool { ProcessInfo.processInfo.environment[variable] != nil }

  /// Runs `FailingTests` in a new process and returns its output.
  ///
  /// - Parameter reports: The folder of the run; nil for none.
  static func runFailingTests(reports: String? = nil) async throws -> String {
    let program = [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "FailingTests"]
    let variables = ["\(variable)=1"] + (reports.map { ["APNS_MOCK_REPORTS=\($0)"] } ?? [])
    return try await ChildProgram.run(["env"] + variables + program).output
  }
}
