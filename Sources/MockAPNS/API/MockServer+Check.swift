import APNSMockInbox

/// The findings that fail a test: `true` for any, `false` for none, or a list of names such as `["retried-410"]`.
public struct FailingFindings: Sendable, ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral {
  /// The names; nil for any.
  private let names: [String]?

  /// Creates the findings of any name, or none.
  public init(booleanLiteral isAny: Bool) { names = isAny ? nil : [] }

  /// Creates the findings with these names.
  public init(arrayLiteral names: String...) { self.names = names }

  /// Creates the findings with these names.
  public init(_ names: [String]) { self.names = names }

  /// Returns the same findings if all names are valid.
  ///
  /// - Throws: `MockServerError` for an unknown name.
  package func validated() throws(MockServerError) -> FailingFindings {
    _ = try kinds()
    return self
  }

  fileprivate func kinds() throws(MockServerError) -> Set<Finding.Kind> {
    guard let names else { return Set(Finding.Kind.allCases) }
    var kinds: Set<Finding.Kind> = []
    for name in names {
      guard let kind = Finding.Kind(rawValue: name) else {
        throw MockServerError(
          .invalidInput,
          "failOnFindings cannot have \"\(name.prefix(80))\". \(Finding.Kind.hint(forUnknown: name, all: "true"))")
      }
      kinds.insert(kind)
    }
    return kinds
  }
}

extension MockServer {
  /// Verifies that every push was accepted or permanently rejected in the end.
  ///
  /// - Throws: `MockServerError` with the lost pushes and the location of the call.
  public func assertNothingLost(
    file: String = #filePath, line: Int = #line
  ) async throws(MockServerError) {
    try await verify("nothing_lost: true", file: file, line: line)
  }

  /// Checks the provider at the end of a test, when no further attempt of a push can follow: every push that could still
  /// be retried counts as `abandoned`.
  ///
  /// - Parameters:
  ///   - failOnFindings: The findings that are a failure.
  ///   - failOnRejected: Whether a push that APNs' rules rejected is a failure.
  /// - Throws: `MockServerError` with a line for each finding, and for each reason with the correction; also for an unknown
  ///   name, or if pushes were evicted before they could be checked.
  public func check(
    failOnFindings: FailingFindings = [], failOnRejected: Bool = false, file: String = #filePath,
    line: Int = #line
  ) throws(MockServerError) {
    let checks = FinalChecks(failingFindings: try failOnFindings.kinds(), failsOnRejected: failOnRejected)
    let result: FinalChecks.Result
    do {
      result = try checks.result(in: state)
    } catch {
      throw MockServerError(.inconclusive, error.problem)
    }
    guard !result.isPassed else { return }
    throw MockServerError(
      result.hasFailed ? .verificationFailed : .inconclusive, result.lines.joined(separator: "\n")
    ).at(file, line)
  }

  /// Returns a description of the state at the end of a failed test: the seed, the profile, the most recent pushes, those
  /// that were not accepted before those that were, and the findings.
  public func report() -> String {
    do {
      return MockServerError.withoutFlags(try FailureReport(state).text)
    } catch {
      return "apns-mock: the pushes cannot be read: \(error.problem)"
    }
  }
}
