/// An injection as records keep it: it holds on to nothing, so that it can be written and thrown away as bytes are.
///
/// Whoever keeps it sees to it that `referent` stays there as long.
package struct KeptInjection: Sendable {
  private let deed: Unmanaged<Injection.Deed>
  private let chance: Injection.Chance

  /// The same as `injection` says.
  package init(_ injection: borrowing Injection) {
    deed = .passUnretained(injection.deed)
    chance = injection.chance
  }

  /// What was kept.
  package var injection: Injection { Injection(deed.takeUnretainedValue(), chance) }

  /// The object that has to stay.
  package var referent: Unmanaged<AnyObject> { .fromOpaque(deed.toOpaque()) }
}
