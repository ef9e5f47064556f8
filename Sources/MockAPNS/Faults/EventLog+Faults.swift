import Faults
import Inbox
import Notation

extension EventLog {
  /// Adds events for the differences between two fault selections.
  func note(changesFrom before: FaultControl.Selection, to after: FaultControl.Selection) {
    if before.chosen != after.chosen || before.seed != after.seed || before.isHalted != after.isHalted {
      note(.profile) { writer in
        writer.member("name", after.profile.name)
        writer.member("reference", after.chosen.reference)
        writer.member("seed", after.seed)
        writer.member("halted", after.isHalted)
      }
    }
    let (old, new) = (before.rulesByName, after.rulesByName)
    for name in old.keys.sorted() where new[name] == nil { note("removed", name) }
    for added in after.added.reversed() where old[added.rule.name]?.addedAt != added.addedAt {
      note(old[added.rule.name] == nil ? "added" : "replaced", added.rule.name)
    }
  }

  private func note(_ change: String, _ rule: String) {
    note(.rule) { writer in
      writer.member("name", rule)
      writer.member("change", change)
    }
  }
}

extension FaultControl.Selection {
  fileprivate var rulesByName: [String: FaultControl.AddedRule] {
    Dictionary(added.map { ($0.rule.name, $0) }, uniquingKeysWith: { first, _ in first })
  }
}
