internal import APNSRules
internal import HTTPMessage

/// The findings of an imported record. They are not computed again, because they depend on data that the export
/// lacks: machine times, and the identity of provider tokens.
extension Record {
  /// Returns the names of the findings as in the record's JSON.
  func findingNames(by rulebook: Rulebook, in inbox: Inbox?) -> [String] {
    toldNames ?? findingKinds(by: rulebook, in: inbox).map(\.rawValue)
  }

  /// The exported findings that this version knows; nil for a record that was not imported.
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

  /// Returns the exported findings with explanations: specific ones if the finding follows from the record alone,
  /// else the meaning of the kind.
  borrowing func findings(told kinds: [Finding.Kind], by rulebook: Rulebook) -> [Finding] {
    let own = ownFindings(by: rulebook)
    var findings: [Finding] = []
    for kind in kinds {
      let known = own.first { $0.kind == kind }
      findings.append(
        known
          ?? Finding(
            kind, seq: seq, evidence: [seq],
            explanation: "\(kind.summary) The export does not contain the evidence."))
    }
    return findings
  }
}
