import Logging
public import MockAPNS
import Synchronization
public import Testing

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A trait that gives each test a mock of APNs of its own, in process and on a free port.
///
/// ```swift
/// @Test(.apns(profile: "flaky-503?rate=0.3", seed: 7)) func retriesWhenUnavailable() async throws {
///   let server = try MockServer.current
///   try await sendWelcome(apns: server.settings.url, ca: server.settings.caPath)  // your code
///   try await server.verify(#"{"nothing_lost": true}"#)
/// }
/// ```
///
/// On a suite, the trait applies to each of its tests, and to each case of a parameterized test. If a test and its
/// suites have the trait, one server is started with the settings of all, of which the innermost takes precedence. A
/// failed test gets a warning that lists its pushes, the profile, the seed and the findings, and an attachment with the
/// inbox that `apns-mock view` can read. With the variable `APNS_MOCK_REPORTS=DIR`, all tests of the process are
/// recorded as a run in the folder `DIR`, of which `apns-mock report` makes a report.
public struct APNSTrait: SuiteTrait, TestTrait, TestScoping {
  private var profile: String?
  private var seed: UInt64?
  private var failOnFindings: FailingFindings?
  private var failOnRejected: Bool?
  private var configure: [@Sendable (inout MockServer.Configuration) -> Void]

  /// Whether the trait of a suite applies to each of the suite's tests; always true.
  public var isRecursive: Bool { true }

  fileprivate init(
    profile: String?, seed: UInt64?, failOnFindings: FailingFindings?, failOnRejected: Bool?,
    configure: @escaping @Sendable (inout MockServer.Configuration) -> Void
  ) {
    self.profile = profile
    self.seed = seed
    self.failOnFindings = failOnFindings
    self.failOnRejected = failOnRejected
    self.configure = [configure]
  }

  /// Returns the settings of this trait, replaced by those that `inner` has.
  private func overridden(by inner: APNSTrait) -> APNSTrait {
    var trait = self
    trait.profile = inner.profile ?? profile
    trait.seed = inner.seed ?? seed
    trait.failOnFindings = inner.failOnFindings ?? failOnFindings
    trait.failOnRejected = inner.failOnRejected ?? failOnRejected
    trait.configure += inner.configure
    return trait
  }

  /// Starts a server, runs a test, and stops the server.
  ///
  /// - Throws: The test's error; `MockServerError` for an unknown profile; the error of a server that cannot start.
  public func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    // The scope of the outermost trait encloses those of the others.
    guard MockServer.taskLocal == nil else { return try await function() }
    let inner = test.traits.compactMap { $0 as? APNSTrait }.dropFirst()
    try await inner.reduce(self) { $0.overridden(by: $1) }.runWithServer(test, testCase, function)
  }

  private func runWithServer(
    _ test: Test, _ testCase: Test.Case?, _ function: @Sendable () async throws -> Void
  ) async throws {
    var logger = Logger(label: "apns-mock")
    logger.logLevel = .warning
    let findings = try (failOnFindings ?? false).validated()
    let server = try await MockServer.start(configuration(), logger: logger)
    let endTest = TestRunExport.startTest(test, on: server)
    let failures = Mutex<[String]>([])
    let observer = IssueHandlingTrait.compactMapIssues { issue in
      if issue.failsTest { failures.withLock { $0.append("\(issue)") } }
      return issue
    }
    var thrown: (any Error)?
    do {
      try await observer.provideScope(for: test, testCase: testCase) {
        do {
          try await MockServer.$taskLocal.withValue(server) { try await function() }
        } catch let error as MockServerError where error.location != nil {
          // At the line of the call rather than that of the test function.
          Issue.record(error, sourceLocation: error.sourceLocation ?? test.sourceLocation)
        }
        if failures.withLock(\.isEmpty) { check(server, findings, in: test) }
      }
    } catch {
      thrown = error
      failures.withLock { $0.append("\(error)") }
    }
    if failures.withLock({ !$0.isEmpty }) { server.recordReport(at: test.sourceLocation) }
    endTest?(failures.withLock(\.self))
    await server.stop()
    if let thrown { throw thrown }
  }

  private func configuration() throws -> MockServer.Configuration {
    var configuration = MockServer.Configuration.ephemeral()
    configuration.threads = 1
    // A response that a fault delays is of no use after the test.
    configuration.shutdownTimeout = .milliseconds(100)
    configuration.seed = seed
    if seed == nil, let text = ProcessInfo.processInfo.environment["APNS_MOCK_SEED"], !text.isEmpty {
      configuration.seed = UInt64(text)
      if configuration.seed == nil { Issue.record("APNS_MOCK_SEED: \"\(text)\" is not a whole number") }
    }
    for change in configure { change(&configuration) }
    if let profile { try configuration.useProfile(profile) }
    return configuration
  }

  private func check(_ server: MockServer, _ findings: FailingFindings, in test: Test) {
    do {
      try server.check(failOnFindings: findings, failOnRejected: failOnRejected ?? false)
    } catch {
      Issue.record(Comment(rawValue: error.description), sourceLocation: test.sourceLocation)
    }
  }
}

extension Trait where Self == APNSTrait {
  /// Gives each test a mock of APNs of its own, which the test reads from `MockServer.current`.
  ///
  /// Settings that are nil are those of the trait on an enclosing suite, otherwise the defaults named below.
  ///
  /// - Parameters:
  ///   - profile: The fault profile that is active from the start, such as `flaky-503?rate=0.3` or `./profile.yaml`;
  ///     by default `healthy`.
  ///   - seed: The seed of the draws, to repeat the faults of a test; by default that of the variable
  ///     `APNS_MOCK_SEED`, such as `apns-mock exec` sets, otherwise a random one, which a failed test reports.
  ///   - failOnFindings: Whether findings at the end of a test are an issue: `true` for any, or a list of names such as
  ///     `["retried-410"]`; by default false. Every push that could still be retried counts as `abandoned`. A test that
  ///     has failed already reports its findings only.
  ///   - failOnRejected: Whether pushes that APNs' rules rejected are an issue at the end of a test; by default false. The
  ///     issue names each reason with the correction.
  ///   - configure: Changes the server's configuration, which listens on a free port of the loopback address.
  public static func apns(
    profile: String? = nil, seed: UInt64? = nil, failOnFindings: FailingFindings? = nil, failOnRejected: Bool? = nil,
    configure: @escaping @Sendable (inout MockServer.Configuration) -> Void = { _ in }
  ) -> Self {
    APNSTrait(
      profile: profile, seed: seed, failOnFindings: failOnFindings, failOnRejected: failOnRejected, configure: configure
    )
  }
}

extension Issue {
  /// Whether the issue fails its test. Before Swift 6.3, warnings do not exist and known issues cannot be recognized.
  fileprivate var failsTest: Bool {
    #if compiler(>=6.3)
      isFailure
    #else
      true
    #endif
  }
}

extension MockServerError {
  /// The place of the call that failed.
  fileprivate var sourceLocation: SourceLocation? {
    location.map { file, line in
      let name = file.split(separator: "/").last ?? ""
      return SourceLocation(fileID: "Tests/\(name)", filePath: file, line: line, column: 1)
    }
  }
}

extension MockServer {
  /// The inbox in the format of `apns-mock export`.
  var exportedInbox: String {
    // An empty query is valid.
    (try? pushes().map { "\($0.json)\n" }.joined()) ?? ""
  }

  /// Adds the report to the running test as a warning, and an inbox that is not empty as an attachment.
  func recordReport(at location: SourceLocation) {
    #if compiler(>=6.3)
      Issue.record(Comment(rawValue: report()), severity: .warning, sourceLocation: location)
    #else
      print(report())
    #endif
    let inbox = exportedInbox
    if !inbox.isEmpty { Attachment.record(inbox, named: "inbox.ndjson", sourceLocation: location) }
  }
}
