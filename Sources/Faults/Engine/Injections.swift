/// The injections for one push, beginning with the one that decided the outcome, if any. A single injection, the
/// usual case, needs no array.
public struct Injections: Sendable, Equatable, RandomAccessCollection, ExpressibleByArrayLiteral {
  // Stored in parts, because the runtime copies an optional of the whole far more slowly.
  private var deed: Injection.Deed?
  private var chance = Injection.Chance()
  private var others: [Injection] = []

  private var one: Injection? { deed.map { Injection($0, chance) } }

  /// Creates a collection of one injection.
  public init(_ injection: Injection) { begin(with: injection) }

  /// Creates a collection with the injections in the given order.
  public init(_ injections: some Sequence<Injection>) {
    for injection in injections { append(injection) }
  }

  /// Creates a collection with the injections in the given order.
  public init(arrayLiteral injections: Injection...) { self.init(injections) }

  /// 0.
  public var startIndex: Int { 0 }
  /// The number of injections.
  public var endIndex: Int { deed == nil ? 0 : others.count + 1 }

  /// The injection at `position`, from 0.
  public subscript(position: Int) -> Injection {
    if position == 0, let one { return one }
    return others[position - 1]
  }

  /// Appends an injection.
  public mutating func append(_ injection: Injection) {
    if deed == nil { begin(with: injection) } else { others.append(injection) }
  }

  /// Inserts the deciding injection at the front.
  public mutating func prepend(_ injection: Injection) {
    if let one { others.insert(one, at: 0) }
    begin(with: injection)
  }

  private mutating func begin(with injection: Injection) {
    deed = injection.deed
    chance = injection.chance
  }
}
