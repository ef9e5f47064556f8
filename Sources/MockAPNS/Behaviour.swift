public import APNSRules
public import Faults

/// The active APNs rules, with their settings, and the active faults. Replaced as a whole when the profile, one of
/// its parameters or a rule changes.
public struct Behaviour: Sendable {
  /// The APNs rules that requests are validated by.
  public let rulebook: Rulebook
  /// The active fault profile and rules.
  public let plan: FaultPlan
  /// The rate limit per device token; nil for none.
  let deviceRate: SharedDeviceRate?

  /// The settings of the APNs rules.
  var settings: APNSSettings { rulebook.settings }
}
