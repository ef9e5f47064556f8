/// An injection as records store it: without a strong reference, so that it can be copied and discarded as plain
/// bytes.
///
/// The owner must keep `referent` alive for as long as the value is used.
package struct KeptInjection: Sendable {
  private let deed: Unmanaged<Injection.Deed>
  private let chance: Injection.Chance

  /// Packs an injection.
  package init(_ injection: borrowing Injection) {
    deed = .passUnretained(injection.deed)
    chance = injection.chance
  }

  /// The injection.
  package var injection: Injection { Injection(deed.takeUnretainedValue(), chance) }

  /// The object that the owner must keep alive.
  package var referent: Unmanaged<AnyObject> { .fromOpaque(deed.toOpaque()) }
}
