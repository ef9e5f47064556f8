import APNSMockRules
import APNSMockClientCommands
import APNSMockInbox
import MockAPNS
import APNSMockNotation

/// The checks after a program has run: expectations about its pushes, findings and rejected pushes.
struct ExecChecks: Sendable {
  /// The expectations; nil if none are specified.
  var expectations: VerificationFile?
  /// The checks for findings and rejected pushes.
  var checks = FinalChecks()
  /// Whether these checks pass if no push arrived.
  var allowsNoPushes = false

  /// The result of one of the two checks.
  struct Outcome: Sendable {
    /// `done`, `failed` or `inconclusive`.
    var status = ExitStatus.done
    /// The lines to report.
    var lines: [String] = []
  }

  /// Parses names of findings separated by commas, or `all`.
  static func kinds(_ text: String) throws(InvalidSettingValue) -> Set<Finding.Kind> {
    if text == "all" { return Set(Finding.Kind.allCases) }
    var kinds: Set<Finding.Kind> = []
    for name in text.split(separator: ",", omittingEmptySubsequences: false).map({ String($0).trimmed }) {
      guard name != "all" else {
        throw InvalidSettingValue(
          value: text, allowed: "all without other names, because it contains every finding, or names without all")
      }
      guard let kind = Finding.Kind(rawValue: name) else {
        let names = Finding.Kind.allCases.map(\.rawValue)
        let guess = Spelling.nearest(to: name, among: names).map { " (did you mean \($0)?)" } ?? ""
        throw InvalidSettingValue(
          value: name, allowed: "all, or any of \(Spelling.choices(for: name, among: names))\(guess)")
      }
      kinds.insert(kind)
    }
    return kinds
  }

  /// Validates the expectations before the program runs. Names of rules, profiles and reasons are validated afterwards,
  /// because the program may add them.
  ///
  /// - Throws: `CommandFailure` with all errors.
  func validate(_ state: ServerState) throws {
    if let expectations { _ = try verification(expectations, state, known: nil) }
  }

  /// Verifies the expectations while the server runs.
  ///
  /// - Parameter mayWait: Whether to wait for more pushes as the file specifies.
  func verify(_ state: ServerState, mayWait: Bool) async throws -> Outcome {
    guard let expectations else { return Outcome() }
    var verification: Verification
    do {
      verification = try self.verification(expectations, state, known: state.knownNames)
    } catch let failure as CommandFailure {
      return Outcome(status: failure.status, lines: failure.lines)
    }
    if !mayWait {
      verification.timeout = .zero
      verification.settle = .zero
    }
    guard let report = try await state.verify(verification), !report.isPassed else { return Outcome() }
    let lines = ["\(expectations.name):", report.text]
    return Outcome(status: report.isInconclusive ? .inconclusive : .failed, lines: lines)
  }

  /// Checks for findings and rejected pushes after the server has stopped.
  ///
  /// - Throws: `StoreUnavailable`.
  func final(_ records: RunRecords) throws -> Outcome {
    guard !checks.isEmpty else { return Outcome() }
    var iterator = records.makeIterator()
    guard try allowsNoPushes || iterator.next() != nil || records.missing() != 0 else {
      let flag = checks.failingFindings.isEmpty ? "--fail-on-rejected" : "--fail-on-findings"
      return Outcome(
        status: .failed,
        lines: ["\(flag): no push arrived, so nothing was checked; to accept this: --allow-no-pushes"])
    }
    let result = try checks.result(of: records)
    guard result.hasFailed || records.missing() != nil else {
      return Outcome(
        status: .inconclusive,
        lines: [
          "findings and rejected pushes are inconclusive: a server that the program started left no complete export; "
            + "stop it with SIGTERM before the program ends"
        ])
    }
    let status: ExitStatus = result.hasFailed ? .failed : result.isInconclusive ? .inconclusive : .done
    return Outcome(status: status, lines: result.lines.map(\.onOneLine))
  }

  private func verification(
    _ file: VerificationFile, _ state: ServerState, known: KnownNames?
  ) throws -> Verification {
    let context = FilterContext(
      now: state.clock.now, rulebook: state.rulebook, snapshot: state.inbox.snapshot(), inbox: state.inbox,
      known: known)
    do throws(FileFailure) {
      return try Verification(json: file.json, in: context)
    } catch {
      throw file.failure(error)
    }
  }
}
