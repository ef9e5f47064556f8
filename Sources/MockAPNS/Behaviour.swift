public import APNSRules
public import Faults

/// What a provider meets now: the rules of APNs with the numbers in force, and the faults. A value that is swapped as a
/// whole when somebody changes the profile, a knob or a rule.
public struct Behaviour: Sendable {
  /// The rules of APNs.
  public let rulebook: Rulebook
  /// The faults.
  public let plan: FaultPlan
  /// The rate of each device token, if there is one.
  let deviceRate: SharedDeviceRate?

  /// The numbers behind the rules.
  var settings: APNSSettings { rulebook.settings }
}
