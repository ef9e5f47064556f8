import APNSRules
import Inbox
import MockAPNS
import Notation

/// What is looked at after a program has run: whether the pushes were as expected, and what its provider did wrong.
struct ExecChecks: Sendable {
  /// What is expected; nil if nobody said.
  var expectations: VerificationFile?
  /// What the provider must not have done.
  var refused: Set<Finding.Kind> = []
  /// Whether `refused` is met when no push arrived.
  var allowsNoPushes = false

  /// What came of one of the two.
  struct Outcome: Sendable {
    /// 0, 1, or 5 where nobody knows.
    var status = ExitStatus.done
    /// What there is to say.
    var lines: [String] = []
  }

  /// So many findings are told.
  private static let shown = 20

  /// Which findings a text means: names with commas between them, or `all`.
  static func kinds(_ text: String) throws(BadValue) -> Set<Finding.Kind> {
    if text == "all" { return Set(Finding.Kind.allCases) }
    var kinds: Set<Finding.Kind> = []
    for name in text.split(separator: ",", omittingEmptySubsequences: false).map({ String($0).trimmed }) {
      guard let kind = Finding.Kind(rawValue: name) else {
        let names = Finding.Kind.allCases.map(\.rawValue)
        let guess = Spelling.nearest(to: name, among: names).map { " (did you mean \($0)?)" } ?? ""
        throw BadValue(value: name, allowed: "all, or of these: \(names.joined(separator: ", "))\(guess)")
      }
      kinds.insert(kind)
    }
    return kinds
  }

  /// Whether the expectations can be understood, so that a mistake shows before the program runs. Names of rules,
  /// profiles and reasons are checked afterwards: the program may add them.
  ///
  /// - Throws: `CommandFailure` with every mistake.
  func examine(_ state: ServerState) throws {
    if let expectations { _ = try verification(expectations, state, known: nil) }
  }

  /// Looks whether the pushes were as expected, while the server runs.
  ///
  /// - Parameter mayWait: whether more may come, so that it is waited for as the file says.
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
    guard let report = await state.verify(verification), !report.isPassed else { return Outcome() }
    let lines = ["\(expectations.name):", report.text]
    return Outcome(status: report.isInconclusive ? .inconclusive : .failed, lines: lines)
  }

  /// Looks what the provider did wrong, after everything has ended.
  func findings(_ state: ServerState) -> Outcome {
    guard !refused.isEmpty else { return Outcome() }
    let inbox = state.inbox.snapshot()
    guard allowsNoPushes || inbox.count + inbox.evicted > 0 else {
      return Outcome(
        status: .failed,
        lines: [
          "--fail-on-findings: the inbox has no push, so nothing was checked; --allow-no-pushes accepts that"
        ])
    }
    // No attempt can follow any more, so nothing needs to be waited for.
    var rulebook = state.rulebook
    rulebook.settings.abandonedAfter = .zero
    let report = state.inbox.findings(by: rulebook, in: Selection())
    let found = report.findings.filter { refused.contains($0.kind) }
    guard !found.isEmpty else {
      if report.isComplete { return Outcome() }
      return Outcome(
        status: .inconclusive,
        lines: ["nobody knows what findings there were: \(report.evicted) pushes were dropped; raise --max-records"])
    }
    var lines = found.prefix(Self.shown).map { finding in
      "finding \(finding.kind.rawValue), push \(finding.seq): \(finding.explanation)".onOneLine
    }
    if found.count > Self.shown { lines.append("\(found.count - Self.shown) more findings") }
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
      throw file.failure(
        error.problems.map { VerificationFile.Mistake(pointer: $0.pointer, message: $0.message, hint: $0.hint) })
    }
  }
}
