package import APNSMockFaultModel
import APNSMockFaults
import APNSMockInbox
package import APNSMockNotation
import APNSMockRules

/// The active profile and rules.
package struct FaultSelection: Sendable {
  /// The profile with its source.
  package internal(set) var selectedProfile: SelectedProfile
  /// The seed of the fault draws.
  package internal(set) var seed: UInt64
  /// When the profile was activated, in monotonic nanoseconds.
  package internal(set) var activatedAt: MonotonicTime
  /// When the profile expires, in monotonic nanoseconds; nil for never.
  package internal(set) var endsAt: MonotonicTime?
  /// The rules added to those of the profile, newest first.
  package internal(set) var added: [FaultControl.AddedRule] = []
  /// The runs to which no push can belong now, so that their rules do nothing.
  var suspendedRuns: Set<String> = []
  /// Whether fault injection is paused.
  package internal(set) var isPaused = false
  /// Whether the profile, its parameters or the pause were set since the start.
  var isChanged = false

  /// Selects a profile that is active from now on.
  init(_ selectedProfile: SelectedProfile, seed: UInt64) {
    self.selectedProfile = selectedProfile
    self.seed = seed
    activatedAt = 0
    activate(selectedProfile, seed: seed)
  }

  /// Activates a profile from now on, for the shorter of `timeToLive` and the profile's `stop: {after}`.
  mutating func activate(_ selectedProfile: SelectedProfile, seed: UInt64, timeToLive: Duration? = nil) {
    self.selectedProfile = selectedProfile
    self.seed = seed
    activatedAt = MachineTime.nanoseconds
    endsAt = [timeToLive, selectedProfile.profile.stopAfter].compactMap(\.self).min()
      .map { activatedAt.addingClamped($0.nanoseconds) }
  }

  /// The added rules that are evaluated, limited to the pushes that they are bound to.
  var appliedRules: [Rule] {
    added.filter { rule in rule.binding.run.map { !suspendedRuns.contains($0) } ?? true }
      .map { $0.binding.applied(to: $0.rule) }
  }

  /// The rules of each profile that is bound to some pushes, the newest first.
  package var boundProfiles: [[FaultControl.AddedRule]] {
    added.filter { $0.profile != nil }.reduce(into: []) { groups, rule in
      let binding = rule.binding
      if let index = groups.firstIndex(where: { $0[0].isOfProfile(scope: binding.scope, run: binding.run) }) {
        groups[index].append(rule)
      } else {
        groups.append([rule])
      }
    }
  }

  /// The profile with the current values of its parameters.
  package var profile: Profile { selectedProfile.profile }
}

extension FaultControl.AddedRule {
  /// Whether the rule is one of the profile that is bound to these pushes.
  func isOfProfile(scope: String?, run: String?) -> Bool {
    profile != nil && binding.scope == scope && binding.run == run
  }
}

extension Profile {
  /// The parameters that differ from their defaults, by name, in their text form.
  var changedParameters: [String: String] {
    parameters.reduce(into: [:]) { if $1.value != $1.defaultValue { $0[$1.name] = $1.value } }
  }
}

extension EventLog {
  /// Adds events for the differences between two fault selections.
  func appendChanges(from before: FaultSelection, to after: FaultSelection) {
    if before.selectedProfile != after.selectedProfile || before.seed != after.seed || before.isPaused != after.isPaused
    {
      append(.profile) { writer in
        writer.member("name", after.profile.name)
        writer.member("reference", after.selectedProfile.reference)
        writer.member("seed", after.seed)
        writer.member("halted", after.isPaused)
      }
    }
    let (old, new) = (before.rulesByName, after.rulesByName)
    for name in old.keys.sorted() where new[name] == nil { appendChange("removed", ofRule: name) }
    for added in after.added.reversed() where old[added.rule.name]?.addedAt != added.addedAt {
      appendChange(old[added.rule.name] == nil ? "added" : "replaced", ofRule: added.rule.name)
    }
  }

  private func appendChange(_ change: String, ofRule rule: String) {
    append(.rule) { writer in
      writer.member("name", rule)
      writer.member("change", change)
    }
  }
}

extension FaultSelection {
  fileprivate var rulesByName: [String: FaultControl.AddedRule] {
    Dictionary(added.map { ($0.rule.name, $0) }, uniquingKeysWith: { first, _ in first })
  }
}
