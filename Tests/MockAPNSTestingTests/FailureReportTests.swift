import Foundation
import MockAPNS
import APNSMockTestSupport
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
    #expect(reports == 4)
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
  static func runFailingTests() async throws -> String {
    let program = [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "FailingTests"]
    return try await ChildProgram.run(["env", "\(variable)=1"] + program).output
  }
}
