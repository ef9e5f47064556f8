import APNSRules
import ClientCommands
import Inbox
import MockAPNS
import Notation

/// The checks after a program has run: expectations about its pushes, and findings.
struct ExecChecks: Sendable {
  /// The expectations; nil if none are specified.
  var expectations: VerificationFile?
  /// The findings that fail the run.
  var failingFindings: Set<Finding.Kind> = []
  /// Whether the check of findings passes if no push arrived.
  var allowsNoPushes = false

  /// The result of one of the two checks.
  struct Outcome: Sendable {
    /// `done`, `failed` or `inconclusive`.
    var status = ExitStatus.done
    /// The lines to report.
    var lines: [String] = []
  }

  /// The maximum number of findings to report.
  private static let maxReported = 20

  /// Parses names of findings separated by commas, or `all`.
  static func kinds(_ text: String) throws(InvalidSettingValue) -> Set<Finding.Kind> {
    if text == "all" { return Set(Finding.Kind.allCases) }
    var kinds: Set<Finding.Kind> = []
    for name in text.split(separator: ",", omittingEmptySubsequences: false).map({ String($0).trimmed }) {
      guard let kind = Finding.Kind(rawValue: name) else {
        let names = Finding.Kind.allCases.map(\.rawValue)
        let guess = Spelling.nearest(to: name, among: names).map { " (did you mean \($0)?)" } ?? ""
        throw InvalidSettingValue(value: name, allowed: "all, or any of \(names.joined(separator: ", "))\(guess)")
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

  /// Checks for findings after the server has stopped.
  func findings(_ state: ServerState) -> Outcome {
    guard !failingFindings.isEmpty else { return Outcome() }
    state.inbox.writer?.flush()
    let inbox = state.inbox.snapshot()
    guard allowsNoPushes || inbox.count + inbox.evicted > 0 else {
      return Outcome(
        status: .failed,
        lines: [
          "--fail-on-findings: no push arrived, so nothing was checked; to accept this: --allow-no-pushes"
        ])
    }
    // No further attempt can follow, so the check need not wait for one.
    var rulebook = state.rulebook
    rulebook.settings.abandonedAfter = .zero
    let report = state.inbox.findings(by: rulebook, in: .allKinds)
    let found = report.findings.filter { failingFindings.contains($0.kind) }
    guard !found.isEmpty else {
      if report.isComplete { return Outcome() }
      return Outcome(
        status: .inconclusive,
        lines: [
          "findings are inconclusive: \(report.evicted) pushes were evicted; raise --max-records, or use --record all"
        ])
    }
    var lines = found.prefix(Self.maxReported).map { finding in
      "finding \(finding.kind.rawValue), push \(finding.seq): \(finding.explanation)".onOneLine
    }
    if found.count > Self.maxReported { lines.append("\(found.count - Self.maxReported) more findings") }
    return Outcome(status: .failed, lines: lines)
  }

  private func verification(
    _ file: VerificationFile, _ state: ServerState, known: KnownNames?
  ) throws -> Verification {
    let context = FilterContext(
      now: state.clock.now, rulebook: state.rulebook, snapshot: state.inbox.snapshot(), inbox: state.inbox,
      known: known)
    do throws(VerificationFailure) {
      return try Verification(json: file.json, in: context)
    } catch {
      throw file.failure(error)
    }
  }
}
