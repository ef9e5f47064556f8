internal import APNSRules
internal import HTTPMessage

/// What an export says the provider did wrong. It was looked for when there was more to see: machine times, and which
/// provider token was the same.
extension Record {
  /// The names of findings, as the record's JSON has them.
  func findingNames(by rulebook: Rulebook, in inbox: Inbox?) -> [String] {
    toldNames ?? findingKinds(by: rulebook, in: inbox).map(\.rawValue)
  }

  /// What the export says, as far as this version knows it; nil for a record that was made here.
  var toldFindings: [Finding.Kind]? { toldNames?.compactMap(Finding.Kind.init) }

  private var toldNames: [String]? {
    guard head({ $0.marks }).contains(.told) else { return nil }
    return withBytes(head { $0.toldRange }) { packed in
      var names: [String] = []
      HeaderList.forEachField(in: packed) { name, _ in
        names.append(String(decoding: packed[name.indices], as: UTF8.self))
      }
      return names
    }
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
