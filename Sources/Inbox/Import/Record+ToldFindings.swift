internal import APNSRules

/// What an export says the provider did wrong. It was looked for when there was more to see: machine times, and which
/// provider token was the same.
extension Record {
  /// The names of findings, as the record's JSON has them.
  func findingNames(by rulebook: Rulebook, in inbox: Inbox?) -> [String] {
    toldJudgement?.findings ?? findingKinds(by: rulebook, in: inbox).map(\.rawValue)
  }

  /// What the export says, as far as this version knows it; nil for a record that was made here.
  var toldFindings: [Finding.Kind]? { toldJudgement?.findings.compactMap(Finding.Kind.init) }

  private var toldJudgement: ToldJudgement? {
    head { head in if case .told(let judgement) = head.judgement { judgement } else { nil } }
  }

  /// The same with words: those of what the record proves alone, and what the kind means for what others prove.
  borrowing func findings(told kinds: [Finding.Kind], by rulebook: Rulebook) -> [Finding] {
    let own = ownFindings(by: rulebook)
    var findings: [Finding] = []
    for kind in kinds {
      let known = own.first { $0.kind == kind }
      findings.append(
        known
          ?? Finding(
            kind, seq: seq, evidence: [seq],
            explanation: "\(kind.summary) The export does not tell which other pushes prove it."))
    }
    return findings
  }
}
