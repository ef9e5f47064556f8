/// The rules that fired for one push: the one that decided the outcome first, if one did. Nearly always it is one, and
/// that takes no array.
public struct Injections: Sendable, Equatable, RandomAccessCollection, ExpressibleByArrayLiteral {
  // In parts, because copying an optional of the whole takes the runtime many more steps.
  private var deed: Injection.Deed?
  private var chance = Injection.Chance()
  private var others: [Injection] = []

  private var one: Injection? { deed.map { Injection($0, chance) } }

  /// One alone.
  public init(_ injection: Injection) { begin(with: injection) }

  /// These, in their order.
  public init(_ injections: some Sequence<Injection>) {
    for injection in injections { append(injection) }
  }

  /// These, in their order.
  public init(arrayLiteral injections: Injection...) { self.init(injections) }

  /// 0.
  public var startIndex: Int { 0 }
  /// How many there are.
  public var endIndex: Int { deed == nil ? 0 : others.count + 1 }

  /// The one at a place, from 0.
  public subscript(position: Int) -> Injection {
    if position == 0, let one { return one }
    return others[position - 1]
  }

  /// Adds one at the end.
  public mutating func append(_ injection: Injection) {
    if deed == nil { begin(with: injection) } else { others.append(injection) }
  }

  /// Adds the one that decided.
  public mutating func prepend(_ injection: Injection) {
    if let one { others.insert(one, at: 0) }
    begin(with: injection)
  }

  private mutating func begin(with injection: Injection) {
    deed = injection.deed
    chance = injection.chance
  }
}
