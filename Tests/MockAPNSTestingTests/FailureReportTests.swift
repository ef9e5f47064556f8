import Foundation
import MockAPNS
import TestSupport
import Testing

@testable import MockAPNSTesting

@Suite struct FailureReportTests {
  @Test(.apns(profile: "unregistered-410?rate=1", seed: 7)) func textNamesPushesProfileSeedAndFindings() async throws {
    let server = try MockServer.current
    #expect(try await server.push() == 410)
    #expect(try await server.push() == 410)

    let lines = FailureReport(server).text.split(separator: "\n")
    #expect(lines.count == 6)
    #expect(lines[0] == "apns-mock: profile unregistered-410?rate=1, seed 7")
    #expect(lines[1] == "inbox, 2 pushes:")
    #expect(lines[2].hasPrefix("  1  "))
    #expect(lines[2].hasSuffix("  ab12  com.example.app  attempt 1  410 Unregistered  rule gone"))
    #expect(lines[4] == "findings:")
    #expect(lines[5].hasPrefix("  retried-410, push 2: "))
  }

  @Test(.apns()) func textListsTheMostRecentPushes() async throws {
    let server = try MockServer.current
    #expect(FailureReport(server).text.hasSuffix("inbox: empty\nfindings: none"))
    for _ in 0...FailureReport.pushLimit { _ = try await server.push() }
    let text = FailureReport(server).text
    #expect(text.contains("inbox, the last 50 of 51 pushes:\n  2  "))
    #expect(text.contains("\n  51  "))
  }

  @Test(.apns()) func inboxHasOneRecordPerLine() async throws {
    let server = try MockServer.current
    _ = try await server.push(to: "ab12")
    _ = try await server.push(to: "cd34")
    let lines = FailureReport(server).inbox.split(separator: "\n")
    #expect(lines.count == 2)
    #expect(lines[1].contains(#""seq":2"#))
  }
}

/// Runs `FailingTests` in a process of their own, because their failures would fail this run.
@Suite(.enabled(if: TestProgram.isAvailable, "Test bundles of macOS cannot be started directly."))
struct FailedTestTests {
  @Test func failedTestsReportTheServerOthersDoNot() async throws {
    let output = try await TestProgram.runFailingTests()
    let reports = output.components(separatedBy: "apns-mock: profile").count - 1

    #expect(output.contains("Test failedExpectation() failed"))
    #expect(output.contains("profile flaky-503?rate=1, seed 11"))
    #expect(output.contains("  ab12  com.example.app  attempt 1  503 ServiceUnavailable  rule flaky"))
    #expect(output.contains("inbox, 1 push:"))
    #expect(output.contains("Attached 'inbox.ndjson' to failedExpectation()"))
    #expect(output.contains("Test thrownError() failed"))
    #expect(output.contains("seed 12"))
    #expect(output.contains("Test findings() failed"))
    #expect(output.contains("apns-mock finding retried-410, push 2: "))
    #expect(output.contains("seed 13"))
    #expect(output.contains("Test ignoredFindings() passed"))
    #expect(output.contains("Test knownIssue() passed"))
    #expect(output.contains("Test unknownProfile() failed"))
    #expect(output.contains("flaky-504"))
    #expect(reports == 3)
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

  @Test(.apns(profile: "healthy", seed: 14)) func ignoredFindings() async throws {
    try await pushTwiceToAnUnregisteredDevice()
  }

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
